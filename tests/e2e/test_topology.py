#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pcclOptimizeTopology: what is measured, and what is not measured again; operations before, during
and after it; peers and hosts that come and go; an optimization that fails and is repeated; paths on
which nothing can be measured."""

import os
import pty
import signal
import subprocess
import time

import halfopen
import lib
from lib import (INVALID_USAGE, PENDING_ASYNC_OPS, SUCCESS, TOO_FEW_PEERS,
                 TOPOLOGY_OPTIMIZATION_FAILED, check, ids_of, judge, together)

BENCHMARK = 48151  # port
QUICK = ("--benchmark-ms", "100", "--log-level", "debug")
OPERATIONS = (
    "type=f32 op=sum count=1 place=in",
    "type=bf16 op=avg count=1009 place=out mem=shared",
    "type=i32 op=max count=65537 place=out mem=send",
    f"type=f32 op=sum count=262147 place=out {lib.QUANTIZED['int8']}",
    "type=f64 op=sum count=300007 place=out",
    "type=f32 op=sum count=1000003 place=in mem=shared",
)


class Watch:
    """What a master logs from now on."""

    def __init__(self, master):
        self.master, self.begin = master, len(master.log_lines())

    def lines(self):
        return self.master.log_lines()[self.begin:]

    def has(self, words):
        return any(words in line for line in self.lines())

    def wait(self, words):
        lib.until(lambda: self.has(words), f"the master does not log: {words}")

    def measured(self):
        """Returns the texts about what was measured: "12 links of 4 hosts"."""
        return [line.split(": measuring ")[1].split(" in ")[0] for line in self.lines()
                if ": measuring " in line and " hosts in " in line]


def reduce_all(peers, what, operations=OPERATIONS):
    """Checks that operations of all sizes are right, and equal on all peers."""
    wrong = None
    for tag, line in enumerate(operations):
        for peer in peers:  # one peer also computes the result; the others must get the same
            peer.send(f"reduce {line} tag={tag} seed={tag} ids={ids_of(peers)} "
                      f"verify={int(peer is peers[tag % len(peers)])}")
        wrong = wrong or judge([peer.read() for peer in peers])
    check(not wrong, f"{what}: operations of all sizes are right", wrong)


def optimize(peers, what, seconds=None):
    answers = together(peers, "optimize", seconds)
    check(all(a["code"] == SUCCESS for a in answers), f"{what}: pcclOptimizeTopology succeeds", answers)


def measures(lab, peers, wanted, what, master=None):
    """Optimizes. wanted: what the master must measure, or None."""
    watch = Watch(master or lab.master)
    optimize(peers, what)
    check(watch.measured() == ([wanted] if wanted else []), f"{what}: the master measures {wanted}",
          watch.lines())


def join(lab, peers, number, host):
    newcomer = lab.start_peer(number, host, ready=False)
    newcomer.read()
    newcomer.send("create", "connect")
    for answer in together(peers, f"until world={len(peers) + 1}"):
        if answer["code"] != SUCCESS:
            raise lib.Failed(f"the newcomer is not admitted: {answer}")
    newcomer.read()
    if newcomer.read()["code"] != SUCCESS:
        raise lib.Failed("the newcomer cannot connect")
    return [*peers, newcomer]


# ---------------------------------------------------------------------- what is measured


def few_hosts():
    """There is nothing to choose with fewer than three hosts."""
    with lib.Lab(2) as lab:
        lab.start(QUICK)
        peers = lab.start_peers((0,))
        answer = peers[0].call("optimize")
        check(answer["code"] == INVALID_USAGE and "one peer" in answer["text"],
              "one peer alone: pcclInvalidUsage", answer)
        peers = join(lab, peers, 1, 0)
        measures(lab, peers, None, "two peers on one host")
        peers = join(lab, peers, 2, 1)
        measures(lab, peers, None, "two hosts")
        reduce_all(peers, "two hosts after an optimization")
        lab.check_alive()


def groups_and_runs():
    """Only links within groups of three hosts are measured. Another run at the same agents works
    meanwhile, and uses what they have measured."""
    with lib.Lab(4) as lab:
        other = lab.start_master(options=QUICK)
        lab.start(QUICK)
        one = [lab.start_peer(k, k) for k in range(3)]
        two = [lab.start_peer(10 + k, k) for k in (1, 2, 3)]
        pair = [lab.start_peer(20 + k, k) for k in (0, 3)]
        for peers, group in ((two, 1), (pair, 2)):
            for k, peer in enumerate(peers):
                lab.drop_peer(peer)
                peers[k] = lab.start_peer(peer.number, peer.host, group=group)
        lib.form_run([*one, *two, *pair])
        busy = lab.start_peers((0, 1, 2, 3, 3), first=30, master=other.address)
        for peer in busy:
            peer.send(f"storm n=200 type=f32 op=sum count=9001 place=in ids={ids_of(busy)} verify=1")
        for peer in busy:
            peer.read()
        measures(lab, [*one, *two, *pair], "10 links of 4 hosts", "three groups")
        answers = [peer.read() for peer in busy]
        check(all(a["code"] == SUCCESS and a["lost"] == 0 and a["check"] == "ok" for a in answers)
              and len({a["hash"] for a in answers}) == 1,
              "operations of another run are right while links are measured", answers)
        measures(lab, busy, "12 links of 4 hosts", "another run at the same agents", master=other)
        for peers in (busy, one, two, pair):
            reduce_all(peers, f"a group of {len(peers)} peers, after optimizations of two runs",
                       OPERATIONS[-1:])
        third = lab.start_master(options=QUICK)
        late = lab.start_peers((0, 1, 2, 3), first=40, master=third.address)
        measures(lab, late, None, "a run at agents that have measured all links", master=third)
        reduce_all(late, "a run with rates that were measured for another run")
        lab.check_alive()


def check_all_measured(lab, master, what):
    found = lib.tables("--master", master, "bandwidth")
    check([r["source"] for r in found["links"]] == ["benchmark"] * 6
          and all(r["rate"] > 0 for r in found["links"]) and len(found["hosts"]) == 3,
          f"{what}: all links and hosts are measured", found)


def wait_for_operations(lab, peers, others):
    """Optimizes the run of the peers while the others make operations."""
    watch = Watch(lab.master)
    for peer in others:
        peer.send(f"storm n=256 type=f32 op=sum count=90001 place=in ids={ids_of(others)} verify=1")
    for peer in others:
        peer.read()
    for peer in peers:
        peer.send("optimize")
    watch.wait("is repeated after")
    answers = [peer.read() for peer in others]
    check(all(a["code"] == SUCCESS and a["lost"] == 0 and a["check"] == "ok" for a in answers)
          and len({a["hash"] for a in answers}) == 1,
          "operations of another run are right while links wait to be measured", answers)
    answers = [peer.read() for peer in peers]
    check(all(a["code"] == SUCCESS for a in answers) and not watch.has("leaves the rings"),
          "when the other run is quiet, pcclOptimizeTopology succeeds", (answers, watch.lines()))
    check_all_measured(lab, lab.master, "after operations of another run")


def wait_for_measurements(lab, runs):
    """Optimizes two runs at once. runs: their masters and peers."""
    for master, _ in runs:
        lib.measure_again(master)
    watches = [Watch(master) for master, _ in runs]
    for _, peers in runs:
        for peer in peers:
            peer.send("optimize")
    answers = [peer.read() for _, peers in runs for peer in peers]
    check(all(a["code"] == SUCCESS for a in answers), "two runs optimize at the same time", answers)
    check(any(w.has("another run") for w in watches), "one of two runs waits for the other",
          [w.lines() for w in watches])
    for master, _ in runs:
        check_all_measured(lab, master, "two runs at the same time")


def runs_take_turns():
    """Nothing is measured at a host while operations or measurements of another run use its network."""
    slow = ("--benchmark-ms", "400", "--log-level", "debug")
    with lib.Lab(3) as lab:
        other = lab.start_master(options=slow)
        lab.start(slow)
        one = lab.start_peers((0, 1, 2))
        two = lab.start_peers((0, 1, 2), first=10, master=other.address)
        wait_for_operations(lab, one, two)
        wait_for_measurements(lab, ((lab.master, one), (other, two)))
        lab.check_alive()


def life():
    """Optimizations of a run whose peers come and go."""
    with lib.Lab(5) as lab:
        lab.start(QUICK)
        peers = lab.start_peers((0, 0, 1, 2, 3))
        measures(lab, peers, "12 links of 4 hosts", "4 hosts")
        reduce_all(peers, "4 hosts after an optimization")
        watch, began = Watch(lab.master), time.monotonic()
        measures(lab, peers, None, "a second time")
        check(time.monotonic() - began < 1 * lib.SLOWER and not watch.has(": rewiring"),
              "a second time: the calls return soon, without a round", watch.lines())
        peers = join(lab, peers, 9, 4)
        reduce_all(peers, "a newcomer on a new host")
        measures(lab, peers, "8 links of 5 hosts", "with a new host")
        reduce_all(peers, "with a new host, after an optimization")
        leaver = peers.pop(2)
        leaver.expect("destroy")
        for answer in together(peers, f"until world={len(peers)}"):
            if answer["code"] != SUCCESS:
                raise lib.Failed(f"after a peer has left: {answer}")
        reduce_all(peers, "after a host has left")
        measures(lab, peers, None, "after a host has left")
        reduce_all(peers, "after a host has left and an optimization")
        lib.measure_again(lab.master)
        measures(lab, peers, "12 links of 4 hosts", "after a request to measure again")
        reduce_all(peers, "after all links were measured again")
        lab.check_alive()


def bandwidth(lab):
    """Returns rates and caps by the names of the hosts, and the lowest age of any of them in seconds."""
    found = lib.tables("--master", lab.master, "bandwidth")
    return ({(r["from"], r["to"]): (r["rate"], r["round_trip"], r["source"]) for r in found["links"]},
            {r["host"]: (r["out"], r["in"]) for r in found["hosts"]},
            min(r["measured"] for table in found.values() if isinstance(table, list) for r in table) / 1e9)


def anew():
    """The journal has the rates, although master and agents have ended."""
    with lib.Lab(3) as lab:
        ports = [lib.free_port() for _ in range(3)]
        state = lab.folder / "state"

        def start():
            lab.start_master(options=(*QUICK, "--state-dir", state))
            for host, port in enumerate(ports):
                lab.start_agent(host, options=("--p2p-port", str(port)))
            return lab.start_peers((0, 1, 2))

        peers = start()
        measures(lab, peers, "6 links of 3 hosts", "before all daemons end")
        measured = time.monotonic()
        *before, _ = bandwidth(lab)
        for peer in peers:
            peer.expect("destroy")
            lab.drop_peer(peer)
        for daemon in [*lab.agents.values(), lab.master]:
            lab.end(daemon)
        check(sorted(p.name for p in state.iterdir()) == ["lock", "rates.journal", "run.journal"],
              "the journal has a file for the rates", sorted(state.iterdir()))
        peers = start()
        *after, age = bandwidth(lab)
        check(before == after and len(before[0]) == 6 and len(before[1]) == 3,
              "the next master of the journal knows the rates and caps", (before, after))
        began = time.monotonic()
        measures(lab, peers, None, "after all daemons have started anew")
        check(time.monotonic() - began < 1 * lib.SLOWER,
              "after all daemons have started anew, the calls return soon", time.monotonic() - began)
        check(age > began - measured - 2, "the age counts from the measurement", (age, began - measured))
        reduce_all(peers, "after all daemons have started anew")
        lab.check_alive()


def watched(lab, *args, terminal):
    """Starts pcclctl, on a terminal or not. Returns the process and its output."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    process = subprocess.Popen([str(a) for a in (lib.CTL, "--master", lab.master.admin, *args)],
                               stdin=subprocess.DEVNULL, stdout=theirs)
    os.close(theirs)
    return process, ours


