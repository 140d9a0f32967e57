#!/usr/bin/env python3
"""Trains Warpsight's networks in PyTorch in several ways and prints microseconds a step, one JSON object a line.

    tests/peers/train_torch.py --case "mnist 784-128-10 b64 tf32" --ways eager,best

Ways: eager; compile (torch.compile, max-autotune); graph (the epoch, in eager ops, as one CUDA graph); best (that graph
over compiled forward and backward with fused SGD). The line's gradient is written by hand; way autograd lets PyTorch find
it, compiled and in a graph like best. With --losses FILE: the losses of two epochs in file order instead.
"""
import argparse
import functools
import gc
import json
import statistics
import sys
import time

import torch

import data

CASES = {
    "iris 4-5-3 full fp32": dict(data="iris", widths=[4, 5, 3], batch=0, precision="fp32"),
    "mnist 784-128-10 b64 tf32": dict(data="mnist", widths=[784, 128, 10], batch=64, precision="tf32"),
    "mnist 784-128-10 b128 tf32": dict(data="mnist", widths=[784, 128, 10], batch=128, precision="tf32"),
    "mnist 784-128-10 b512 tf32": dict(data="mnist", widths=[784, 128, 10], batch=512, precision="tf32"),
    "mnist 784-128-10 b0 tf32": dict(data="mnist", widths=[784, 128, 10], batch=0, precision="tf32"),
    "mnist 784-128-10 b64 fp32": dict(data="mnist", widths=[784, 128, 10], batch=64, precision="fp32"),
    "mnist 784-128-10 b64 bf16": dict(data="mnist", widths=[784, 128, 10], batch=64, precision="bf16"),
    "mnist 784-128-10 b64 fp16": dict(data="mnist", widths=[784, 128, 10], batch=64, precision="fp16"),
    "mnist 784x5-10 b64 tf32": dict(data="mnist", widths=[784] * 5 + [10], batch=64, precision="tf32", bias=False),
}
for _p in ("fp16", "tf32"):
    for _w in (16, 128, 1024, 4096):
        CASES[f"mnist 784-w-w-w-10 b32 {_p} w{_w}"] = dict(data="mnist", widths=[784, _w, _w, _w, 10], batch=32,
                                                           precision=_p)
CASES["line 50k epilogue"] = dict(data="line", points=50_000)
CASES["line 5M epilogue"] = dict(data="line", points=5_000_000)

MODES = {"compile": "max-autotune", "best": "max-autotune-no-cudagraphs", "autograd": "max-autotune-no-cudagraphs"}
LOSS_SCALE = 1024.0  # fp16: fixed, which spares PyTorch the search that Warpsight makes
GRAPH_STEPS = 100
EAGER_STEPS = 20


def network(widths, bias):
    layers = []
    for i, (weights, offsets) in enumerate(data.start_weights(widths, bias)):
        linear = torch.nn.Linear(widths[i], widths[i + 1], bias=bias)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weights.T))
            if bias:
                linear.bias.copy_(torch.from_numpy(offsets))
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1]).cuda()


@functools.cache
def rows_on_host(name):
    return data.mnist() if name == "mnist" else data.iris()


def rows_of(name):
    x, y = rows_on_host(name)
    return torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda()


class NetStep:
    """One training step over rows [row, row + batch) of data that lies on the GPU."""

    def __init__(self, case, way, lr=0.001):
        self.precision = case["precision"]
        torch.set_float32_matmul_precision("high" if self.precision == "tf32" else "highest")  # tf32 only where asked for
        self.x, self.y = rows_of(case["data"])
        self.batch = case["batch"] or len(self.x)
        self.steps_an_epoch = len(self.x) // self.batch
        self.net = network(case["widths"], case.get("bias", True))
        self.scale = LOSS_SCALE if self.precision == "fp16" else 1.0
        if self.precision == "fp64":
            self.x, self.net = self.x.double(), self.net.double()
        self.sgd = torch.optim.SGD(self.net.parameters(), lr=lr / self.scale, fused=True)
        self.loss = torch.compile(self.forward, mode=MODES[way]) if way in MODES else self.forward

    def swap_ends(self):
        """The same order of rows as in our timing, which exchanges the first and the last: a shuffled epoch."""
        for t in (self.x, self.y):
            t[[0, -1]] = t[[-1, 0]]

    def forward(self, x, y):
        half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.precision)
        with torch.autocast("cuda", dtype=half, enabled=half is not None, cache_enabled=False):
            z = self.net(x)
        z = z if self.precision == "fp64" else z.float()
        return torch.nn.functional.cross_entropy(z, y) * self.scale

    def __call__(self, i):
        row = i % self.steps_an_epoch * self.batch
        self.sgd.zero_grad(set_to_none=True)
        loss = self.loss(self.x[row:row + self.batch], self.y[row:row + self.batch])
        loss.backward()
        self.sgd.step()
        return loss

    def loss_of(self, i):
        return self(i).detach().clone() / self.scale


