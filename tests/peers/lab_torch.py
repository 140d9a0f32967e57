#!/usr/bin/env python3
"""The laboratory's sweep in PyTorch: the same operation, sizes and ways, as JSON that the lab overlays.

    tests/peers/lab_torch.py --operation matmul --sizes 64,256,1024,4096 > torch.json
"""
import argparse
import json
import statistics
import sys
import time

import torch


def product(a, b, out):
    torch.matmul(a, b, out=out)


def sine(depth):
    def run(a, _, out):
        torch.sin(a, out=out)
        for _step in range(depth - 1):
            torch.sin(out, out=out)
    return run


def compiled_sine(depth):
    @torch.compile
    def nested(a):
        for _step in range(depth):
            a = torch.sin(a)
        return a
    return lambda a, _, out: nested(a)


def operands(operation, n, dtype):
    shape = (n, n) if operation == "matmul" else (n,)
    generator = torch.Generator().manual_seed(42)
    a = torch.rand(shape, generator=generator) * 2 - 1
    b = torch.rand(shape, generator=generator) * 2 - 1 if operation in ("matmul", "add") else None
    return a.to(dtype), None if b is None else b.to(dtype)


def timed(call, repeats, limit):
    for _ in range(5):
        call()
    seconds, begin = [], time.perf_counter()
    while len(seconds) < repeats and (len(seconds) < 3 or time.perf_counter() - begin < limit):
        t = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - t)
    return statistics.median(seconds), len(seconds)


def device_time(run, inner):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    samples = []
    for _ in range(inner):
        begin.record()
        run()
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end) * 1e-3)
    return statistics.median(samples)


def measure(way, run, a, b, out, repeats, limit):
    ga, gb = a.cuda(), None if b is None else b.cuda()
    pinned = way == "gpu-pinned"
    ha, hb = (a.pin_memory(), None if b is None else b.pin_memory()) if pinned else (a, b)
    back = torch.empty(out.shape, dtype=out.dtype, pin_memory=pinned)

    def resident():
        run(ga, gb, out)

    def with_copies():
        ga.copy_(ha, non_blocking=pinned)
        if hb is not None:
            gb.copy_(hb, non_blocking=pinned)
        run(ga, gb, out)
        back.copy_(out, non_blocking=pinned)

    body = with_copies if way in ("gpu-pageable", "gpu-pinned") else resident

    def call():
        body()
        torch.cuda.synchronize()

    median, count = timed(call, repeats, limit)
    return median, device_time(body, 20), count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operation", choices=["matmul", "sine", "add"], default="matmul")
    parser.add_argument("--sizes", default="16,64,256,1024,4096")
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=0.3)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("lab_torch.py: PyTorch sees no GPU")
    runs = {"matmul": product, "sine": sine(options.depth), "add": lambda a, b, out: torch.add(a, b, out=out)}
    ways = ["gpu", "gpu-pinned", "gpu-pageable"] + (["gpu-tf32", "gpu-fp16"] if options.operation == "matmul" else ["gpu-compiled"])
    if options.operation == "add":
        ways.remove("gpu-compiled")
    points = []
    for size in map(int, options.sizes.split(",")):
        for way in ways:
            torch.backends.cuda.matmul.allow_tf32 = way == "gpu-tf32"
            dtype = torch.float16 if way == "gpu-fp16" else torch.float32
            a, b = operands(options.operation, size, dtype)
            run = compiled_sine(options.depth) if way == "gpu-compiled" else runs[options.operation]
            out = torch.empty(a.shape, dtype=dtype, device="cuda")
            median, device, count = measure(way, run, a, b, out, options.repeats, options.seconds)
            points.append({"way": way, "size": size, "median_s": median, "device_s": device, "repeats": count})
    json.dump({"framework": "PyTorch " + torch.__version__, "device": torch.cuda.get_device_name(), "operation": options.operation,
               "points": points}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