def output_of(process, file):
    """Returns everything that the process writes until it ends."""
    text = b""
    try:
        while chunk := os.read(file, 65536):
            text += chunk
    except OSError:  # a terminal without a process
        pass
    os.close(file)
    return process.wait(), text.decode()


def progress():
    """A terminal shows the progress of measurements. A pipe does not. Programs log it if they are told
    to."""
    with lib.Lab(3) as lab:
        lab.start(("--benchmark-ms", "400"))
        peers = [lab.start_peer(k, k, env={"PCCL_LOG_LEVEL": level} if level else {})
                 for k, level in enumerate(("INFO", "WARN", None))]
        lib.form_run(peers)
        for verb in (("topology",), ("topology", "measure")):
            lib.measure_again(lab.master)
            watch = Watch(lab.master)
            waits = [watched(lab, *verb, terminal=True)] if verb[1:] else []
            for peer in peers:
                peer.send("optimize")
            watch.wait(": round 1 of 3")
            waits = waits or [watched(lab, *verb, terminal=True)]
            piped = [] if verb[1:] else [watched(lab, *verb, terminal=False)]
            for peer in peers:
                peer.read()
            status, text = output_of(*waits[0])
            check(status == 0 and "measuring links [" in text and " of 3, about " in text,
                  f"pcclctl {' '.join(verb)} shows the progress on a terminal", text)
            for each in piped:
                status, text = output_of(*each)
                check(status == 0 and "measuring" not in text and "\r" not in text,
                      f"pcclctl {' '.join(verb)} shows no progress in a pipe", text)
        check(any("measuring links: round 2 of 3" in line for line in lab.agents[1].log_lines()),
              "the agents log the rounds", lab.agents[1].log_lines())
        logs = [peer.log.read_text() for peer in peers]
        check(logs[0].count("pcclOptimizeTopology: measuring links: round 2 of 3") == 2
              and logs[1] == "" and logs[2] == "",
              "a program logs the rounds with PCCL_LOG_LEVEL=INFO, and only then", logs)
        lab.check_alive()


