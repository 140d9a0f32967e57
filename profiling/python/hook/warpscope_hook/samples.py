"""Samples the stacks of all threads: what the host did, in any Python program."""

import _thread
import atexit
import sys
import threading
import time

KHZ = 0.001  # seconds between samples at most; a busy interpreter hands over less often
MOST_FRAMES = 100  # the innermost ones of a deep recursion
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
    def __init__(self, api):
        self._recorder = api.recorder
        self._own = _thread.get_ident()  # of the sampling thread, which makes this object
        self._stacks = {}  # (code, line) … → number
        self._open = {}  # thread → [number, begin, last seen]

    def sample(self):
        now = self._recorder.now()
        seen = sys._current_frames()
        for thread, frame in seen.items():
            if thread == self._own:
                continue
            number = self._number(frame)
            open_ = self._open.get(thread)
            if open_ is not None and open_[0] == number and now - open_[1] < 100_000_000:
                open_[2] = now
                continue
            if open_ is not None:
                self._tell(thread, open_, now)
            self._open[thread] = [number, now, now]
        for thread in [gone for gone in self._open if gone not in seen]:
            self._tell(thread, self._open.pop(thread), now)

    def finish(self):
        now = self._recorder.now()
        while self._open:
            thread, sample = self._open.popitem()
            self._tell(thread, sample, now)

    def _tell(self, thread, sample, until):
        number, begin, _ = sample
        self._recorder.sample(_thread_name(thread), number, begin, until)

    def _number(self, frame):
        key = []
        at = frame
        while at is not None and len(key) < 200:
            key.append((at.f_code, at.f_lineno))
            at = at.f_back
        key = tuple(key)
        number = self._stacks.get(key)
        if number is None:
            if len(self._stacks) > 50_000:
                self._stacks.clear()
            number = self._stacks[key] = self._recorder.stack(_text(key))
        return number


def _thread_name(ident):
    for thread in list(threading._active.values()):
        if thread.ident == ident:
            return thread.name
    return "thread %d" % ident


def _text(key):
    from .program import name_of, shown_path

    frames = []
    for code, line in key:
        if "_warpscope_hook" in code.co_filename or "/warpscope_hook/" in code.co_filename:
            continue
        frames.append(f"{name_of(code)} ({shown_path(code.co_filename)}:{line})")
    return " < ".join(frames[:MOST_FRAMES])
