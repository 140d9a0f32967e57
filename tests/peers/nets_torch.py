#!/usr/bin/env python3
"""Trains the convolutional networks and the GPTs of the presets in PyTorch and prints microseconds a step, one JSON object
a line.

    tests/peers/nets_torch.py --case "mnist cnn b64 bf16" --ways graph,best

Ways: eager; graph (steps in eager ops, as one CUDA graph); best (that graph over compiled forward and backward). The
optimizers are PyTorch's fused ones, pictures lie on the GPU and channels last. Pixels and symbols are random: what a step
costs does not depend on them. --mode chooses how `best` compiles. tests/gpu/net_times and transformer_times time the same
networks in Warpsight.
"""
import argparse
import gc
import json
import statistics
import time

import torch
from torch import nn

from train_torch import captured, microseconds

CASES = {f"{net} b{batch} {precision}": dict(net=net, batch=batch, precision=precision)
         for net, batches in (("mnist cnn", (64, 512)), ("pictures residual", (512,)))
         for batch in batches for precision in ("bf16", "tf32")}
CASES |= {f"gpt {blocks}x{width} b{batch} {precision}": dict(net="gpt", batch=batch, precision=precision, blocks=blocks,
                                                             width=width, heads=heads, context=context)
          for blocks, width, heads, context, batch in ((4, 128, 4, 128, 32), (6, 384, 6, 256, 64))
          for precision in ("bf16", "tf32")}
STEPS = 10
PICTURES = 10240
SYMBOLS = 96


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


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        texts, time_, width = x.shape
        heads = self.mix(self.before(x)).view(texts, time_, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(texts, time_, width))
        return x + self.narrow(nn.functional.gelu(self.widen(self.between(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, blocks, width, heads, context):
        super().__init__()
        self.table, self.places = nn.Embedding(SYMBOLS, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, SYMBOLS)

    def forward(self, symbols):
        return self.head(self.last(self.blocks(self.table(symbols) + self.places.weight))).flatten(0, 1)


class TextStep:
    """One training step of a GPT over random texts that lie on the GPU."""

    def __init__(self, case, way, mode):
        torch.set_float32_matmul_precision("high" if case["precision"] == "tf32" else "highest")
        self.net = Gpt(case["blocks"], case["width"], case["heads"], case["context"]).cuda()
        self.texts = torch.randint(SYMBOLS, (STEPS * case["batch"], case["context"] + 1), device="cuda")
        self.batch, self.half = case["batch"], case["precision"] == "bf16"
        matrices = [p for p in self.net.parameters() if p.dim() > 1]
        others = [p for p in self.net.parameters() if p.dim() < 2]
        groups = [dict(params=matrices, weight_decay=0.1), dict(params=others, weight_decay=0.0)]
        self.adam = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), fused=True, capturable=True)
        self.loss = torch.compile(self.forward, mode=mode) if way == "best" else self.forward

    def forward(self, symbols, following):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=self.half, cache_enabled=False):
            z = self.net(symbols)
        return nn.functional.cross_entropy(z.float(), following.flatten())

    def __call__(self, i):
        row = i * self.batch % len(self.texts)
        text = self.texts[row:row + self.batch]
        self.adam.zero_grad(set_to_none=True)
        self.loss(text[:, :-1].contiguous(), text[:, 1:].contiguous()).backward()
        self.adam.step()


class PictureStep:
    """One training step over the pictures [i * batch, (i + 1) * batch) of a set that lies on the GPU."""

    def __init__(self, case, way, mode):
        net, batch, precision = case["net"], case["batch"], case["precision"]
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
        self.loss = torch.compile(self.forward, mode=mode) if way == "best" else self.forward

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


def measure(name, way, mode, repeats):
    case = CASES[name]
    step = (TextStep if case["net"] == "gpt" else PictureStep)(case, way, mode)
    run = lambda: [step(i) for i in range(STEPS)]
    begin = time.perf_counter()
    if way != "eager":
        run = captured(step, STEPS).replay
    ready = time.perf_counter() - begin
    times = microseconds(run, STEPS, repeats)
    return {"case": name, "way": way, "mode": mode if way == "best" else "", "ready_seconds": ready,
            "us_per_step": statistics.median(times), "fastest": min(times), "slowest": max(times)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", help="a case's name; all when left out")
    parser.add_argument("--ways", default="eager,graph,best")
    parser.add_argument("--mode", default="max-autotune-no-cudagraphs", help="torch.compile's mode for `best`")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    for name in options.case or CASES:
        for way in options.ways.split(","):
            torch.compiler.reset()
            gc.collect()
            torch.cuda.empty_cache()
            print(json.dumps(measure(name, way, options.mode, options.repeats)), flush=True)


if __name__ == "__main__":
    main()