# ---------------------------------------------------------------- beside other calls


def in_flight():
    with lib.Lab(3) as lab:
        lab.start(QUICK)
        peers = lab.start_peers((0, 1, 2))
        line = f"type=f32 op=sum count=30011 tag=0 ids={ids_of(peers)} verify=1"
        peers[0].expect(f"submit slot=0 {line}")
        answer = peers[0].call("optimize")
        check(answer["code"] == PENDING_ASYNC_OPS, "with an operation in flight: pcclPendingAsyncOps",
              answer)
        for peer in peers[1:]:
            peer.expect(f"submit slot=0 {line}")
        wrong = judge(together(peers, "await slot=0"))
        check(not wrong, "the operation in flight is right", wrong)

        watch = Watch(lab.master)
        for peer in peers[:2]:
            peer.send(f"beside {line}")
        for peer in peers[:2]:
            watch.wait(f"pid {peer.pid}: IDLE -> VOTE_OPTIMIZE_TOPOLOGY")
        os.kill(peers[0].pid, signal.SIGUSR1)  # while a peer has not called
        peers[2].send("optimize")
        watch.wait(": round 1 of ")
        os.kill(peers[1].pid, signal.SIGUSR1)  # while links are measured
        answers = [peer.read() for peer in peers]
        check(all(a["code"] == SUCCESS for a in answers)
              and all(a["launch"] == INVALID_USAGE and a["check"] == "ok" for a in answers[:2]),
              "another thread starts no operation during pcclOptimizeTopology", answers)
        check(not watch.has("PERFORM_COLLECTIVE"), "no operation starts while links are measured",
              watch.lines())
        reduce_all(peers, "after an optimization beside another thread")
        lab.check_alive()


