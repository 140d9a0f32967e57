"""Gives Warpsight's recorder what only the program knows. Does nothing if the program is not recorded.

    warpsight.log(loss=loss, lr=rate)    # shown on the charts, by step
    warpsight.step()                     # a step ends here
    with warpsight.range("augment"):     # names the work inside
    with warpsight.capture():            # with `record --capture-range`, only the work inside is recorded
    warpsight.kernel_ranges(["load"])    # for ranges inside Triton kernels, see warpsight.triton_ranges

A program that already runs, such as a notebook, begins its own recording:

    warpsight.attach("notebook.wsrun")

A cell of a notebook shows a run, or compares two:

    warpsight.show("notebook.wsrun")
    warpsight.compare("before.wsrun", "after.wsrun")

After `%load_ext warpsight`, a cell that begins with `%%record` is recorded and shown.
"""

import sys as _sys

__all__ = ["attach", "capture", "compare", "log", "step", "range", "recorded", "kernel_ranges", "show"]


def _recorder():
    # `warpsight record` puts the module there before the program begins.
    return getattr(_sys.modules.get("_warpsight_hook"), "api", None)


def recorded():
    """True if the program is recorded."""
    return _recorder() is not None


def log(*data, step=None, **scalars):
    """Logs scalars of this step. Values are numbers, or objects with item(), such as a tensor with one element.

    `log({"loss": loss}, step=4)` works too. Never raises: a sentence in the run says what could not be logged.
    """
    recorder = _recorder()
    if recorder is not None:
        recorder.log_call(data, scalars, step)


def step():
    """Ends a step of the program and begins the next one."""
    recorder = _recorder()
    if recorder is not None:
        recorder.step()


def attach(run=None, level="lines", program=None, captures=False):
    """Records this process from now until it ends, for example from a cell of a notebook.

    `run`: the file to write; it can be opened while it grows. Without it the recording is a job, as with `warpsight
    record --serve`, which windows and terminals can watch. `level`: modules, ops or lines. `program`: the command line
    program of Warpsight, if it is not the one of this package or on PATH. `captures`: only what runs inside
    `with warpsight.capture():` is recorded. CUDA graphs that were made before have no names inside. Raises RuntimeError if nothing can be
    recorded.
    """
    import os
    import shlex
    import subprocess

    if recorded():
        return
    if program is None:
        from .program import path

        program = path()
    asked = [program, "record", "--environment", "--level", level, *(["--capture-range"] if captures else [])]
    try:
        said = subprocess.run(asked, capture_output=True, text=True)
    except OSError as error:
        raise RuntimeError(f"{program} cannot be started: {error.strerror}. Name it: attach(program=...)") from None
    if said.returncode != 0:
        raise RuntimeError(said.stderr.strip())
    words = [word for word in shlex.split(said.stdout) if "=" in word]
    variables = dict(word.split("=", 1) for word in words)
    if run is not None:
        variables["WARPSIGHT_RECORD_FILE"] = os.path.abspath(os.fspath(run))
        variables["WARPSIGHT_RECORD_NAME"] = os.path.splitext(os.path.basename(os.fspath(run)))[0]
        del variables["WARPSIGHT_RECORD_SERVER"]
    os.environ.update(variables)  # for the library, and for processes that this one starts
    _install(variables["PYTHONPATH"].split(os.pathsep)[0])


def _install(folder):
    import os
    from importlib.util import module_from_spec, spec_from_file_location

    place = os.path.join(folder, "warpsight_hook")
    spec = spec_from_file_location("_warpsight_hook", os.path.join(place, "__init__.py"), submodule_search_locations=[place])
    hook = module_from_spec(spec)
    _sys.modules["_warpsight_hook"] = hook
    spec.loader.exec_module(hook)
    hook.install(attached=True)
    if hook.api is None or not hook.api.begin():
        raise RuntimeError("Nothing is recorded: the library of Warpsight cannot be loaded here.")


class capture:
    """A capture range: `with warpsight.capture():`, or start() and stop(). `warpsight record --capture-range` records only what
    runs inside such ranges, of all threads. They may follow one another, but do not nest: the first end ends the range. A recording
    without that option has everything anyway."""

    @staticmethod
    def start():
        recorder = _recorder()
        if recorder is not None:
            recorder.capture(True)

    @staticmethod
    def stop():
        recorder = _recorder()
        if recorder is not None:
            recorder.capture(False)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        return False


class range:  # noqa: A001 - reads best: warpsight.range("augment")
    """Names the work inside: `with warpsight.range("augment"):`, or as a decorator."""

    def __init__(self, name):
        self._name = str(name)
        self._open = []

    def __enter__(self):
        recorder = _recorder()
        self._open.append(recorder)
        if recorder is not None:
            recorder.enter(self._name)
        return self

    def __exit__(self, *_):
        recorder = self._open.pop()
        if recorder is not None:
            recorder.leave()
        return False

    def __call__(self, function):
        import functools

        @functools.wraps(function)
        def named(*args, **kwargs):
            with range(self._name):
                return function(*args, **kwargs)

        return named


_HEAD_WORDS, _SEGMENT_WORDS = 16, 1024  # of 32 bits, as in profiling/annotate/kernel_ranges.cuh
_rings = {}


def kernel_ranges(names, blocks=1024):
    """Returns a tensor on the current GPU for ranges inside Triton kernels, or None if the program is not recorded.

    `blocks`: how many programs can run within 60 ms without losing stamps, if each makes up to 127 ranges. It takes
    4 KiB for each. The same names give the same tensor.
    """
    import os

    path = os.environ.get("CUDA_INJECTION64_PATH")
    if not path:
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    torch.cuda.init()
    key = (tuple(names), int(blocks), torch.cuda.current_device())
    if key not in _rings:
        _rings[key] = _add_ring(path, torch, *key[:2])
    return _rings[key]


def _add_ring(path, torch, names, blocks):
    import ctypes
    import os

    class Ring(ctypes.Structure):  # warpsight::Ring
        _fields_ = [
            ("version", ctypes.c_uint),
            ("name_count", ctypes.c_uint),
            ("memory", ctypes.c_void_p),
            ("segments", ctypes.c_uint),
            ("stamps", ctypes.c_uint),
            ("by_warp", ctypes.c_uint),
            ("names", ctypes.POINTER(ctypes.c_char_p)),
        ]

    try:
        add = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_NOLOAD).warpsight_ring_add
    except (OSError, AttributeError):
        return None
    segments = 1 << max(1, blocks - 1).bit_length()
    tensor = torch.zeros(_HEAD_WORDS + segments * _SEGMENT_WORDS, dtype=torch.int32, device="cuda")
    tensor[1] = segments
    torch.cuda.synchronize()
    texts = (ctypes.c_char_p * len(names))(*[str(name).encode() for name in names])
    ring = Ring(1, len(names), tensor.data_ptr(), segments, (_SEGMENT_WORDS - 8) // 4, 0, texts)
    return tensor if add(ctypes.byref(ring)) else None


def show(run, **options):
    """Shows a run file under the cell of a notebook: see warpsight.notebook."""
    from .notebook import show as shown

    return shown(run, **options)


def compare(a, b, **options):
    """Shows two run files beside each other under the cell of a notebook: see warpsight.notebook."""
    from .notebook import compare as compared

    return compared(a, b, **options)


def load_ipython_extension(shell):
    """`%load_ext warpsight` gives the notebook `%%record`."""
    from .notebook import Magics

    shell.register_magic_function(Magics(shell).record, "cell", "record")
