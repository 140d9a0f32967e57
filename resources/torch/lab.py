#!/usr/bin/env python3
"""The laboratory's sweep in PyTorch: the same operation, sizes and ways, as JSON that the lab lays over its own.

    resources/torch/lab.py --operation matmul --sizes 64,256,1024,4096 > torch.json
    resources/torch/lab.py --operation sine --depth 4 --sizes 1048576,268435456 --ways gpu,gpu-op-by-op

Ways are named as in warpsight lab; those that PyTorch has not are left out. For a nested sine,
"gpu-op-by-op" is eager PyTorch and "gpu" is torch.compile; a softmax is one of rows of 1024. An interrupted sweep keeps the points that it has.
The seed belongs to PyTorch's own generator: the same every time, but other numbers than the laboratory's.
"""
import argparse
import contextlib
import json
import math
import signal
import statistics
import sys
import time

import torch


def product(a, b, out):
    torch.matmul(a, b, out=out)


def add(a, b, out):
    torch.add(a, b, out=out)


def reduce(a, _, out):
    torch.sum(a, dim=0, keepdim=True, out=out)


def softmax(a, _, out):
    rows = len(a) // SOFTMAX_ROW * SOFTMAX_ROW
    if rows:
        torch.softmax(a[:rows].view(-1, SOFTMAX_ROW), 1, out=out[:rows].view(-1, SOFTMAX_ROW))
    if rows < len(a):
        torch.softmax(a[rows:], 0, out=out[rows:])


def copy(a, _, out):
    out.copy_(a)


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


WAYS = {"matmul": ["gpu", "gpu-tf32", "gpu-fp16", "gpu-pinned", "gpu-pageable"],
        "sine": ["gpu-op-by-op", "gpu", "gpu-pinned", "gpu-pageable"],
        "add": ["gpu", "gpu-pinned", "gpu-pageable"],
        "reduce": ["gpu", "gpu-pinned", "gpu-pageable"],
        "softmax": ["gpu", "gpu-pinned", "gpu-pageable"],
        "copy": ["gpu", "gpu-pinned", "gpu-pageable"]}
SOFTMAX_ROW = 1024
COOL_BYTES = 128 << 20  # as much as the laboratory writes


def shapes(operation, n, options):
    """Shapes of the first operand, the second, the result."""
    if operation == "matmul":
        m, k = options.m or n, options.k or n
        return (m, k), (k, n), (m, n)
    return (n,), (n,) if operation == "add" else None, (1,) if operation == "reduce" else (n,)


def operands(operation, n, dtype, options):
    generator = torch.Generator().manual_seed(options.seed)
    *inputs, result = shapes(operation, n, options)
    a, b = (None if shape is None else (torch.rand(shape, generator=generator) * 2 - 1).to(dtype) for shape in inputs)
    return a, b, torch.empty(result, dtype=dtype, device="cuda")


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1) + 0.5)]


def cooler(options):
    """What pushes the inputs out of the caches between two calls, outside of the clock; nothing where none is asked for."""
    if not options.cold_cache:
        return lambda: None
    block = torch.empty(COOL_BYTES, dtype=torch.uint8, device="cuda")

    def cool():
        block.zero_()
        torch.cuda.synchronize()
    return cool


def repeated(call, cool, options):
    """Warms up, then medians: the host's clock around a synchronised call."""
    begin = time.perf_counter()
    for _ in range(options.warm_up):
        call()
        if time.perf_counter() - begin > options.seconds:
            break
    seconds, begin = [], time.perf_counter()
    while len(seconds) < options.repeats and (len(seconds) < 3 or time.perf_counter() - begin < options.seconds):
        cool()
        t = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - t)
    return seconds


def device_times(body, cool, limit):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    samples, since = [], time.perf_counter()
    while len(samples) < 10 and (len(samples) < 3 or time.perf_counter() - since < limit):
        cool()
        begin.record()
        body()
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end) * 1e-3)
    return samples


def measure(way, run, a, b, out, options):
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

    cool = cooler(options)
    host = repeated(call, cool, options)
    device = device_times(body, cool, options.seconds)
    return {"median_s": statistics.median(host), "p5_s": percentile(host, 0.05), "p95_s": percentile(host, 0.95),
            "device_s": statistics.median(device), "device_p5_s": percentile(device, 0.05),
            "device_p95_s": percentile(device, 0.95), "repeats": len(host)}


def work(operation, n, options):
    """Operations and bytes of one call, as the laboratory counts them."""
    numbers = sum(math.prod(shape) for shape in shapes(operation, n, options) if shape)
    if operation == "matmul":
        return 2 * (options.m or n) * (options.k or n) * n, 4 * numbers
    return {"sine": options.depth, "softmax": 5, "copy": 0}.get(operation, 1) * n, 4 * numbers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operation", choices=sorted(WAYS), default="matmul")
    parser.add_argument("--sizes", default="16,64,256,1024,4096")
    parser.add_argument("--ways", default="")
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--m", type=int, default=0, help="rows of an m × k × size product")
    parser.add_argument("--k", type=int, default=0, help="its inner length")
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--warm-up", type=int, default=5, help="calls before the first that counts")
    parser.add_argument("--cold-cache", action="store_true", help="push the inputs out of the caches before each call")
    parser.add_argument("--seed", type=int, default=42, help="of the numbers that are computed on")
    parser.add_argument("--seconds", type=float, default=0.3, help="of a point, about")
    parser.add_argument("--out", default="", help="a file for the JSON, in place of the standard output")
    options = parser.parse_args()
    has = WAYS[options.operation]
    ways = [way for way in has if not options.ways or way in options.ways.split(",")]
    if not ways:
        sys.exit(f"PyTorch has none of these ways for {options.operation}; it has {', '.join(has)}")
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU")
    points, cancelled = [], False
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # keeps its points, too, where interrupts are ignored
    try:
        sweep(options, ways, points)
    except KeyboardInterrupt:
        cancelled = True
    result = {"framework": "PyTorch " + torch.__version__, "device": torch.cuda.get_device_name(), "operation": options.operation,
              "depth": options.depth, "m": options.m, "k": options.k, "warm_up": options.warm_up,
              "cold_cache": options.cold_cache, "seed": options.seed, "cancelled": cancelled, "points": points}
    with open(options.out, "w") if options.out else contextlib.nullcontext(sys.stdout) as out:
        json.dump(result, out, indent=1)
        print(file=out)


def sweep(options, ways, points):
    runs = {"matmul": product, "sine": sine(options.depth), "add": add, "reduce": reduce, "softmax": softmax,
            "copy": copy}
    for size in map(int, options.sizes.split(",")):
        for way in ways:
            torch.backends.cuda.matmul.allow_tf32 = way == "gpu-tf32"
            dtype = torch.float16 if way == "gpu-fp16" else torch.float32
            run = compiled_sine(options.depth) if options.operation == "sine" and way == "gpu" else runs[options.operation]
            a, b, out = operands(options.operation, size, dtype, options)
            flops, moved = work(options.operation, size, options)
            points.append({"way": way, "size": size, "flops": flops, "bytes": moved} | measure(way, run, a, b, out, options))
            if options.out:
                print(f"{way}, {size}", flush=True)
            del a, b, out


if __name__ == "__main__":
    main()
