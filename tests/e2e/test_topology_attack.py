#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An attacker floods the ports for benchmarks while links are measured: with noise, with halves of
hellos, with connections that it never reads, and with hellos for measurements that no master has
ordered. All optimizations succeed, the rates are as without the attacks, and operations are right."""

import shutil
import subprocess

import lib
from attack import Attack
from lib import SUCCESS, check, ids_of, judge, together

RATE = 200  # Mbit/s of each slow cable
NEAR = 0.25  # the error of a rate that is accepted
ATTEMPTS = 4
BENCHMARK = 48151  # port
# The attacks, and the ports that are attacked.
ATTACKS = {"noise": BENCHMARK, "half_hellos": BENCHMARK, "unread_hellos": BENCHMARK, "links": None}
OPERATIONS = ("type=f32 op=sum count=1009", "type=f32 op=sum count=400009 place=in")
SLOW = (1, 2)  # hosts
ATTACKER = 3  # host


class Hosts(lib.Namespaces):
    """Hosts of which some have slow cables."""

    def _cable(self, host):
        super()._cable(host)
        if host not in SLOW:
            return
        for name, device in ((self.name(host), "eth0"), (self.name(self.middle), f"to-{host}")):
            done = subprocess.run(
                ["tc", "-n", name, "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{RATE}mbit",
                 "burst", "128k", "latency", "20ms"],
                capture_output=True, text=True, timeout=20, check=False)
            if done.returncode:
                raise OSError(f"tc: {done.stderr.strip()}")


def rates(lab):
    """Returns the rates that the master knows, in Mbit/s. All links end at a slow host."""
    links = lib.tables("--master", lab.master, "bandwidth")["links"]
    return {(r["from"], r["to"]): r["rate"] / 1e6 for r in links}


def optimize(lab, peers, what):
    lib.measure_again(lab.master)
    answers = together(peers, "optimize")
    check(all(a["code"] == SUCCESS for a in answers), f"{what}: pcclOptimizeTopology succeeds", answers)
    return rates(lab)


def is_near(found, wanted):
    return set(found) == set(wanted) and all(
        abs(rate - wanted[pair]) <= NEAR * wanted[pair] for pair, rate in found.items())


def reduce_all(peers, what):
    wrong = None
    for tag, line in enumerate(OPERATIONS):
        wrong = wrong or judge(together(peers, f"reduce {line} tag={tag} seed={tag} "
                                        f"ids={ids_of(peers)} verify=1"))
    check(not wrong, f"{what}: operations are right", wrong)


def test():
    hosts = lib.make_namespaces(4, Hosts) if shutil.which("tc") else None
    if not hosts:
        raise lib.Skipped("needs root, network namespaces and tc")
    with lib.Lab(hosts=hosts) as lab:
        lab.start_master(options=("--benchmark-ms", "500"))
        for host in (0, *SLOW):
            lab.start_agent(host)
        peers = lab.start_peers((0, *SLOW))
        wanted = dict.fromkeys(optimize(lab, peers, "no attack"), float(RATE))
        reduce_all(peers, "no attack")
        kept = [d.status("VmRSS") for d in lab.daemons]
        for name, port in ATTACKS.items():
            found = [{}]
            with Attack(lab, name, ATTACKER, only=port) as attack:
                # A busy machine may be too slow for a fast measurement.
                while not is_near(found[-1], wanted) and len(found) <= ATTEMPTS:
                    found.append(optimize(lab, peers, name))
                reduce_all(peers, name)
            check(is_near(found[-1], wanted),
                  f"{name}, {attack.rate:.0f} times per second: the rates are as without it", found)
            lab.check_alive()
        more = [d.status("VmRSS") - k for d, k in zip(lab.daemons, kept)]
        check(lib.sanitized() or max(more) < 32 << 10, "the attacks hardly raise the daemons' memory", more)


lib.run(test, 120)