# ---------------------------------------------------------------------------- failures


def killed(what, words):
    """A trainer is killed after the master has logged these words."""
    with lib.Lab(4) as lab:
        lab.start(("--benchmark-ms", "300", "--log-level", "debug"))
        peers = lab.start_peers((0, 1, 2, 3))
        peers, victim = peers[:3], peers[3]
        watch = Watch(lab.master)
        for peer in (*peers, victim):
            peer.send("optimize")
        watch.wait(words)
        victim.kill()
        answers = [peer.read() for peer in peers]
        check(all(a["code"] == TOPOLOGY_OPTIMIZATION_FAILED and "lost" in a["text"]
                  and "call pcclOptimizeTopology again" in a["text"] for a in answers),
              f"a trainer dies {what}: the others get the reason", answers)
        forbidden = ["update", "pending", f"reduce {OPERATIONS[1]}", f"submit slot=0 {OPERATIONS[1]}"]
        answers = [(line, *together(peers, line)) for line in forbidden]
        check(all(a["code"] == INVALID_USAGE and "repeat it" in a["text"]
                  for _, *several in answers for a in several),
              "after a failure only pcclOptimizeTopology is allowed", answers)
        optimize(peers, "the repetition")
        reduce_all(peers, "after the repetition")
        peers = join(lab, peers, 9, 3)
        optimize(peers, "with a newcomer after a failure")
        reduce_all(peers, "with a newcomer after a failure")
        lab.check_alive()


def only_one_left():
    """All other peers die. The last one is not asked to optimize for ever."""
    with lib.Lab(3) as lab:
        lab.start(QUICK)
        peers = lab.start_peers((0, 1, 2))
        watch = Watch(lab.master)
        for peer in peers:
            peer.send("optimize")
        watch.wait("measuring")
        for peer in peers[1:]:
            peer.kill()
        last = peers[0]
        answers = [last.read()]
        # A call that begins before the second loss is known may succeed.
        while answers[-1]["code"] in (TOPOLOGY_OPTIMIZATION_FAILED, SUCCESS) and len(answers) < 4:
            answers.append(last.call("optimize"))
        check(answers[-1]["code"] == INVALID_USAGE and "one peer" in answers[-1]["text"],
              "the last peer learns that there is nothing to optimize", answers)
        answer = last.call(f"reduce {OPERATIONS[1]}")
        check(answer["code"] == TOO_FEW_PEERS, "the last peer may make other calls", answer)
        peers = join(lab, [last], 9, 1)
        reduce_all(peers, "with a newcomer after all others have died")
        lab.check_alive()


