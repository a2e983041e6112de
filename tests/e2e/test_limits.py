#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Processes that reach limits of the system. Their peers get an error at once that names the limit
and the process, and all other peers go on."""

import os
import pathlib
import resource
import select
import signal
import socket
import subprocess
import sys

import cgroup
import lib
from lib import AGENT_UNAVAILABLE, OUT_OF_MEMORY, RANK_CONNECTION_LOST, SUCCESS, check

INTERNAL_ERROR = 2

SOON = 5  # seconds; no call here waits for another peer


def set_limit(pid, what, soft):
    resource.prlimit(pid, what, (soft, resource.prlimit(pid, what)[1]))


def first_failure(peer):
    """Returns the answer of create or, if it succeeds, of connect."""
    answer = peer.call("create", SOON)
    return answer if answer["code"] != SUCCESS else peer.call("connect", SOON)


def names_far(answer, agent, host, *words):
    """Checks that the text names the agent and the words. If the agent has refused a connection
    from another host, the text may name only the agent's host, because strangers can connect,
    too."""
    text = answer["text"]
    return names(answer, f"pcclagentd (pid {agent.pid})", *words) or (
        answer["code"] == OUT_OF_MEMORY and all(str(w) in text for w in words)
        and f" host-{host}: " in text and ": refused: " in text and "pid " not in text)


def names(answer, *words):
    return (answer["code"] == OUT_OF_MEMORY and all(str(w) in answer["text"] for w in words)
            and "pid " in answer["text"] and "on host " in answer["text"])


def cgroup_for_processes():
    """Returns a cgroup with a limit of processes, because RLIMIT_NPROC does not apply to root."""
    return cgroup.limited("pids", "pids.max", "pids.max")


def agent_without_threads():
    with cgroup_for_processes() as group, lib.Lab() as lab:
        lab.start_master()
        agent = lab.start_agent()
        group.take(agent.pid)
        group.set(1)
        answer = first_failure(lab.start_peer(0))
        check(names(answer, "pids.max", group.folder.name, f"pcclagentd (pid {agent.pid})"),
              f"no threads for the agent: {answer['text']}", answer)
        group.set("max")
        peers = [lab.start_peer(k) for k in (1, 2)]
        lib.form_run(peers)
        check(True, "an agent serves the next peers when it can start threads again")
        lab.check_alive()


def newcomer_without_descriptors(host):
    """The newcomer gets an error that says that host `host` lacks a descriptor for a link. The
    error does not mention ports."""
    with lib.Lab(2) as lab:
        lab.start()
        member, agent = lab.start_peer(0), lab.agents[host]
        lib.form_run([member])
        count = agent.open_files()
        for n in range(1, 30):
            set_limit(agent.pid, resource.RLIMIT_NOFILE, count + n - 1)
            newcomer = lab.start_peer(n, host=1)
            newcomer.expect("create")
            newcomer.send("connect")
            while not select.select([newcomer.process.stdout], [], [], 0.02)[0]:
                member.expect("update")
            answer = newcomer.read()
            check(names_far(answer, agent, host, "RLIMIT_NOFILE", count + n - 1),
                  f"no descriptor for a newcomer: {answer['text']}", answer)
            if "no link" in answer["text"] or answer["code"] == SUCCESS:
                break
            lab.drop_peer(newcomer)
        check("no link" in answer["text"] and "ports" not in answer["text"],
              "the error of the newcomer names the link and no ports")
        check(member.call("attr")["global"] == 1, "the member is not affected by newcomers that fail")
        lab.check_alive()


class Confined(lib.Loopback):
    """Hosts; the first of them starts its processes in the cgroup, if a cgroup is set."""

    group = None

    def command(self, host, args):
        return self.group.inside(args) if host == 0 and self.group else args


def agent_that_comes_back_without_threads(lasts):
    """A restarted agent cannot start threads. Its peer, which waits, gets an error that names the
    limit, unless the limit is raised soon. lasts: whether the limit stays as it is."""
    line = "reduce type=f32 op=sum count=1000 tag=1 retry=3"
    with cgroup_for_processes() as group, lib.Lab(hosts=Confined(2)) as lab:
        lab.start()
        peers, old = lab.start_peers((0, 1)), lab.agents[0]
        group.set(1)
        lab.hosts.group = group
        lab.drop(old)
        peers[0].send(line)
        agent = lab.start_agent(0, path=old.socket, admin=old.admin)
        agent.await_log("cannot serve another run")
        peers[1].send(line)
        if lasts:
            answer = peers[0].read(2 * SOON)
            check(names(answer, "pids.max", f"pcclagentd (pid {agent.pid})"),
                  f"no threads for an agent that comes back: {answer['text']}", answer)
            check(peers[1].read(2 * SOON)["code"] != SUCCESS,
                  "the other peer's call does not wait for an agent without threads")
        group.set("max")
        if not lasts:
            answers = [peer.read(2 * SOON) for peer in peers]
            check(all(a["code"] == SUCCESS for a in answers),
                  "operations go on when a restarted agent can start threads", answers)
        lab.check_alive()


def agent_without_descriptors():
    """Sets the agent's limit of descriptors to about the number that it has open, and raises it by
    one in each step. Every call that fails names the limit."""
    reduce = "reduce type=f32 op=sum count=1000 tag=1 ids=0,1"
    with lib.Lab() as lab:
        lab.start_master()
        agent = lab.start_agent()
        peers = [lab.start_peer(k) for k in (0, 1)]
        lib.form_run(peers)
        lib.together(peers, reduce)
        lab.start_master()  # a master of another run, in which no peer waits for others
        texts, count = [], agent.open_files()
        for more in range(-4, 20):
            set_limit(agent.pid, resource.RLIMIT_NOFILE, count + more)
            peer = lab.start_peer(100 + more)
            answer = first_failure(peer)
            if answer["code"] == SUCCESS:
                break
            check(names(answer, "RLIMIT_NOFILE", f"pcclagentd (pid {agent.pid})", count + more),
                  f"{count + more} descriptors for the agent: {answer['text']}", answer)
            texts.append(answer["text"].split(":")[0])
            lab.drop_peer(peer)
        lib.together(peers, reduce)  # an idle result region is not kept for long
        set_limit(agent.pid, resource.RLIMIT_NOFILE, count - 4)
        check(len(set(texts)) > 1, "different calls fail without descriptors for the agent", texts)
        wrong = lib.judge(lib.together(peers, reduce))
        check(not wrong, "the other peers go on while an agent has no descriptors", wrong)
        set_limit(agent.pid, resource.RLIMIT_NOFILE, count + 100)
        lab.check_alive()


def strangers_hear_no_names():
    """The agent has no descriptors for connections to its ports. A stranger that connects gets only
    the limit; the log names the process."""
    with lib.Lab() as lab:
        lab.start_master()
        agent = lab.start_agent()
        agent.await_log("ports: p2p")
        ports = agent.tcp_ports()
        check(len(ports) == 3, "the agent listens on its three ports", ports)
        set_limit(agent.pid, resource.RLIMIT_NOFILE, agent.open_files())
        for port in ports:
            with socket.create_connection((lab.hosts.address(0), port), SOON) as s:
                s.settimeout(SOON)
                said = b""
                while data := s.recv(4096):
                    said += data
            check(b"RLIMIT_NOFILE" in said and b"pid" not in said and b"/" not in said
                  and socket.gethostname().encode() not in said, f"port {port} says {said}", said)
        agent.await_log("cannot accept connections: Too many open files")
        agent.await_log(f"pcclagentd (pid {agent.pid})")
        lab.check_alive()


def synchronize(peers):
    """Synchronizes: the first peer has the state that the second peer gets. Within SOON both calls
    succeed, or both fail."""
    for peer, strategy in zip(peers, ("send", "receive")):
        peer.send(f"sync strategy={strategy}")
    return [peer.read(SOON) for peer in peers]


def state_peers(lab):
    peers = lab.start_peers((0, 1))
    for peer in peers:
        peer.expect("state revision=1")
        peer.expect(f"tensors n=1 name=w type=f32 count=1000000 seed={peer.number}")
    return peers


def all_told(peers, answers, host, agent, *words):
    """Returns whether both calls end with the code and the same sentence, and no peer is lost."""
    return (all(names_far(a, agent, host, *words) and a["check"] == "ok" and a["losses"] == 0
                for a in answers)
            and len({a["text"] for a in answers}) == 1
            and all(p.call("attr", SOON)["global"] == len(peers) for p in peers))


def state_without_descriptors(host):
    """Runs the first synchronization with a limit that grows step by step. If it fails, both peers
    get an error that names what the agent of host `host` lacks."""
    with lib.Lab(2) as lab:
        lab.start()
        peers, agent = state_peers(lab), lab.agents[host]
        count, failures = agent.open_files(), 0
        for more in range(30):
            set_limit(agent.pid, resource.RLIMIT_NOFILE, count + more)
            answers = synchronize(peers)
            if all(a["code"] == SUCCESS for a in answers):
                break
            failures += 1
            told = all_told(peers, answers, host, agent, "RLIMIT_NOFILE", f"is {count + more}")
            check(told, f"{more} descriptors for host {host}'s agent: {answers[0]['text']}", answers)
            if not told:
                return
        check(failures > 2 and all(a["check"] == "ok" for a in answers),
              f"with {more} descriptors the synchronization succeeds", answers)
        lab.check_alive()


def state_without_threads(host):
    with cgroup_for_processes() as group, lib.Lab(2) as lab:
        lab.start()
        peers, agent = state_peers(lab), lab.agents[host]
        group.take(agent.pid)
        group.set(1)
        answers = synchronize(peers)
        check(all_told(peers, answers, host, agent, "pids.max", group.folder.name),
              f"no thread for host {host}'s agent: {answers[0]['text']}", answers)
        group.set("max")
        answers = synchronize(peers)
        check(all(a["code"] == SUCCESS and a["check"] == "ok" for a in answers),
              "the synchronization succeeds when the agent can start threads", answers)
        lab.check_alive()


def without_threads():
    try:
        cgroup_for_processes().close()
    except OSError as error:
        print(f"# no limit of threads: {error}")
        return
    agent_without_threads()
    for lasts in (True, False):
        agent_that_comes_back_without_threads(lasts)
    for host in (0, 1):
        state_without_threads(host)


def process_without_descriptors():
    with lib.Lab() as lab:
        lab.start_master()
        lab.start_agent()
        seen = set()
        for more in range(10):
            peer = lab.start_peer(more)
            count = len(os.listdir(f"/proc/{peer.pid}/fd"))
            set_limit(peer.pid, resource.RLIMIT_NOFILE, count + more)
            answer = first_failure(peer)
            if answer["code"] == SUCCESS:
                break
            check(names(answer, "RLIMIT_NOFILE", f"(pid {peer.pid})"),
                  f"{more} descriptors for a process: {answer['text']}", answer)
            seen.add(answer["text"].split(":")[0])
            lab.drop_peer(peer)
        check(len(seen) > 1, "different calls fail without descriptors for a process", seen)
        lab.check_alive()


def process_without_address_space():
    with lib.Lab() as lab:
        lab.start_master()
        lab.start_agent()
        peer = lab.start_peer(0)
        used = int(pathlib.Path(f"/proc/{peer.pid}/statm").read_text("ascii").split()[0])
        limit = used * resource.getpagesize()
        peer.expect("create")
        set_limit(peer.pid, resource.RLIMIT_AS, limit)
        answer = peer.call("connect")
        check(names(answer, "RLIMIT_AS", f"(pid {peer.pid})", limit),
              f"no address space for a process: {answer['text']}", answer)
        set_limit(peer.pid, resource.RLIMIT_AS, limit + (1 << 30))
        answer = peer.call("connect")
        check(answer["code"] == SUCCESS, "a process connects when it has address space", answer)
        lab.check_alive()


def result_without_address_space():
    """A peer cannot map the result that the others have. It leaves the run, and the others get the
    reason."""
    # small enough that the agent copies the operand at once
    reduce = "type=f32 op=sum count=900000 ids=0,1,2"
    with lib.Lab(2) as lab:
        lab.start()
        peers = [lab.start_peer(k, host=k % 2) for k in range(3)]
        short, others = peers[2], peers[:2]  # peers 0 and 2 share the result of their host
        lib.form_run(peers)
        short.expect(f"submit slot=0 {reduce} tag=2")
        used = int(pathlib.Path(f"/proc/{short.pid}/statm").read_text("ascii").split()[0])
        set_limit(short.pid, resource.RLIMIT_AS, used * resource.getpagesize() + (1 << 20))
        answers = lib.together(others, f"reduce {reduce} tag=2")
        check(all(a["code"] == SUCCESS for a in answers),
              "the others have the result that one peer cannot map", answers)
        for peer in others:
            peer.send(f"reduce {reduce} tag=3")
        answer = short.call("await slot=0", SOON)
        check(names(answer, "RLIMIT_AS", "cannot take the result"), answer["text"], answer)
        for peer in others:
            answer = peer.read(SOON)
            check(answer["code"] == RANK_CONNECTION_LOST
                  and "host-0" in answer["text"]
                  and "it left the run: it cannot take the result" in answer["text"]
                  and "RLIMIT_AS" in answer["text"], f"the others get the reason: {answer['text']}", answer)
        lab.check_alive()


def window_without_address_space():
    """A large operand is copied while its result is computed. Without memory for the copy the
    process cannot go on. It leaves the run, and the others do not wait for it."""
    count = 10_000_000
    reduce = f"type=f32 op=sum count={count} tag=1 ids=0,1,2"
    with lib.Lab() as lab:
        lab.start()
        peers = [lab.start_peer(k) for k in range(3)]
        short, others = peers[2], peers[:2]
        lib.form_run(peers)
        used = int(pathlib.Path(f"/proc/{short.pid}/statm").read_text("ascii").split()[0])
        room = 2 * 4 * count + (24 << 20)  # room for its buffers, but not for the result
        set_limit(short.pid, resource.RLIMIT_AS, used * resource.getpagesize() + room)
        for peer in peers:
            peer.send(f"reduce {reduce}")
        answer = short.read(SOON)
        check(names(answer, "RLIMIT_AS", "cannot take part"), answer["text"], answer)
        for peer in others:
            answer = peer.read(SOON)
            check(answer["code"] == RANK_CONNECTION_LOST
                  and "it left the run: it cannot take part" in answer["text"]
                  and "RLIMIT_AS" in answer["text"], f"the others get the reason: {answer['text']}", answer)
        answers = lib.together(others, f"reduce type=f32 op=sum count={count} tag=1 ids=0,1")
        check(all(a["code"] == SUCCESS for a in answers),
              "the others go on without the peer that has no memory", answers)
        lab.check_alive()


def master_without_descriptors():
    """The master has no descriptor left. Newcomers get an error at once. An agent that connects
    again is accepted as soon as the limit is raised."""
    with lib.Lab() as lab:
        master, old = lab.start_master(), lab.start_agent()
        peers = [lab.start_peer(k) for k in (0, 1)]
        lib.form_run(peers)
        lab.drop(old)
        lib.until(lambda: not master.connections(), "the master keeps a connection")
        count = master.open_files()
        set_limit(master.pid, resource.RLIMIT_NOFILE, count)
        lab.start_agent()
        answer = first_failure(lab.start_peer(2))
        check(answer["code"] == OUT_OF_MEMORY and f"master at {master.address}" in answer["text"]
              and f"(RLIMIT_NOFILE) of ccoip-masterd is {count}" in answer["text"],
              f"no descriptor for a newcomer: {answer['text']}", answer)
        master.await_log("RLIMIT_NOFILE) of ccoip-masterd (pid %d)" % master.pid)
        lab.agents[0] = lab.start_agent(path=old.socket, admin=old.admin)
        lab.agents[0].await_log("refused this host")
        used = sum(map(int, pathlib.Path(f"/proc/{master.pid}/stat").read_text("ascii")
                       .rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")
        check(used < 1, "a master without descriptors does not spin", f"{used} s of processor time")
        set_limit(master.pid, resource.RLIMIT_NOFILE, 1000)
        answers = lib.together(peers, "reduce type=f32 op=sum count=1000 tag=1 ids=0,1 retry=3")
        wrong = lib.judge(answers)
        check(not wrong, "peers of an agent that connects again go on when the master has descriptors", wrong)
        lab.check_alive()


def end_of_start(lab, n, admin, program, *options):
    """Starts a daemon with at most `n` descriptors. Returns its exit status, or None if it serves,
    and its log."""
    log = lab.folder / "log"
    with open(log, "w", encoding="utf-8") as file, \
            subprocess.Popen(["prlimit", f"--nofile={n}:{n}", program, *options,
                              "--admin-socket", admin], stderr=file) as daemon:
        option = "--master" if program == lib.MASTERD else "--agent"
        lib.until(lambda: daemon.poll() is not None or "cannot accept" in log.read_text("utf-8")
                  or lib.ctl(option, admin, "status").returncode == 0, f"{program} with {n}")
        status = daemon.poll()
        daemon.kill()
    return status, log.read_text("utf-8")


def daemons_that_cannot_start():
    """The daemon names the limit, no matter which call fails, and even if a stale socket exists."""
    with lib.Lab() as lab:
        admin, stale = str(lab.folder / "admin"), socket.socket(socket.AF_UNIX)
        for program, *options in ((lib.MASTERD, "--listen", "127.0.0.1:0"),
                                  (lib.AGENTD, "--socket", str(lab.folder / "agent"))):
            tried = []
            for n in range(4, 40):
                if os.path.exists(admin):
                    os.unlink(admin)
                stale.close()
                stale = socket.socket(socket.AF_UNIX)
                stale.bind(admin)
                status, text = end_of_start(lab, n, admin, program, *options)
                if status is None:
                    break
                if "shared libraries" in text:
                    continue
                tried.append(status)
                check("err: " in text and f"RLIMIT_NOFILE) of {program.name} (pid " in text
                      and text.endswith(f" is {n}\n"),
                      f"{program.name} cannot start with {n} descriptors: {''.join(text.splitlines()[-1:])}", text)
            check(len(tried) > 2,
                  f"{program.name}: different calls fail without descriptors at the start", tried)


def no_process_can_be_made(lab):
    """The agent is installed, but cannot be started. The error does not tell the user to install
    it."""
    try:
        group = cgroup_for_processes()
    except OSError:
        return
    peer = lab.start_peer(0, env={"PCCL_AGENTD": str(lib.AGENTD)})
    with group:
        group.take(peer.pid)
        group.set(1)
        answer = first_failure(peer)
        check(names(answer, "pids.max", f"(pid {peer.pid})") and "install" not in answer["text"],
              f"the library cannot create a process: {answer['text']}", answer)
        lab.drop_peer(peer)


def cannot_be_executed(lab):
    program = lab.folder / "no-program"
    program.write_text("neither script nor ELF\n", "ascii")
    program.chmod(0o755)
    answer = first_failure(lab.start_peer(1, env={"PCCL_AGENTD": str(program)}))
    check(answer["code"] == AGENT_UNAVAILABLE and "install" not in answer["text"]
          and "execve" in answer["text"] and "Exec format error" in answer["text"],
          f"the agent's program cannot be executed: {answer['text']}", answer)


def refused_by_seccomp(lab):
    """clone, clone3, fork and vfork fail with EPERM in the process."""
    answer = first_failure(lab.start_peer(2, env={
        "PCCL_AGENTD": str(lib.AGENTD), "PEER_REFUSE_CLONE": "1"}))
    check(answer["code"] == AGENT_UNAVAILABLE and "install" not in answer["text"]
          and "clone" in answer["text"] and "Operation not permitted" in answer["text"],
          f"clone refused: {answer['text']}", answer)


class Refused(lib.Loopback):
    """Hosts of which the first one refuses a system call to programs with this name."""

    def __init__(self, n_hosts, name, call, error):
        super().__init__(n_hosts)
        self.name, self.refusal = name, (call, error)

    def command(self, host, args):
        if host != 0 or pathlib.Path(args[0]).name != self.name:
            return args
        return [sys.executable, str(pathlib.Path(lib.__file__).with_name("refuse.py")),
                *self.refusal, *args]


def names_refusal(answer, call="memfd_create"):
    return (answer["code"] == INTERNAL_ERROR
            and all(w in answer["text"] for w in (call, "seccomp", "pcclagentd (pid ", "on host ")))


def agent_is_refused(call, error):
    with lib.Lab(hosts=Refused(2, "pcclagentd", call, error)) as lab:
        lab.start()
        answer = first_failure(lab.start_peer(0))
        check(names_refusal(answer, call), f"{call} gives the agent {error}: {answer['text']}", answer)
        answer = first_failure(lab.start_peer(1, host=1))
        check(answer["code"] == SUCCESS, "another host's agent serves its peers", answer)
        lab.check_alive()


def process_without_memfd(error):
    """The process itself does not need memfd_create. A private agent that the process starts has
    the same filter."""
    with lib.Lab(hosts=Refused(1, "peer", "memfd_create", error)) as lab:
        lab.start()
        peers = lab.start_peers((0, 0))
        for memory in ("own", "shared"):
            wrong = lib.judge(lib.together(peers, "reduce type=f32 op=sum count=100000 tag=1 ids=0,1 "
                                           f"verify=1 mem={memory}"))
            check(not wrong, f"memfd_create gives a process {error}: it can reduce {memory} memory",
                  wrong)
        lab.agents.clear()
        if os.path.exists("/run/pccl/agent.sock"):
            return
        answer = first_failure(lab.start_peer(3, env={"PCCL_AGENTD": str(lib.AGENTD)}))
        check(names_refusal(answer),
              f"a private agent with the same filter names the refused call: {answer['text']}", answer)
        for pid in lib.processes(lib.AGENTD, str(lab.folder / "pccl")):
            os.kill(pid, signal.SIGKILL)


def starting_an_agent():
    if os.path.exists("/run/pccl/agent.sock"):
        print("# this system has an agent, so starting one is not tested")
        return
    with lib.Lab() as lab:
        lab.start_master()
        no_process_can_be_made(lab)
        cannot_be_executed(lab)
        refused_by_seccomp(lab)


def test():
    lib.forget_leaks()
    without_threads()
    agent_without_descriptors()
    strangers_hear_no_names()
    for host in (0, 1):
        newcomer_without_descriptors(host)
        state_without_descriptors(host)
    process_without_descriptors()
    if not lib.sanitized():  # a sanitizer ends a process without address space
        process_without_address_space()
        result_without_address_space()
        window_without_address_space()
    master_without_descriptors()
    daemons_that_cannot_start()
    starting_an_agent()
    agent_is_refused("clone3", "EPERM")
    for error in ("EPERM", "ENOSYS"):
        agent_is_refused("memfd_create", error)
        process_without_memfd(error)


lib.run(test, 180)
