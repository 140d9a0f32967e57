#!/usr/bin/env python3
"""A small training in PyTorch as anyone would write it, to be recorded. usage: foreign_program.py MODEL STEPS [PROFILE FILE]

MODEL: dense, convolutional, transformer, recurrent, megabyte, wide; as transformer:compiled with torch.compile, as
transformer:captured in one CUDA graph, as dense:ddp in two processes over gloo, or in those that torchrun has started, over NCCL
if each has a GPU. STEPS: how many, or "turns": for each line with a number on its input, it takes so many steps and prints their
time in µs each. Prints at the end the last loss and how many steps it made in all. PROFILE: kernels or stacks; torch.profiler
counts its kernels by op and module into FILE (of each rank that torchrun has started: FILE.RANK), or with "-" only runs."""

import atexit
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import nullcontext

import torch
import torch.distributed as dist
import torch.nn as nn

WARM_UP = 10  # steps that torch.profiler does not see
COUNT = torch.zeros((), dtype=torch.int64)  # lives to the end: gloo's thread would wait for the interpreter to free it
device = "cuda" if torch.cuda.is_available() else "cpu"


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4))
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        return self.head(self.features(x.view(-1, 1, 28, 28)).flatten(1))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(28, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(28, 10)

    def forward(self, x):
        return self.head(self.encoder(x.view(-1, 28, 28)).mean(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(28, 32, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.lstm(x.view(-1, 28, 28))[0][:, -1])


class Dense(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(784, width), nn.Linear(width, 10)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class Wide(nn.Sequential):
    """All its time goes to moving 1.1 GB of weights: on an H100 a step takes several ms, so that the host runs ahead of the GPU."""

    def __init__(self):
        torch.set_float32_matmul_precision("high")
        width, layers = (4096, 16) if device == "cuda" else (256, 4)
        inner = [each for _ in range(layers) for each in (nn.Linear(width, width), nn.ReLU())]
        super().__init__(nn.Linear(784, width), nn.ReLU(), *inner, nn.Linear(width, 100))


MODELS = {"dense": Dense, "convolutional": Convolutional, "transformer": Transformer, "recurrent": Recurrent,
          "megabyte": lambda: Dense(330), "wide": Wide}


def step(net, criterion, optimizer, x, y):
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
    return loss


def wait():
    if device == "cuda":
        torch.cuda.synchronize()


def named_modules(net):
    """For torch.profiler: each module's forward is a range with its path."""
    for path, module in net.named_modules():
        forward = module.forward

        def named(*args, _forward=forward, _path=path or type(net).__name__, **kwargs):
            with torch.profiler.record_function("module " + _path):
                return _forward(*args, **kwargs)

        module.forward = named


def counts_of(profiler):
    """(module, op) → kernels. A backward function has the module of the forward op with its number."""
    events = profiler.events()
    def path_of(event):
        at = event
        while at is not None:
            if at.name.startswith("module "):
                return at.name[len("module "):]
            at = at.cpu_parent
        return ""

    forward = {}
    for event in sorted(events, key=lambda e: e.time_range.start):
        number = getattr(event, "sequence_nr", -1)
        if number is not None and number >= 0 and "Backward" not in event.name:
            forward[number] = path_of(event)
    counts = {}
    for event in events:
        kernels = sum(not kernel.name.startswith("Mem") for kernel in event.kernels)  # no copies
        if not kernels:
            continue
        at, module = event, path_of(event)
        while at is not None and not module:
            if "Backward" in at.name:
                module = forward.get(getattr(at, "sequence_nr", -1), "")
            at = at.cpu_parent
        key = f"{module} · {event.name}" if module else event.name
        counts[key] = counts.get(key, 0) + kernels
    return counts


def names_of(profiler):
    """Kernel → how often."""
    counts = {}
    for event in profiler.events():
        for kernel in event.kernels:
            if not kernel.name.startswith("Mem"):
                counts[kernel.name] = counts.get(kernel.name, 0) + 1
    return counts


def captured_step(net, criterion, optimizer, x, y):
    """Three steps on a side stream, then one into a graph; calling it replays the graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step(net, criterion, optimizer, x, y)
    torch.cuda.current_stream().wait_stream(side)
    optimizer.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(net, criterion, optimizer, x, y)

    def replay():
        graph.replay()
        return loss

    return replay


def launched_alone():
    return "RANK" not in os.environ


def first_rank():
    return os.environ.get("RANK", "0") == "0"


def own_device():
    """torchrun has started this process, and there is a GPU for each one."""
    return "LOCAL_RANK" in os.environ and torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])


def parallel(net, **options):
    """This process and the other processes of torchrun; without it, another one like it on the same device."""
    over = "nccl" if own_device() else "gloo"
    if launched_alone():
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        os.environ.update({"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
        other = [sys.executable, __file__, *sys.argv[1:3]]
        atexit.register(subprocess.Popen(other, env={**os.environ, "RANK": "1"}, stdin=subprocess.DEVNULL).wait)
        os.environ["RANK"] = "0"
    dist.init_process_group(over)
    return nn.parallel.DistributedDataParallel(net, **options)


def turns(steps, ranks):
    """Numbers of steps, as the first rank reads them; 0 at the end."""
    asked = iter(sys.stdin.readline, "") if steps == "turns" else iter([steps])
    hosts = dist.new_group(backend="gloo") if ranks else None  # no kernel waits on a GPU while others have their turn
    while True:
        COUNT.fill_(int(next(asked, 0)) if first_rank() else 0)
        if ranks:
            dist.broadcast(COUNT, 0, group=hosts)
        if not COUNT:
            return
        yield int(COUNT)


def timed(one, steps):
    begin = time.perf_counter()
    for _ in range(steps):
        loss = one()
    wait()
    return loss, (time.perf_counter() - begin) / steps * 1e6


def train(name, steps, profile, file):
    model, _, way = name.partition(":")
    rank_suffix = "" if launched_alone() else "." + os.environ["RANK"]
    if own_device():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    net = MODELS[model]().to(device)
    criterion = nn.CrossEntropyLoss()
    if profile and file != "-":
        named_modules(net)
        named_modules(criterion)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.randn(64, 784, device=device), torch.randint(0, 10, (64,), device=device)
    called = torch.compile(net) if way == "compiled" else parallel(net) if way == "ddp" else net
    one = captured_step(net, criterion, optimizer, x, y) if way == "captured" else lambda: step(called, criterion, optimizer, x, y)
    for _ in range(WARM_UP):
        one()
    wait()
    made = WARM_UP + (3 if way == "captured" else 0)
    activities = [torch.profiler.ProfilerActivity.CPU] + ([torch.profiler.ProfilerActivity.CUDA] if device == "cuda" else [])
    for count in turns(steps, way == "ddp"):
        with torch.profiler.profile(activities=activities, with_stack=profile == "stacks") if profile else nullcontext() as profiler:
            loss, us = timed(one, count)
        made += count
        if first_rank():
            print(json.dumps({"us": us}), flush=True)
    if profile and file != "-":
        with open(file + rank_suffix, "w") as out:
            json.dump({"ops": counts_of(profiler), "names": names_of(profiler)}, out)
    result = {"model": name, "loss": "%.6f" % loss.item(), "steps": made}
    if way == "compiled":
        from torch._dynamo.utils import counters

        result["graph_breaks"] = sum(counters["graph_break"].values())
    if first_rank():
        print(json.dumps(result), flush=True)
    if way == "ddp":
        dist.destroy_process_group()


def main():
    profile, file = (sys.argv[3], sys.argv[4]) if len(sys.argv) > 4 else (None, None)
    torch.manual_seed(1)
    train(sys.argv[1], sys.argv[2], profile, file)


if __name__ == "__main__":
    main()