# --------------------------------------------------------- ports that drop all packets


class Deaf(halfopen.Hosts):
    """Hosts that drop packets of other hosts."""

    def drop(self, host, port, source, *match):
        match = (*match, *(("match", "ip", "src", self.address(source)) if source is not None else ()))
        self.tc(host, "filter", "add", "dev", "eth0", "ingress", "protocol", "ip", "u32", "match",
                "ip", "protocol", "6", "0xff", "match", "ip", "dport", port, "0xffff", *match,
                "action", "mirred", "egress", "redirect", "dev", "nowhere")

    def mute(self, host, source=None):
        """Drops what arrives at the port for benchmarks, from one host or from all."""
        self.drop(host, BENCHMARK, source)

    def no_more_links(self, host, source):
        """Drops the first packet of each new connection to the port for links. Ports and flags are
        where headers of IP without options have them."""
        self.drop(host, halfopen.P2P, source, "match", "u8", "0x02", "0x12", "at", "33")

    def hear(self, host):
        self.tc(host, "filter", "del", "dev", "eth0", "ingress")


def ring_links(lab):
    """Returns the links of the only ring as pairs of hosts. The host that opened a link sends."""
    hosts = {lab.hosts.address(h): h for h in lab.agents}
    found = set()
    for host, daemon in lab.agents.items():
        for local, remote, _ in daemon.connections():
            if int(remote.rsplit(":", 1)[1], 16) == halfopen.P2P:
                raw = bytes.fromhex(remote.rsplit(":", 1)[0])[-4:][::-1]
                found.add((host, hosts[".".join(str(b) for b in raw)]))
    return found


def muted():
    missing = halfopen.missing()
    hosts = None if missing else lib.make_namespaces(4, Deaf)
    if not hosts:
        print(f"# without hosts whose ports drop packets: {missing}")
        return
    with lib.Lab(hosts=hosts) as lab:
        lab.start((*QUICK, "--algorithm", "ring", "--new-link-timeout-ms", "600"))
        peers = lab.start_peers((0, 1, 2, 3), form=lib.form_ring)
        hosts.mute(1, source=0)
        check(ring_links(lab) == {(0, 1), (1, 2), (2, 3), (3, 0)},
              "before the optimization the ring has the order of the hosts", ring_links(lab))
        measures(lab, peers, "12 links of 4 hosts", "one path drops all packets")
        found = ring_links(lab)
        check((0, 1) not in found and len(found) >= 4,
              "the ring does not use a path on which nothing can be measured", found)
        check(any("host host-0 could not measure its link to host host-1" in line
                  for line in lab.master.log_lines()), "the master's log names the path")
        reduce_all(peers, "with a path on which nothing can be measured")
        hosts.hear(1)
        hosts.mute(3)
        lib.measure_again(lab.master)
        before = ring_links(lab)
        measures(lab, peers, "12 links of 4 hosts", "a port drops all packets")
        check(ring_links(lab) == before, "if no ring avoids the paths, the ring stays",
              (before, ring_links(lab)))
        reduce_all(peers, "with a port that drops all packets")
        hosts.hear(3)
        lib.measure_again(lab.master)
        measures(lab, peers, "12 links of 4 hosts", "after all paths work again")
        reduce_all(peers, "after all paths work again")
        no_link(lab, peers)
        lab.check_alive()


def no_link(lab, peers):
    """Rates can be measured where no link can be opened."""
    before = ring_links(lab)
    host = 0
    to = next(b for a, b in before if a == host)
    wanted, *others = [h for h in lab.agents if h not in (host, to)]
    for other in (to, *others):
        lab.hosts.mute(other, source=host)
    lab.hosts.no_more_links(wanted, source=host)
    lib.measure_again(lab.master)
    answers = together(peers, "optimize")
    check(all(a["code"] == TOPOLOGY_OPTIMIZATION_FAILED and f"host-{host}" in a["text"]
              and f"host-{wanted}" in a["text"] for a in answers),
          "the new ring cannot be opened: all calls fail with the names of the hosts", answers)
    measures(lab, peers, None, "after a ring could not be opened")
    check(ring_links(lab) == before, "the ring stays if the new ring cannot be opened",
          (before, ring_links(lab)))
    reduce_all(peers, "after a ring could not be opened")


def test():
    few_hosts()
    groups_and_runs()
    runs_take_turns()
    life()
    anew()
    progress()
    in_flight()
    killed("in the first measurement", ": round 1 of ")
    killed("in the last measurement", "all hosts at once")
    only_one_left()
    muted()


lib.run(test, 180)
