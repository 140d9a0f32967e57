#!/usr/bin/env python3
"""Trains the networks that Warpsight shares between GPUs with PyTorch's DistributedDataParallel, and prints microseconds a step.

    torchrun --nproc-per-node 2 tests/peers/ddp_torch.py [--out FILE] [--repeats 5] [--ways eager,compile]

Each rank takes its part of the batch, as in Warpsight. Ways: eager; compile (torch.compile around the wrapped network, its
default mode). Data lies on the GPU, rows in order, plain fused SGD.
"""
import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist

import train_torch

CASES = {
    "784-2048-2048-10 b8192 tf32": dict(data="mnist", widths=[784, 2048, 2048, 10], batch=8192, precision="tf32"),
    "784-128-10 b1024 tf32": dict(data="mnist", widths=[784, 128, 10], batch=1024, precision="tf32"),
    "784x5-10 b1024 tf32": dict(data="mnist", widths=[784] * 5 + [10], batch=1024, precision="tf32", bias=False),
    "784-1024-1024-1024-10 b1024 fp16": dict(data="mnist", widths=[784, 1024, 1024, 1024, 10], batch=1024, precision="fp16"),
}
STEPS = 50


class SharedStep(train_torch.NetStep):
    def __init__(self, case, way):
        super().__init__(case, "eager")
        ranks, rank = dist.get_world_size(), dist.get_rank()
        self.steps_an_epoch = len(self.x) // self.batch
        self.first, self.part = rank * self.batch // ranks, self.batch // ranks
        self.net = torch.nn.parallel.DistributedDataParallel(self.net, device_ids=[rank])
        self.sgd = torch.optim.SGD(self.net.parameters(), lr=0.001 / self.scale, fused=True)
        self.loss = torch.compile(self.forward) if way == "compile" else self.forward

    def __call__(self, i):
        row = i % self.steps_an_epoch * self.batch + self.first
        self.sgd.zero_grad(set_to_none=True)
        loss = self.loss(self.x[row:row + self.part], self.y[row:row + self.part])
        loss.backward()
        self.sgd.step()
        return loss


def microseconds(step, repeats):
    def run():
        for i in range(STEPS):
            step(i)
        torch.cuda.synchronize()
    for _ in range(3):
        run()
    times = []
    for _ in range(repeats):
        dist.barrier()
        begin = time.perf_counter()
        run()
        times.append((time.perf_counter() - begin) * 1e6 / STEPS)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ways", default="eager,compile")
    arguments = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rows = []
    for name, case in CASES.items():
        for way in arguments.ways.split(","):
            times = microseconds(SharedStep(case, way), arguments.repeats)
            rows.append({"case": name, "way": way, "us_per_step": statistics.median(times), "fastest": min(times),
                         "slowest": max(times)})
            if dist.get_rank() == 0:
                print(f"{name:40} {way:8} {rows[-1]['us_per_step']:9.1f} us a step", flush=True)
    if dist.get_rank() == 0 and arguments.out:
        with open(arguments.out, "w") as file:
            json.dump({"torch": torch.__version__, "nccl": ".".join(map(str, torch.cuda.nccl.version())),
                       "gpus": dist.get_world_size(), "cases": rows}, file, indent=1)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
