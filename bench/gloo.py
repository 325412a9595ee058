# SPDX-License-Identifier: Apache-2.0
"""One rank of bench/allreduce's rival: torch.distributed with gloo.

Usage: gloo.py RANK RANKS PORT ROUNDS LARGEST_BYTES; prints the same lines as allreduce-ranks.
"""
import statistics
import sys
import time

import torch
import torch.distributed as dist

RESNET50_FLOATS = 25557032
ROUND_S = 0.03


def time_round(values, calls):
    dist.barrier()
    begun = time.perf_counter()
    for _ in range(calls):
        dist.all_reduce(values)
    mine = torch.tensor([(time.perf_counter() - begun) / calls * 1e6], dtype=torch.float64)
    dist.all_reduce(mine, op=dist.ReduceOp.MAX)
    return mine.item()


def measure(case, count, rounds):
    values = torch.zeros(count)
    trial = time_round(values, 3)
    calls = min(20000, int(ROUND_S * 1e6 / (trial + 0.1)) + 1)
    times = [time_round(values, calls) for _ in range(rounds)]
    if dist.get_rank() == 0:
        print(case, count * 4, "gloo", f"{min(times):.3f} {statistics.median(times):.3f}", flush=True)


def main():
    rank, ranks, port, rounds, largest = map(int, sys.argv[1:])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank,
                            world_size=ranks)
    size = 4096
    while size <= largest:
        measure("size", size // 4, rounds)
        size *= 4
    measure("resnet50", RESNET50_FLOATS, rounds)
    dist.destroy_process_group()


main()