class LineStep:
    """An epoch of regression over all points, with the gradient written by hand but for way `autograd`."""

    def __init__(self, case, way, lr=0.001):
        x, y = data.line(case["points"])
        self.x, self.y, self.lr = torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda(), lr
        self.autograd = way == "autograd"
        self.w, self.b = (torch.zeros((), device="cuda", requires_grad=self.autograd) for _ in range(2))
        self.sgd = torch.optim.SGD([self.w, self.b], lr=lr, fused=True) if self.autograd else None
        step = self.loss if self.autograd else self.by_hand
        self.step = torch.compile(step, mode=MODES[way]) if way in MODES else step

    def loss(self, x, y, w, b):
        return ((w * x + b - y) ** 2).mean()

    def by_hand(self, x, y, w, b):
        d = w * x + b - y
        slope, offset, loss = (d * x).mean(), d.mean(), (d * d).mean()
        w.sub_(2 * self.lr * slope)
        b.sub_(2 * self.lr * offset)
        return loss

    def __call__(self, _):
        if self.autograd:
            self.sgd.zero_grad(set_to_none=True)
            loss = self.step(self.x, self.y, self.w, self.b)
            loss.backward()
            self.sgd.step()
            return loss
        return self.step(self.x, self.y, self.w, self.b)

    def loss_of(self, i):
        return self(i).detach().clone()


def captured(step, count):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for i in range(5):
            step(i)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(count):
            step(i)
    return graph


def microseconds(run, steps, repeats):
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    run()
    torch.cuda.synchronize()
    rounds = max(1, int(0.05 / max(time.perf_counter() - begin, 1e-6)))
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(rounds):
            run()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e6 / rounds / steps)
    return times


def allocator_calls(run, steps):
    """Blocks taken from PyTorch's caching pool and from the device in one step."""
    def counts():
        stats = torch.cuda.memory_stats()
        return stats["allocation.all.allocated"], stats["num_device_alloc"]
    before = counts()
    run()
    torch.cuda.synchronize()
    return [(after - b) / steps for after, b in zip(counts(), before)]


def measure(name, way, repeats):
    case = CASES[name]
    torch.cuda.reset_peak_memory_stats()
    step = LineStep(case, way) if case["data"] == "line" else NetStep(case, way)
    if case.get("batch"):
        step.swap_ends()
    first_loss = float(step.loss_of(0))
    steps = EAGER_STEPS
    run = lambda: [step(i) for i in range(EAGER_STEPS)]
    if way in ("graph", "best", "autograd"):
        steps, run = GRAPH_STEPS, captured(step, GRAPH_STEPS).replay
    times = microseconds(run, steps, repeats)
    blocks, device = allocator_calls(run, steps)
    return {"case": name, "way": way, "us_per_step": statistics.median(times), "fastest": min(times), "slowest": max(times),
            "peak_bytes": torch.cuda.max_memory_allocated(), "blocks_per_step": blocks, "device_allocations_per_step": device,
            "first_loss": first_loss}


def attempt(name, way, repeats):
    torch.compiler.reset()
    gc.collect()
    torch.cuda.empty_cache()
    try:
        return measure(name, way, repeats)
    except Exception as problem:  # one case that fails must not hide the rest
        return {"case": name, "way": way, "failed": str(problem)[:200]}


def losses(lr, precision, epochs=2, batch=60):
    case = dict(CASES["mnist 784-128-10 b64 fp32"], batch=batch, precision=precision)
    step = NetStep(case, "eager", lr)
    found = [step.loss_of(i) for i in range(epochs * step.steps_an_epoch)]
    return [float(v) for v in found]


def ways_of(name, ways):
    return [way for way in ways.split(",") if way != "autograd" or CASES[name]["data"] == "line"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", help="a case's name; all when left out")
    parser.add_argument("--ways", default="eager,compile,graph,autograd,best")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help="read names of cases, one a line; answer with one line for all ways")
    parser.add_argument("--losses", help="write the losses of two epochs here, one a line")
    parser.add_argument("--lr", type=float, default=0.01, help="of --losses")
    parser.add_argument("--precision", default="fp32", help="of --losses: fp32 or fp64")
    arguments = parser.parse_args()
    if arguments.losses:
        with open(arguments.losses, "w") as file:
            file.writelines(f"{v:.9g}\n" for v in losses(arguments.lr, arguments.precision))
        return
    print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "gpu": torch.cuda.get_device_name()}), flush=True)
    if arguments.serve:
        for line in sys.stdin:
            print(json.dumps([attempt(line.strip(), way, arguments.repeats) for way in ways_of(line.strip(), arguments.ways)]),
                  flush=True)
        return
    for name in arguments.case or CASES:
        for way in ways_of(name, arguments.ways):
            print(json.dumps(attempt(name, way, arguments.repeats)), flush=True)


if __name__ == "__main__":
    main()
