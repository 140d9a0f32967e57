"""Kernels in a Chrome trace."""

import gzip
import json
import os
import sys


def by_name(path, within=None, rank=None):
    """Durations of kernels by name; of those inside of the range `within` only, and of this rank."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        trace = json.load(file)
    events = trace if isinstance(trace, list) else trace["traceEvents"]
    if rank is not None:
        rows = {place(event) for event in events if event.get("args", {}).get("rank") == rank and event.get("ph") == "M"}
        events = [event for event in events if place(event) in rows]
    begin, end = -float("inf"), float("inf")
    if within:
        ranges = [e for e in events if e.get("name") == within and e.get("ph") == "X"]
        if not ranges:
            sys.exit(f"the range {within} is not in {os.path.basename(path)}")
        begin, end = float(ranges[0]["ts"]), float(ranges[0]["ts"]) + float(ranges[0]["dur"])
    table = {}
    for event in events:
        if event.get("cat") == "kernel" and begin <= float(event["ts"]) <= end:
            table.setdefault(event["name"], []).append(event["dur"])
    return table


def place(event):
    return event.get("pid"), event.get("tid")
