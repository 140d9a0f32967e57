#!/usr/bin/env python3
"""Trains Warpscope's networks in PyTorch in several ways and prints microseconds a step, one JSON object a line.

    tests/peers/train_torch.py --case "mnist 784-128-10 b64 tf32" --ways eager,best

Ways: eager; compile (torch.compile, max-autotune); graph (the epoch, in eager ops, as one CUDA graph); best (that graph
over compiled forward and backward with fused SGD). With --losses FILE: fp32 losses of two epochs in file order instead.
"""
import argparse
import json
import statistics
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
    "line 50k epilogue": dict(data="line", points=50_000),
    "line 5M epilogue": dict(data="line", points=5_000_000),
}
for _w in (16, 128, 1024, 4096):
    CASES[f"mnist 784-w-w-w-10 b32 fp16 w{_w}"] = dict(data="mnist", widths=[784, _w, _w, _w, 10], batch=32, precision="fp16")
CASES["mnist 784-w-w-w-10 b32 tf32 w4096"] = dict(data="mnist", widths=[784, 4096, 4096, 4096, 10], batch=32, precision="tf32")

LOSS_SCALE = 1024.0  # fp16: fixed, which spares PyTorch the search that Warpscope makes
GRAPH_STEPS = 100


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


class NetStep:
    """One training step over rows [row, row + batch) of data that lies on the GPU."""

    def __init__(self, case, way, lr=0.01):
        x, y = data.mnist() if case["data"] == "mnist" else data.iris()
        self.x, self.y = torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda()
        self.batch = case["batch"] or len(x)
        self.steps_an_epoch = len(x) // self.batch
        self.precision = case["precision"]
        torch.backends.cuda.matmul.allow_tf32 = self.precision == "tf32"
        self.net = network(case["widths"], case.get("bias", True))
        scale = LOSS_SCALE if self.precision == "fp16" else 1.0
        self.scale = scale
        self.sgd = torch.optim.SGD(self.net.parameters(), lr=lr / scale, fused=True)
        mode = {"compile": "max-autotune", "best": "max-autotune-no-cudagraphs"}.get(way)
        self.loss = torch.compile(self.forward, mode=mode) if mode else self.forward

    def forward(self, x, y):
        half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.precision)
        with torch.autocast("cuda", dtype=half, enabled=half is not None, cache_enabled=False):
            z = self.net(x)
        return torch.nn.functional.cross_entropy(z.float(), y) * self.scale

    def __call__(self, i):
        row = i % self.steps_an_epoch * self.batch
        self.sgd.zero_grad(set_to_none=True)
        loss = self.loss(self.x[row:row + self.batch], self.y[row:row + self.batch])
        loss.backward()
        self.sgd.step()
        return loss


class LineStep:
    """An epoch of regression over all points; way `best` has the gradient written by hand and compiled."""

    def __init__(self, case, way):
        x, y = data.line(case["points"])
        self.x, self.y = torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda()
        self.w, self.b = torch.zeros((), device="cuda"), torch.zeros((), device="cuda")
        mode = {"compile": "max-autotune", "best": "max-autotune-no-cudagraphs"}.get(way)
        self.step = torch.compile(self.by_hand, mode=mode) if mode else self.by_hand

    def by_hand(self, x, y, w, b):
        d = w * x + b - y
        return w - 0.2 * (d * x).mean(), b - 0.2 * d.mean(), (d * d).mean()

    def __call__(self, _):
        w, b, loss = self.step(self.x, self.y, self.w, self.b)
        self.w.copy_(w)
        self.b.copy_(b)
        return loss


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


def measure(name, way, repeats):
    case = CASES[name]
    torch.cuda.reset_peak_memory_stats()
    step = LineStep(case, way) if case["data"] == "line" else NetStep(case, way)
    if way in ("graph", "best"):
        graph = captured(step, GRAPH_STEPS)
        times = microseconds(graph.replay, GRAPH_STEPS, repeats)
    else:
        times = microseconds(lambda: [step(i) for i in range(20)], 20, repeats)
    return {"case": name, "way": way, "us_per_step": statistics.median(times), "fastest": min(times), "slowest": max(times),
            "peak_bytes": torch.cuda.max_memory_allocated(), "loss": float(step(0).detach())}


def losses(lr, batch, epochs):
    case = dict(CASES["mnist 784-128-10 b64 fp32"], batch=batch)
    step = NetStep(case, "eager", lr)
    found = [step(i).detach() for i in range(epochs * step.steps_an_epoch)]
    return [float(v) for v in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", help="a case's name; all when left out")
    parser.add_argument("--ways", default="eager,best")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--losses", help="write the losses of two fp32 epochs here, one a line")
    arguments = parser.parse_args()
    if arguments.losses:
        with open(arguments.losses, "w") as file:
            file.writelines(f"{v:.9g}\n" for v in losses(0.1, 60, 2))
        return
    print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "gpu": torch.cuda.get_device_name()}), flush=True)
    for name in arguments.case or CASES:
        for way in arguments.ways.split(","):
            torch.compiler.reset()
            try:
                print(json.dumps(measure(name, way, arguments.repeats)), flush=True)
            except Exception as problem:  # one case that fails must not hide the others
                print(json.dumps({"case": name, "way": way, "failed": str(problem)[:200]}), flush=True)


if __name__ == "__main__":
    main()
