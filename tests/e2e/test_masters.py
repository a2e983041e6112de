#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One master, several runs: when a run is over, and how an operator or a program ends a run."""

import json
import os
import pathlib
import signal
import time

import halfopen
import lib
from lib import (INVALID_USAGE, MASTER_CONNECTION_FAILED, check, ctl, free_port, together)

TENSOR = "tensors name=w type=f32 count=1000 seed=1 like=0"


def sync(peers, revision):
    for peer in peers:
        peer.expect(f"state revision={revision}")
        peer.expect(TENSOR)
    return together(peers, "sync")


def job(lab, revision, first, group=0):
    """Starts two peers that synchronize at one revision."""
    peers = lab.start_peers([0, 1], group=group, first=first)
    answers = sync(peers, revision)
    return peers, [a["code"] for a in answers], answers[0]["text"]


def leave(lab, peers):
    for peer in peers:
        peer.expect("destroy")
        lab.drop_peer(peer)
    lib.until(lambda: lib.ask("--master", lab.master, "status")[0]["accepted"] == 0,
              "the master does not notice that the peers have left")


def restart_master(lab, number):
    options = ["--state-dir", lab.folder / "journal"]
    port = lab.master.port
    if number == signal.SIGKILL:
        lab.drop(lab.master)
    else:
        lab.end(lab.master, number)
    lab.start_master(port=port, options=options)


def second_job(lab):
    peers, codes, text = job(lab, 5, 0)
    check(codes == [0, 0], "the first job starts at revision 5", text)
    leave(lab, peers)
    peers, codes, text = job(lab, 0, 2)
    check(codes == [0, 0], "the second job starts at revision 0 after the first job has left", text)
    leave(lab, peers)
    for number in (signal.SIGTERM, signal.SIGKILL):
        restart_master(lab, number)
        peers, codes, text = job(lab, 0, 4)
        check(codes == [0, 0], f"the next job starts at revision 0 after {number.name} to the master", text)
        leave(lab, peers)


def last_words(lab):
    """The master does not expect members that have left to come back, even if their agents or the
    master die just afterwards."""
    options = ["--state-dir", lab.folder / "journal"]
    peers, codes, text = job(lab, 3, 30)
    check(codes == [0, 0], "a job whose agents will die at its end starts", text)
    lab.master.process.send_signal(signal.SIGSTOP)
    for peer in peers:
        peer.send("destroy")
    time.sleep(0.5)  # for this time the master is stopped, and no call may return
    woken = time.monotonic_ns()
    lab.master.process.send_signal(signal.SIGCONT)
    late = [(peer.read()["end"] - woken) / 1e9 for peer in peers]
    check(min(late) > 0, "pcclDestroyCommunicator returns only after the master has processed the leave", late)
    for host in range(2):
        lab.drop(lab.agents[host])
        lab.start_agent(host)
    for peer in peers:
        lab.drop_peer(peer)
    peers, codes, text = job(lab, 0, 32)
    check(codes == [0, 0],
          "the agents were killed after a job had left: the next job starts at revision 0", text)
    lab.master.process.send_signal(signal.SIGSTOP)
    for peer in peers:
        peer.send("destroy")
    time.sleep(0.2)  # the leaves are in the socket of a master that is stopped
    port = lab.master.port
    lab.drop(lab.master)
    for peer in peers:
        check(peer.read()["code"] == 0, "pcclDestroyCommunicator does not wait for a master that is gone")
        lab.drop_peer(peer)
    lab.start_master(port=port, options=options)
    peers, codes, text = job(lab, 0, 34)
    check(codes == [0, 0],
          "the master was killed before it had read the leaves: the next master gets them", text)
    leave(lab, peers)


def killed_job(lab):
    """The run of members that died is kept until an operator resets it."""
    peers, codes, text = job(lab, 7, 10)
    check(codes == [0, 0], "a job starts at revision 7", text)
    for peer in peers:
        peer.kill()
        lab.drop_peer(peer)
    peers, codes, text = job(lab, 9, 12)
    check(codes == [INVALID_USAGE] * 2 and "pcclctl reset" in str(text),
          "after the death of all members revision 9 does not follow 7, and the error names "
          "pcclctl reset", text)
    for peer in peers:
        lab.drop_peer(peer)
    restart_master(lab, signal.SIGKILL)
    done = ctl("--json", "--master", lab.master.admin, "reset")
    if done.returncode != 0:  # the journal knows peers that are not connected
        done = ctl("--json", "--master", lab.master.admin, "reset", "--yes")
    answer = json.loads(done.stdout) if done.returncode == 0 else {}
    check(answer.get("reset", [{}])[0].get("revisions") == 1, "pcclctl reset forgets one revision",
          done.stdout + done.stderr)
    restart_master(lab, signal.SIGKILL)
    peers, codes, text = job(lab, 0, 14)
    check(codes == [0, 0], "after a reset a job starts at revision 0, even when the master was restarted", text)
    return peers


