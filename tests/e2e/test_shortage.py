#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One process or one agent lacks a resource. The same call ends for all peers with the same code
and a sentence that names the process and the limit. No buffers change."""

import os
import select

import cgroup
import lib
from lib import SUCCESS, check, ids_of, judge

OUT_OF_MEMORY = 68
INTERNAL_ERROR = 2
MIB_48 = "type=f32 op=sum count=12582912"
MIB_16 = "type=f32 op=sum count=4194304"
SMALL = "type=f32 op=sum count=1000"


def all_told(peers, line, code, *words):
    """Checks that every peer's call ends with this code and these words, with unchanged buffers."""
    for peer in peers:
        peer.send(f"reduce {line} retry=3")
    answers = [peer.read() for peer in peers]
    return (all(a["code"] == code and a["check"] == "ok" and a["losses"] == 0
                and all(w in a["text"] for w in words) for a in answers)
            and len({a["text"] for a in answers}) == 1, answers)


def goes_on(lab, peers, what):
    """Checks that no peer is lost, and that a smaller operation succeeds."""
    wrong = judge(lib.together(peers, f"reduce {SMALL} tag=77 ids={ids_of(peers)} verify=1"))
    status = ask_status(lab)
    check(not wrong and status["accepted"] == len(peers) and status["lost_members"] == 0,
          f"{what}: the run goes on without a loss", f"{wrong} {status}")
    lab.check_alive()


def ask_status(lab):
    return lib.ask("--master", lab.master, "status")[0]


def operand_of_one():
    """An agent has no room for its peer's operand, so the peer's call cannot even be submitted."""
    with lib.Lab(2) as lab:
        lab.start_master()
        lab.start_agent(0, options=["--mem-per-user", "8M"])
        lab.start_agent(1)
        peers = lab.start_peers((0, 1))
        good, answers = all_told(peers, f"{MIB_16} tag=1 place=out", OUT_OF_MEMORY,
                                 "host-0", "mem_per_user", "8.0 MiB")
        check(good, f"an operand does not fit on one host: {answers[1]['text']}", answers)
        for peer in peers:
            peer.send(f"submit slot=0 {MIB_16} tag=2 place=out", "await slot=0")
        answers = [peer.read() for peer in peers for _ in range(2)][1::2]
        check(all(a["code"] == OUT_OF_MEMORY and a["check"] == "ok" for a in answers),
              "an operand that does not fit gives all peers the error when it is awaited later", answers)
        for peer in peers:
            peer.send(f"several n=3 window=2 {MIB_16} tag=10")
        answers = [peer.read() for peer in peers for _ in range(3)]
        check(all(a["code"] == OUT_OF_MEMORY and a["check"] == "ok" for a in answers),
              "pcclAllReduceMultipleWithRetry of an operand that does not fit ends with "
              "pcclOutOfMemory", answers)
        goes_on(lab, peers, "an operand that does not fit")


def result_of_one(places, short, memory, options, words, algorithm="ring"):
    """The agent of host `short` has no room for the result. It notices this after the votes."""
    with lib.Lab(max(places) + 1) as lab:
        lab.start_master(options=("--algorithm", algorithm))
        for host in range(max(places) + 1):
            lab.start_agent(host, options=options if host == short else ())
        peers = lab.start_peers(places)
        if algorithm != "ring":
            lib.await_mesh(lab, places)
        where = f"{len(peers)} peers, {memory}, {' '.join(options)}"
        good, answers = all_told(peers, f"{MIB_16} tag=1 {memory}", OUT_OF_MEMORY,
                                 f"host-{short}", *words)
        check(good, f"{where}: {answers[-1]['text']}", answers)
        for peer in peers:
            peer.send(f"several n=1 window=1 {MIB_16} tag=10 {memory}")
        answers = [peer.read() for peer in peers]
        check(all(a["code"] == OUT_OF_MEMORY and a["check"] == "ok" for a in answers),
              f"{where}: pcclAllReduceMultipleWithRetry of a result that does not fit ends with "
              "pcclOutOfMemory", answers)
        goes_on(lab, peers, where)


