"""Runs inside a recorded Python program: watches its imports and marks what torch and loggers do.

Rules: code here never raises into the program, prints, or keeps its objects alive. A forked child marks nothing.
"""

import os
import sys

from . import imports, recorder
from .levels import LEVELS

api = None  # the package `warpsight` calls it; None: not recorded


def install(attached=False):
    """`attached`: the program already runs, and may have made models and started CUDA."""
    level = os.environ.get("WARPSIGHT_RECORD_PYTHON", "off")
    if level not in LEVELS or level == "off" or not os.environ.get("WARPSIGHT_RECORD_LIBRARY"):
        return
    if _helps_multiprocessing():
        return
    os.putenv("WARPSIGHT_RECORD_HOOKED", str(os.getpid()))  # for our library; os.environ stays as it is
    global api
    from . import forks, program, samples

    api = program.Program(recorder.Recorder(os.environ["WARPSIGHT_RECORD_LIBRARY"]), LEVELS.index(level))
    api.attached = attached
    if attached:
        api.recorder.begin_gpu()
    imports.watch("torch", api.on_torch)
    for module, patch in program.LOGGERS.items():
        imports.watch(module, lambda loaded, patch=patch: patch(api, loaded))
    samples.start(api)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)
        forks.watch()
    _hide_frames()


def _helps_multiprocessing():
    """True in a helper process that Python starts: it does no work of the program."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            line = file.read()
    except OSError:
        return False
    return b"multiprocessing.resource_tracker" in line or b"multiprocessing.semaphore_tracker" in line


def _forget():
    global api
    api = None
    recorder.Recorder.silence()
    sys.modules[__name__ + ".samples"].forget()


def _hide_frames():
    """Prints uncaught exceptions without our frames."""
    own = os.path.dirname(os.path.abspath(__file__))
    if sys.excepthook is not sys.__excepthook__:
        return

    def printed(kind, error, trace):
        try:
            trace = _without(trace, own)
        except Exception:
            pass
        sys.__excepthook__(kind, error, trace)

    sys.excepthook = printed


def _without(trace, folder):
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(folder):
        trace = trace.tb_next
    at = trace
    while at is not None and at.tb_next is not None:
        if at.tb_next.tb_frame.f_code.co_filename.startswith(folder):
            at.tb_next = at.tb_next.tb_next
        else:
            at = at.tb_next
    return trace