def reset_with_members(lab, peers):
    done = ctl("--master", lab.master.admin, "reset")
    check(done.returncode != 0 and "2 peers" in done.stderr and "--yes" in done.stderr,
          "a run with members is not reset without --yes", done.stderr)
    peers[0].send("update")
    done = ctl("--json", "--master", lab.master.admin, "reset", "--yes")
    check(done.returncode == 0 and json.loads(done.stdout)["reset"][0]["kicked"] == 2,
          "a run with members is reset with --yes", done.stdout + done.stderr)
    answer = peers[0].read()
    check(answer["code"] == MASTER_CONNECTION_FAILED and "operator" in answer["text"],
          "a reset ends a blocked call with pcclMasterConnectionFailed", answer)
    done = ctl("--agent", lab.agents[0].admin, "reset")
    check(done.returncode == 64, "an agent cannot be reset", done.stderr)
    for peer in peers:
        lab.drop_peer(peer)


def child_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii"))


def interrupted(lab):
    """pcclInterruptMaster ends the run. So does SIGTERM to the master of a program."""
    for how in ("interrupt", "SIGTERM"):
        address = f"127.0.0.1:{free_port()}"
        owner = lab.start_peer(20, master=address, env={"PCCL_MASTERD": str(lib.MASTERD)})
        owner.expect(f"master addr={address}")
        peers = lab.start_peers([0, 1], first=21, master=address)
        peers[0].send("update")  # waits for the other peer
        began = time.monotonic()
        if how == "interrupt":
            owner.expect("master-signal")
        else:
            os.kill(child_of(owner.pid), signal.SIGTERM)
        answer = peers[0].read()
        took = time.monotonic() - began
        check(answer["code"] == MASTER_CONNECTION_FAILED and "told to end" in answer["text"]
              and took < lib.SLOWER, f"{how}: a blocked call ends", f"{took:.1f} s, {answer}")
        answer = peers[1].call("update")
        check(answer["code"] == MASTER_CONNECTION_FAILED and "told to end" in answer["text"],
              f"{how}: the next call of the other peer gets the same error", answer)
        owner.expect("master-await")
        for peer in [owner, *peers]:
            lab.drop_peer(peer)


def disconnected_at_the_end(hosts):
    """Nobody restarts the master. An agent that is disconnected when the master gets the order to
    end does not wait for the next master."""
    with lib.Lab(hosts=hosts) as lab:
        for host in range(2):
            lab.start_agent(host)
        port = free_port()
        address = f"{hosts.address(0)}:{port}"
        owner = lab.start_peer(20, master=address, env={"PCCL_MASTERD": str(lib.MASTERD)})
        owner.expect(f"master addr={address}")
        peers = lab.start_peers([0, 1], first=21, master=address)
        peers[1].send("update")  # waits for the other peer
        hosts.reject(1, 0, True)
        for host, end in ((1, "dport"), (0, "sport")):
            halfopen.run(hosts, host, "ss", "-KHtn", "state", "established",
                         f"{end} = :{port} and {'src' if host else 'dst'} {hosts.address(1)}")
        owner_log = lib.Daemon(owner.process, "the master", 0, owner.log)
        owner_log.await_log("is gone")
        owner.expect("master-signal")
        answer = peers[0].call("update")
        check(answer["code"] == MASTER_CONNECTION_FAILED and "told to end" in answer["text"],
              "the peer of a connected agent gets the error when its master ends", answer)
        hosts.reject(1, 0, False)
        answer = peers[1].read()
        check(answer["code"] == MASTER_CONNECTION_FAILED and "told to end" in answer["text"],
              "the peer of a disconnected agent gets the error of the master's end when the "
              "agent connects again", answer)
        owner.expect("master-await")


def test():
    hosts = not halfopen.missing() and lib.make_namespaces(2)
    if hosts:
        disconnected_at_the_end(hosts)
    with lib.Lab(2) as lab:
        lab.start(master_options=["--state-dir", lab.folder / "journal"])
        second_job(lab)
        last_words(lab)
        peers = killed_job(lab)
        reset_with_members(lab, peers)
        interrupted(lab)
        lab.check_alive()


lib.run(test, 120)