def state_of_one():
    """A manifest does not fit, so the synchronization ends for all peers."""
    with lib.Lab(2) as lab:
        lab.start_master()
        lab.start_agent(0, options=["--mem-per-user", "2M"])
        lab.start_agent(1)
        peers = lab.start_peers((0, 1))
        for peer in peers:
            peer.expect("state revision=1")
            peer.expect("tensors n=1 name=w type=f32 count=1000 seed=1")
            peer.send("sync strategy=popular")
        answers = [peer.read() for peer in peers]
        check(all(a["code"] == OUT_OF_MEMORY and "host-0" in a["text"]
                  and "mem_per_user" in a["text"] for a in answers),
              f"a manifest that does not fit ends the synchronization for all: {answers[1]['text']}", answers)
        goes_on(lab, peers, "a synchronization that does not fit")


class NoProc(lib.Loopback):
    """Hosts without /proc, like some containers."""

    def command(self, _host, args):
        return ["unshare", "--mount", "sh", "-c", 'umount -l /proc && exec "$@"', "sh", *args]


def without_proc():
    if os.geteuid() != 0:
        print("# the case without /proc is not tested: needs root")
        return
    if lib.sanitized():
        print("# the case without /proc is not tested: a sanitizer needs it")
        return
    with lib.Lab(hosts=NoProc(2)) as lab:
        lab.start()
        peers = lab.start_peers((0, 0, 1))
        for line in (f"{SMALL} place=in", f"{SMALL} place=out mem=shared", f"{MIB_16} place=in",
                     f"{MIB_16} place=out", f"{MIB_16} place=in mem=shared"):
            for tag in (1, 2):
                wrong = judge(lib.together(
                    peers, f"reduce {line} tag={tag} ids={ids_of(peers)} verify=1"))
                if wrong:
                    break
            check(not wrong, f"peers reduce without /proc: {line}", wrong)
        for peer in peers:
            peer.expect("state revision=1")
            peer.expect(f"tensors n=1 name=w type=f32 count=1000000 seed={peer.number}")
            peer.send("sync strategy=popular")
        answers = [peer.read() for peer in peers]
        check(all(a["code"] == SUCCESS and a["check"] == "ok" for a in answers),
              "peers synchronize without /proc", answers)
        lab.check_alive()


class Narrow(lib.Loopback):
    """Hosts of which the first one runs its agents in a cgroup."""

    def __init__(self, n_hosts, group):
        super().__init__(n_hosts)
        self.group = group

    def command(self, host, args):
        return self.group.inside(args) if host == 0 and "pcclagentd" in args[0] else args


def dies_twice(lab, peers, line, start_agent, n=1):
    """Sends the line to all peers, and starts the first host's agent again each time it dies, which
    happens twice. Returns the n answers of each peer. Every answer names the agent; if there are
    several operations, some of them may succeed instead."""
    for peer in peers:
        peer.send(line)
    deaths = 0
    while not select.select([peers[0].process.stdout], [], [], 0.01)[0]:
        if not lab.agents[0].alive():
            deaths += 1
            lab.daemons.remove(lab.agents[0])
            start_agent()
    answers = [peer.read() for _ in range(n) for peer in peers]
    blame = [a for a in answers if a["code"] == INTERNAL_ERROR and "host-0" in a["text"]
             and "died twice" in a["text"]]
    check(deaths == 2 and len(blame) >= len(peers) and
          all(a["code"] == 0 or a in blame for a in answers) and (n > 1 or blame == answers),
          f"an operation that kills its agent twice ends for all: {line}: {[a['text'] for a in blame[:1]]}",
          f"{deaths} deaths, {answers}")
    return answers


