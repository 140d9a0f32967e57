#!/usr/bin/env python3
"""Trains the convolutional networks of the presets in PyTorch and prints microseconds a step, one JSON object a line.

    tests/peers/nets_torch.py --case "mnist cnn b64 bf16" --ways graph,best

Ways: eager; graph (steps in eager ops, as one CUDA graph); best (that graph over compiled forward and backward). The
optimizers are PyTorch's fused ones, pictures lie on the GPU and channels last. Their pixels are random: what a step costs
does not depend on them. tests/gpu/net_times times the same networks in Warpsight.
"""
import argparse
import gc
import json
import statistics

import torch
from torch import nn

from train_torch import captured, microseconds

CASES = {f"{net} b{batch} {precision}": dict(net=net, batch=batch, precision=precision)
         for net, batches in (("mnist cnn", (64, 512)), ("pictures residual", (512,)))
         for batch in batches for precision in ("bf16", "tf32")}
STEPS = 10
PICTURES = 10240


def mnist_cnn():
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1568, 10))


def normed(channels_in, channels, *more):
    return [nn.Conv2d(channels_in, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(), *more]


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.branch = nn.Sequential(*normed(channels, channels), *normed(channels, channels))

    def forward(self, x):
        return x + self.branch(x)


def residual_net():
    pool = lambda: nn.MaxPool2d(2)
    return nn.Sequential(*normed(3, 64), *normed(64, 128, pool()), Residual(128), *normed(128, 256, pool()),
                         *normed(256, 256, pool()), Residual(256), nn.MaxPool2d(4), nn.Flatten(), nn.Linear(256, 10))


class Step:
    """One training step over the pictures [i * batch, (i + 1) * batch) of a set that lies on the GPU."""

    def __init__(self, net, batch, precision, way):
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = precision == "tf32"
        torch.backends.cudnn.benchmark = True
        channels, side = (1, 28) if net == "mnist cnn" else (3, 32)
        self.net = (mnist_cnn() if net == "mnist cnn" else residual_net()).cuda().to(memory_format=torch.channels_last)
        x = torch.randn(PICTURES, channels, side, side, device="cuda")
        self.x = x.to(memory_format=torch.channels_last)
        self.y = torch.randint(10, (PICTURES,), device="cuda")
        self.batch, self.half = batch, precision == "bf16"
        self.sgd = torch.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9, fused=True)
        self.loss = torch.compile(self.forward, mode="max-autotune-no-cudagraphs") if way == "best" else self.forward

    def forward(self, x, y):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=self.half, cache_enabled=False):
            z = self.net(x)
        return nn.functional.cross_entropy(z.float(), y)

    def __call__(self, i):
        row = i * self.batch % PICTURES
        self.sgd.zero_grad(set_to_none=True)
        loss = self.loss(self.x[row:row + self.batch], self.y[row:row + self.batch])
        loss.backward()
        self.sgd.step()


def measure(name, way, repeats):
    case = CASES[name]
    step = Step(case["net"], case["batch"], case["precision"], way)
    run = lambda: [step(i) for i in range(STEPS)]
    if way != "eager":
        run = captured(step, STEPS).replay
    times = microseconds(run, STEPS, repeats)
    return {"case": name, "way": way, "us_per_step": statistics.median(times), "fastest": min(times), "slowest": max(times)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", help="a case's name; all when left out")
    parser.add_argument("--ways", default="eager,graph,best")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    for name in options.case or CASES:
        for way in options.ways.split(","):
            torch.compiler.reset()
            gc.collect()
            torch.cuda.empty_cache()
            print(json.dumps(measure(name, way, options.repeats)), flush=True)


if __name__ == "__main__":
    main()
