"""Samples the stacks of all threads: what the host did, in any Python program."""

import _thread
import atexit
import faulthandler
import os
import re
import sys
import threading
import time

from .program import shown_path

KHZ = 0.001  # seconds between samples at most; a busy interpreter hands over less often
LONGEST = 100_000_000  # ns of one sample
_THREAD = re.compile(rb"hread 0x([0-9a-f]+)")
_FRAME = re.compile(rb'  File "(.*)", line ([0-9?]+) in (.*)')
SETTLE = 0.2  # a helper that ends sooner leaves nothing
SETTLE_BEFORE_TORCH = 3.0


def start(api):
    _thread.start_new_thread(_run, (api,))  # not among the threads that the program sees


def _may_import_torch():
    try:
        from importlib.machinery import PathFinder

        return "torch" not in sys.modules and PathFinder.find_spec("torch") is not None
    except Exception:
        return False


def _run(api):
    try:
        time.sleep(SETTLE)
        if not api.recorder.begun and _may_import_torch():
            end = time.monotonic() + SETTLE_BEFORE_TORCH
            while time.monotonic() < end and not api.recorder.begun:
                time.sleep(0.05)
        if not api.recorder.begin():
            return
        sampler = _Sampler(api)
        atexit.register(sampler.finish)
        while True:
            time.sleep(KHZ)
            sampler.sample()
    except BaseException:
        return  # the interpreter ends


class _Sampler:
    """Frames of running threads may go while Python code walks them, and CPython 3.11 crashes then. faulthandler writes the
    stacks of all threads in one call, during which none of them runs."""

    def __init__(self, api):
        self._recorder = api.recorder
        self._own = _thread.get_ident()  # of the sampling thread, which makes this object
        self._file = os.memfd_create("stacks")
        self._stacks = {}  # text of a stack → number
        self._open = {}  # thread → [number, begin]

    def sample(self):
        now = self._recorder.now()
        os.lseek(self._file, 0, os.SEEK_SET)
        os.ftruncate(self._file, 0)
        faulthandler.dump_traceback(self._file, all_threads=True)
        seen = set()
        for block in os.pread(self._file, 1 << 20, 0).split(b"\n\n"):
            head, _, stack = block.partition(b"\n")
            thread = _THREAD.search(head)
            if thread is None or int(thread.group(1), 16) == self._own:
                continue
            ident = int(thread.group(1), 16)
            seen.add(ident)
            number = self._number(stack)
            sample = self._open.get(ident)
            if sample is None or sample[0] != number or now - sample[1] > LONGEST:
                if sample is not None:
                    self._tell(ident, sample, now)
                self._open[ident] = [number, now]
        for ident in [gone for gone in self._open if gone not in seen]:
            self._tell(ident, self._open.pop(ident), now)

    def finish(self):
        now = self._recorder.now()
        while self._open:
            ident, sample = self._open.popitem()
            self._tell(ident, sample, now)

    def _tell(self, ident, sample, until):
        number, begin = sample
        self._recorder.sample(_thread_name(ident), number, begin, until)

    def _number(self, stack):
        number = self._stacks.get(stack)
        if number is None:
            if len(self._stacks) > 50_000:
                self._stacks.clear()
            number = self._stacks[stack] = self._recorder.stack(_text(stack))
        return number


def _thread_name(ident):
    for thread in list(threading._active.values()):
        if thread.ident == ident:
            return thread.name
    return "thread %d" % ident


def _text(stack):
    frames = []
    for path, line, name in _FRAME.findall(stack):
        if b"/warpscope_hook/" not in path:
            path, name = path.decode("utf-8", "replace"), name.decode("utf-8", "replace")
            frames.append(f"{name} ({shown_path(path)}:{line.decode()})")
    return " < ".join(frames)