def in_a_cgroup():
    """The limit of the agent's cgroup limits the memory that can be shared. If the operator sets a
    higher limit, the kernel kills the agent, and the operation ends for all peers after the second
    kill."""
    try:
        group = cgroup.limited("memory", "memory.limit_in_bytes", "memory.max", 64 << 20)
    except OSError as error:
        print(f"# no limit of memory: {error}")
        return
    line = "type=f32 op=sum count=31457280 place=in mem=shared"  # 120 MiB
    with group, lib.Lab(hosts=Narrow(2, group)) as lab:
        lab.start()
        peers = lab.start_peers((0, 1))
        good, answers = all_told(peers, f"{MIB_48} place=out tag=1", OUT_OF_MEMORY, "host-0",
                                 "cgroup", "32.0 MiB")
        check(good, f"the limit of a cgroup limits its agent: {answers[1]['text']}", answers)
        path = lab.agents[0].socket
        for peer in peers:
            lab.drop_peer(peer)
        lab.end(lab.agents[0])
        options = ["--mem-total", "1G", "--mem-per-user", "1G"]
        lab.start_agent(0, path=path, options=options)
        peers = lab.start_peers((0, 1), first=2)

        def start_agent():
            lab.start_agent(0, path=path, options=options)

        answers = dies_twice(lab, peers, f"reduce {line} tag=2 retry=50", start_agent)
        check(all(a["check"] == "ok" for a in answers),
              "operands are unchanged after an operation that killed its agent", answers)
        many = f"several n=16 window=16 ids={ids_of(peers)} type=f32 op=sum count=2097152 place=in mem=shared tag=4"
        answers = dies_twice(lab, peers, many, start_agent, 16)
        check(all(a["check"] == "ok" for a in answers),
              "operands are unchanged after several operations that killed their agent", answers)
        wrong = judge(lib.together(peers, f"reduce {SMALL} tag=3 ids={ids_of(peers)} verify=1"))
        check(not wrong, "the run goes on after an operation that killed its agent", wrong)


class Unseen(Narrow):
    """Hosts like Narrow, but their agents see no cgroups, so they do not know the limit of the
    kernel."""

    def command(self, host, args):
        inside = super().command(host, args)
        if inside is args:
            return args
        hide = f'umount -l {cgroup.ROOT}/* {cgroup.ROOT}; exec "$@"'
        return self.group.inside(["unshare", "--mount", "sh", "-c", hide, "sh", *args])


def offer_many(peers, n):
    for peer in peers:
        peer.expect("state revision=1")
        peer.expect(f"tensors n={n} name=w type=f32 count=1 seed=1 like=0", seconds=60)


def tables_in_a_cgroup():
    """The agent refuses tables of shared state that exceed half of its cgroup, even if its options
    allow more. If the agent does not see its cgroup, the kernel kills it twice because of the
    tables, and then the call fails."""
    options = ["--mem-total", "1G", "--mem-per-user", "1G"]
    line = "sync strategy=popular retry=50"
    try:
        group = cgroup.limited("memory", "memory.limit_in_bytes", "memory.max", 40 << 20)
    except OSError as error:
        print(f"# no limit of memory: {error}")
        return
    with group:
        with lib.Lab(hosts=Narrow(2, group)) as lab:
            lab.start(agent_options=options)
            peers = lab.start_peers((0, 1))
            offer_many(peers, 500000)
            for peer in peers:
                peer.send(line)
            answers = [peer.read() for peer in peers]
            check(all(a["code"] == OUT_OF_MEMORY and "host-0" in a["text"]
                      and "20.0 MiB, half of its cgroup" in a["text"] for a in answers),
                  "tables of shared state that exceed a cgroup give all peers the error: "
                  f"{answers[1]['text']}", answers)
            goes_on(lab, peers, "tables that exceed a cgroup")
            offer_many(peers, 80000)
            answers = lib.together(peers, line)
            check(all(a["code"] == SUCCESS for a in answers),
                  "smaller tables of shared state fit into the cgroup", answers)
            lab.check_alive()
        with lib.Lab(hosts=Unseen(2, group)) as lab:
            lab.start(agent_options=options)
            path = lab.agents[0].socket
            peers = lab.start_peers((0, 1))
            offer_many(peers, 500000)
            dies_twice(lab, peers, line, lambda: lab.start_agent(0, path=path, options=options))
            offer_many(peers, 1000)
            answers = lib.together(peers, line)
            check(all(a["code"] == SUCCESS for a in answers),
                  "the run goes on after tables that killed their agent", answers)


