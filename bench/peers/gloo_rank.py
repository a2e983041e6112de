# SPDX-License-Identifier: MIT
"""One rank of Gloo. usage: gloo_rank.py RANK WORLD ADDRESS PORT

Each line "BYTES WARM-UPS N" of standard input is answered by a line of N times in seconds."""

import datetime
import sys
import time

import torch
import torch.distributed as dist


def measure(rank, world, size, warm_ups, n):
    tensor = torch.full((size // 4,), float(rank + 1))
    dist.all_reduce(tensor)
    wanted = world * (world + 1) / 2
    if float(tensor.min()) != wanted or float(tensor.max()) != wanted:
        return ["error: a wrong sum"]
    tensor.zero_()  # the zeros stay zeros in a sum
    times = []
    for _ in range(warm_ups + n):
        began = time.perf_counter()
        dist.all_reduce(tensor)
        times.append(time.perf_counter() - began)
    return [f"{t:.9f}" for t in times[warm_ups:]]


def main(rank, world, address, port):
    dist.init_process_group("gloo", init_method=f"tcp://{address}:{port}", rank=rank,
                            world_size=world, timeout=datetime.timedelta(minutes=4))
    print("ready", flush=True)
    for line in sys.stdin:
        print(*measure(rank, world, *map(int, line.split())), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
