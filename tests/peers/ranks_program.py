#!/usr/bin/env python3
"""A data-parallel training in PyTorch that knows what a recording of it must tell.

usage: torchrun --nproc-per-node N ranks_program.py delays MS | counts FILE | calls BYTES | switched MODEL

delays: reads how many steps to train, WARM_UP more come before. In each tenth step the last rank keeps its GPU busy for MS milliseconds right before it
goes backward. It prints the delay in µs as CUDA events saw it, the time of a step, and how many ms the GPU went on after the
host had launched everything. The loss is added up between the ranks right before, as for a log: that brings the GPUs together,
so that the delay is all that the rank is late by. counts: STEPS steps inside of the range COUNTED; torch.profiler writes a trace
of each rank to FILE.RANK, or with "-" nobody does. calls: reads how many all-reduces of BYTES to call and prints what a call takes the
host, in µs. switched: reads how many steps to train in a turn, then takes TURNS turns, half of them in capture ranges, and prints
what a step of each took, in µs; all ranks switch at the same step. At the end: how many steps were in capture ranges."""

import contextlib
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn

import foreign_program
from foreign_program import MODELS, device, first_rank, own_device, parallel, turns, wait

EVERY, WARM_UP = 10, 20
TURNS, SETTLING = 40, 3  # of switched; steps after each switch, for the caches
COUNTED, STEPS = "counted steps", 50


class Training:
    def __init__(self, model):
        torch.manual_seed(1)
        if own_device():
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        self.net = parallel(MODELS[model]().to(device), gradient_as_bucket_view=True)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01)
        self.x, self.y = torch.randn(64, 784, device=device), torch.randint(0, 10, (64,), device=device)
        wait()

    def step(self, before_backward=lambda: None):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.criterion(self.net(self.x), self.y)
        dist.all_reduce(loss.detach().clone())
        before_backward()
        loss.backward()
        self.optimizer.step()


class GpuDelay:
    """Keeps the GPU busy for some ms, and measures that in every step, with a delay and without."""

    def __init__(self, ms):
        self.cycles = round(ms * self.cycles_in_a_ms())
        self.pairs = []

    @staticmethod
    def cycles_in_a_ms(cycles=20_000_000):
        for _ in range(2):  # the first one loads the kernel
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            torch.cuda._sleep(cycles)
            end.record()
            wait()
        return cycles / begin.elapsed_time(end)

    def __call__(self, late):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        if late:
            torch.cuda._sleep(self.cycles)
        end.record()
        self.pairs.append((late, begin, end))

    def times(self):
        return [(late, begin.elapsed_time(end) * 1e3) for late, begin, end in self.pairs]


class HostDelay:
    """The same without a GPU."""

    def __init__(self, ms):
        self.seconds, self.measured = ms * 1e-3, []

    def __call__(self, late):
        begin = time.perf_counter()
        while late and time.perf_counter() < begin + self.seconds:
            pass
        self.measured.append((late, (time.perf_counter() - begin) * 1e6))

    def times(self):
        return self.measured


def delays(ms):
    training = Training("wide")
    delay = (GpuDelay if device == "cuda" else HostDelay)(ms)
    is_late, made = dist.get_rank() == dist.get_world_size() - 1, 0
    for steps in turns("turns", True):
        for _ in range(WARM_UP):
            training.step()
        wait()
        begin = time.perf_counter()
        for i in range(steps):
            training.step(lambda: delay(is_late and i % EVERY == 0))
        launched = time.perf_counter()
        wait()
        over = time.perf_counter()
        made += WARM_UP + steps
        if is_late:
            print(json.dumps({**measured(delay.times()), "us": (over - begin) / steps * 1e6, "ahead_ms": (over - launched) * 1e3}),
                  flush=True)
    if is_late:
        print(json.dumps({"steps": made}), flush=True)


def measured(times):
    """Each step has the same two events: what they take without a delay is no delay."""
    late, usual = ([us for is_late, us in times if is_late == which] for which in (True, False))
    return {"delay_us": statistics.median(late) - statistics.median(usual), "least_us": min(late), "most_us": max(late)}


def counts(file):
    training = Training("wide")
    profiled = file != "-"
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) if profiled else contextlib.nullcontext() as profiler:
        for _ in range(WARM_UP):
            training.step()
        with counted():
            for _ in range(STEPS):
                training.step()
    if profiled:
        profiler.export_chrome_trace(f"{file}.{dist.get_rank()}")
    print(json.dumps({"steps": STEPS}), flush=True)


def calls(size):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    message, group = torch.zeros(size // 4, device=device), 50  # the GPU keeps up with so many
    for count in turns("turns", True):
        spent = 0.0
        for _ in range(max(1, count // group)):
            wait()
            begin = time.perf_counter()
            for _ in range(group):
                dist.all_reduce(message)
            spent += time.perf_counter() - begin
        wait()
        if dist.get_rank() == 0:
            print(json.dumps({"us": spent / (max(1, count // group) * group) * 1e6}), flush=True)
    if dist.get_rank() == 0:
        print(json.dumps({"ended": True}), flush=True)


def profiler():
    """Whatever begins and ends a capture range."""
    if device == "cuda":
        return torch.cuda.profiler
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "profiling", "python"))
    import warpsight

    return warpsight.capture


def switched(model):
    training, switch, captured = Training(model), profiler(), 0

    def step():
        foreign_program.step(training.net, training.criterion, training.optimizer, training.x, training.y)

    def turn(steps, captures):
        """Nothing is waited for: a GPU that has work has it all the time."""
        if captures:
            switch.start()
        for _ in range(SETTLING):
            step()
        begin = moment()
        for _ in range(steps):
            step()
        end = moment()
        if captures:
            switch.stop()
        return captures, begin, end

    for _ in range(WARM_UP):
        step()
    wait()
    for steps in turns("turns", True):
        marks = [turn(steps, i % 8 in (0, 3, 5, 6)) for i in range(TURNS)]  # a drift falls on both alike
        wait()
        times = {side: [us_between(begin, end) / steps for captures, begin, end in marks if captures == side] for side in (True, False)}
        captured += TURNS // 2 * (SETTLING + steps)
        if first_rank():
            print(json.dumps({"on_us": times[True], "off_us": times[False]}), flush=True)
    if first_rank():
        print(json.dumps({"captured": captured}), flush=True)


def moment():
    if device != "cuda":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def us_between(begin, end):
    return begin.elapsed_time(end) * 1e3 if device == "cuda" else (end - begin) * 1e6


@contextlib.contextmanager
def counted():
    """A range in any trace, with nothing else near its edges."""
    wait()
    time.sleep(0.05)
    with torch.profiler.record_function(COUNTED), nvtx():
        time.sleep(0.05)
        yield
        wait()
        time.sleep(0.05)


def nvtx():
    return torch.cuda.nvtx.range(COUNTED) if device == "cuda" else contextlib.nullcontext()


def main():
    what, argument = sys.argv[1:]
    {"delays": lambda: delays(float(argument)), "counts": lambda: counts(argument), "calls": lambda: calls(int(argument)),
     "switched": lambda: switched(argument)}[what]()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
