#!/usr/bin/env python3
"""A small training in PyTorch as anyone would write it, to be recorded. usage: foreign_program.py MODEL,… STEPS [PROFILE FILE]

MODEL: dense, convolutional, transformer, recurrent; as transformer:compiled with torch.compile, as transformer:captured in one
CUDA graph. Prints for each the median time of a step in µs, the last loss and how many steps it made in all. PROFILE: kernels or
stacks; torch.profiler counts its kernels by op and module into FILE, or with "-" only runs."""

import json
import statistics
import sys
import time
from contextlib import nullcontext

import torch
import torch.nn as nn

WARM_UP = 10  # steps that torch.profiler does not see
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
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(784, 128), nn.Linear(128, 10)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


MODELS = {"dense": Dense, "convolutional": Convolutional, "transformer": Transformer, "recurrent": Recurrent}


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


def train(name, steps, profile, file):
    model, _, way = name.partition(":")
    net = MODELS[model]().to(device)
    criterion = nn.CrossEntropyLoss()
    if profile and file != "-":
        named_modules(net)
        named_modules(criterion)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x, y = torch.randn(64, 784, device=device), torch.randint(0, 10, (64,), device=device)
    called = torch.compile(net) if way == "compiled" else net
    one = captured_step(net, criterion, optimizer, x, y) if way == "captured" else lambda: step(called, criterion, optimizer, x, y)
    for _ in range(WARM_UP):
        one()
    wait()
    times = []
    activities = [torch.profiler.ProfilerActivity.CPU] + ([torch.profiler.ProfilerActivity.CUDA] if device == "cuda" else [])
    with torch.profiler.profile(activities=activities, with_stack=profile == "stacks") if profile else nullcontext() as profiler:
        for _ in range(max(1, steps // 20)):
            begin = time.perf_counter()
            for _ in range(20):
                loss = one()
            wait()
            times.append((time.perf_counter() - begin) / 20 * 1e6)
    if profile and file != "-":
        with open(file, "w") as out:
            json.dump({"ops": counts_of(profiler), "names": names_of(profiler)}, out)
    result = {"model": name, "us": statistics.median(times), "loss": "%.6f" % loss.item()}
    result["steps"] = WARM_UP + max(1, steps // 20) * 20 + (3 if way == "captured" else 0)
    if way == "compiled":
        from torch._dynamo.utils import counters

        result["graph_breaks"] = sum(counters["graph_break"].values())
    print(json.dumps(result), flush=True)


def main():
    profile, file = (sys.argv[3], sys.argv[4]) if len(sys.argv) > 4 else (None, None)
    for name in sys.argv[1].split(","):
        torch.manual_seed(1)
        train(name, int(sys.argv[2]), profile, file)


main()
