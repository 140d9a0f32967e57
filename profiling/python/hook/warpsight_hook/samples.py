"""Has the library sample the stacks of all threads, to show what the host did in any Python program."""

import _thread
import atexit
import ctypes
import threading
import time

from . import forks, sources
from .levels import LINES

SETTLE = 0.2  # seconds; a helper process that ends sooner leaves no recording

_lock = threading.Lock()
_numbers = {}  # of threads without a name: their own has 15 digits
_over = False  # the interpreter is ending: its lock must not be waited for any more


def start(api):
    # Registered here: a program may end while the thread below begins.
    atexit.register(_stop, api)
    atexit.register(sources.Sources(api.recorder).keep)  # runs before the line above
    # The interpreter ends a thread with pthread_exit(), which loads libgcc_s and aborts the program if it cannot: the address space may
    # be limited. So it is loaded before there is a thread.
    try:
        ctypes.CDLL("libgcc_s.so.1")
    except OSError:
        return
    forks.starts_thread()
    _thread.start_new_thread(_run, (api,))  # not in threading.enumerate() of the program


def forget():
    """In a forked child: the parent may have held the lock."""
    global _lock
    _lock = threading.Lock()


def _stop(api):
    global _over
    with _lock:
        _over = True
    api.recorder.stop_sampling()


def _run(api):
    try:
        forks.name_thread()
        end = time.monotonic() + SETTLE
        while time.monotonic() < end and not api.recorder.begun and not api.recorder.loaded_by_cuda():
            time.sleep(0.02)
        if api.begin() and api.reads_frames:  # not at level steps
            with _lock:
                if not _over:
                    api.recorder.sample(_thread_name, sources.Sources(api.recorder).keep, api.level >= LINES)
    except BaseException:
        return  # the interpreter is ending


def _thread_name(ident):
    """Empty while the thread may still be starting: it has its name only some lines after it begins to run."""
    for thread in list(threading._active.values()):
        if thread.ident == ident:
            return thread.name or "thread"
    if getattr(threading, "_limbo", None):
        return ""
    return "thread %d" % _numbers.setdefault(ident, len(_numbers) + 1)