def file_size_limit():
    """RLIMIT_FSIZE of the agent is named in the error, and kills no process."""
    with lib.Lab(hosts=Limited(2)) as lab:
        lab.start()
        peers = lab.start_peers((0, 1))
        good, answers = all_told(peers, f"{MIB_16} tag=1 place=out", OUT_OF_MEMORY, "host-0",
                                 "RLIMIT_FSIZE")
        check(good, f"a limit of file sizes is named to all peers: {answers[1]['text']}", answers)
        goes_on(lab, peers, "a limit of file sizes")


class LimitedMaster(lib.Loopback):
    """Hosts whose master can write only the beginning of a journal. Its log is a pipe."""

    def command(self, host, args):
        if "ccoip-masterd" not in args[0]:
            return args
        return ["bash", "-c", 'exec prlimit --fsize=64 "$@" 2> >(exec cat >&2)', "bash", *args]


def file_size_limit_of_master():
    """If a journal cannot grow, only the journal is lost, and one line is logged."""
    with lib.Lab(hosts=LimitedMaster(2)) as lab:
        lab.start(master_options=["--state-dir", lab.folder / "journal"])
        peers = lab.start_peers((0, 1))
        lab.master.await_log("cannot be written: File too large")
        goes_on(lab, peers, "a journal that cannot be written")
        for peer in peers:
            peer.expect("destroy")
            lab.drop_peer(peer)
        peers = lab.start_peers((0, 1, 1), first=2)
        goes_on(lab, peers, "a journal that cannot be written, with other members")
        said = [line for line in lab.master.log_lines() if "journal" in line and ": err: " in line]
        check(len(said) == 1, f"the master logs once that its journal cannot be written: {said[:1]}", said)


class Limited(lib.Loopback):
    """The first host's agent and the master may not write files of more than one mebibyte."""

    def command(self, host, args):
        if host != 0 or "/tests/" in args[0]:
            return args
        return ["prlimit", "--fsize=1048576", *args]


def test():
    operand_of_one()
    without_proc()
    in_a_cgroup()
    tables_in_a_cgroup()
    file_size_limit()
    file_size_limit_of_master()
    per_user = (["--mem-per-user", "24M"], ("mem_per_user", "24.0 MiB"))
    in_all = (["--mem-total", "24M"], ("mem_total", "24.0 MiB"))
    result_of_one((0, 1), 0, "place=in mem=shared", *per_user)
    result_of_one((0, 1), 0, "place=in mem=shared", *in_all)
    result_of_one((0, 1), 1, "place=out mem=send", *per_user)
    result_of_one((0, 1, 2), 1, "place=in mem=shared", *per_user)
    result_of_one((0, 0, 1), 0, "place=in", ["--mem-per-user", "40M"], ("mem_per_user",))
    result_of_one((0, 0), 0, "place=in mem=shared", ["--mem-per-user", "40M"], ("mem_per_user",))
    result_of_one((0, 1), 1, f"place=in mem=shared {lib.QUANTIZED['int8']}", *per_user)
    result_of_one((0, 1, 2), 1, f"place=in mem=shared {lib.QUANTIZED['int4']}", *per_user, "direct")
    result_of_one((0, 1, 2, 3), 2, "place=in mem=shared", *per_user, "tree")
    state_of_one()


lib.run(test, 240)
