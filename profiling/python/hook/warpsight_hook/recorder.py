"""The functions of libwarpsight_inject.so. It loads no CUDA library before the program starts CUDA."""

import ctypes
import os
import sys
import threading


_METHODS = (  # in the library's order
    "push_module",
    "push_at",
    "push_text",
    "pop",
    "begin_step",
    "end_step",
    "begin_backward",
    "end_backward",
    "enter_optimizer",
    "leave_optimizer",
)


def _nothing(*_):
    return None


class Recorder:
    _all = []

    def __init__(self, path):
        self._path = path
        self._lock = threading.RLock()  # a signal handler may come here while the thread is inside
        self._library = None
        self.begun = False
        self._reset()
        Recorder._all.append(self)

    def _reset(self):
        for name in _METHODS:
            setattr(self, name, _nothing)
        self._library = None

    def begin(self):
        """True if this process is recorded."""
        with self._lock:
            if self._library is None and not self.begun:
                self.begun = True
                try:
                    self._load()
                except (OSError, AttributeError):  # this machine cannot load the library
                    self._reset()
            return self._library is not None

    def loaded_by_cuda(self):
        """True if CUDA has started, and has loaded the library."""
        try:
            ctypes.CDLL(self._path, mode=os.RTLD_NOLOAD)
            return True
        except OSError:
            return False

    def begin_gpu(self):
        """For a process in which CUDA may have started without the library: then the driver will not load it."""
        torch = sys.modules.get("torch")
        started = torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized()
        if self.begin() and started:
            self._library.InitializeInjection()

    def _load(self):
        library = ctypes.CDLL(self._path)
        texts = [ctypes.c_char_p] * 3
        for name, result, arguments in (
            ("begin", ctypes.c_int, []),
            ("method", ctypes.c_void_p, [ctypes.c_int]),
            ("capture", None, [ctypes.c_int]),
            ("records", ctypes.c_int, []),
            ("place", ctypes.c_uint, texts),
            ("why_not", ctypes.c_char_p, texts[:2]),
            ("torch_search", ctypes.c_int, texts[:1]),
            ("torch_observe", ctypes.c_int, [ctypes.c_int]),
            ("torch_follow", ctypes.c_int, [ctypes.c_void_p * 3, ctypes.c_char_p]),
            ("torch_memory", ctypes.c_int, texts[:1]),
            ("scalar", None, [ctypes.c_char_p, ctypes.c_double, ctypes.c_int64]),
            ("fact", None, texts[:2]),
            ("sampler_stop", None, []),
            ("steps", ctypes.c_int64, []),
        ):
            function = getattr(library, "warpsight_" + name)
            function.restype, function.argtypes = result, arguments
        if not library.warpsight_begin():
            return
        _take_environment()
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
        for number, name in enumerate(_METHODS):
            definition = library.warpsight_method(number)
            if not definition:
                return
            setattr(self, name, make(definition, None, None))
        self._held = held = ctypes.PyDLL(self._path)  # its functions are called with the interpreter's lock
        held.warpsight_watch_modules.argtypes = [ctypes.py_object] * 2
        held.warpsight_forget_module.argtypes = [ctypes.c_void_p]
        held.warpsight_watch_optimizer.argtypes = [ctypes.py_object]
        held.warpsight_learn_optimizers.argtypes = held.warpsight_after_steps.argtypes = [ctypes.py_object, ctypes.c_int]
        self._library = library

    @classmethod
    def silence(cls):
        """Stops recording in a forked child, which has none of the library's threads."""
        for recorder in cls._all:
            recorder._lock = threading.RLock()
            recorder.begun = True
            recorder._reset()

    def capture(self, on):
        """A capture range begins or ends."""
        if self._library:
            self._library.warpsight_capture(on)

    def records(self):
        """False outside of capture ranges."""
        return bool(self._library and self._library.warpsight_records())

    def place(self, name, path="", phase=""):
        library = self._library
        return library.warpsight_place(_bytes(name), _bytes(path), _bytes(phase)) if library else 0

    def why_not(self, hook, version):
        """Why the library leaves this hook out, in one sentence: the version is not known, or the user switched it off. "": it does not."""
        return self._library.warpsight_why_not(_bytes(hook), _bytes(version)).decode() if self._library else ""

    def torch_search(self, version):
        return bool(self._library and self._library.warpsight_torch_search(_bytes(version)))

    def torch_observe(self, ops):
        return bool(self._library and self._library.warpsight_torch_observe(ops))

    def torch_follow(self, nodes, version):
        """`nodes`: three backward functions, made one after the other just now."""
        head = object.__basicsize__  # then the address of PyTorch's own object
        addresses = [ctypes.c_void_p.from_address(id(node) + head).value for node in nodes]
        return bool(self._library and self._library.warpsight_torch_follow((ctypes.c_void_p * 3)(*addresses), _bytes(version)))

    def watch_modules(self, function, learn):
        """True if the library records each call of this function. `learn(module, phase)` returns the place of a module."""
        if not self._library:
            return False
        return bool(self._held.warpsight_watch_modules(function, learn))

    def forget_module(self, key):
        if self._library:
            self._held.warpsight_forget_module(key)

    def learn_optimizers(self, learn, ranges):
        """`learn(optimizer)` returns the place of its ranges, and is called when no optimizer leads, too: then this one does."""
        if self._library:
            self._held.warpsight_learn_optimizers(learn, ranges)

    def watch_optimizer(self, function):
        """True if the library records each call of this step()."""
        # 3.11 does not ask a function for its C function where Python code calls it.
        return bool(self._library and sys.version_info[:2] != (3, 11) and self._held.warpsight_watch_optimizer(function))

    def forget_leader(self):
        if self._library:
            self._held.warpsight_forget_leader()

    def after_steps(self, then, wanted):
        """`then()` is called after each step of the optimizer while it is wanted."""
        if self._library:
            self._held.warpsight_after_steps(then, wanted)

    def steps(self):
        """How many have ended."""
        return self._library.warpsight_steps() if self._library else 0

    def torch_memory(self, version):
        return bool(self._library and self._library.warpsight_torch_memory(_bytes(version)))

    def scalar(self, name, value, step):
        if self._library:
            self._library.warpsight_scalar(_bytes(name), value, step)

    def fact(self, key, value):
        if self._library:
            self._library.warpsight_fact(_bytes(key), _bytes(value))

    def learn_frames(self, others, lines):
        """True if the library can read this interpreter's frames. It learns their layout from three nested calls."""
        if not self._library:
            return False
        learn = ctypes.PyDLL(self._path).warpsight_learn_frames
        learn.argtypes = [ctypes.POINTER(ctypes.c_int64), ctypes.c_ulong, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]

        def inner():
            frame, said = sys._getframe(), []
            for _ in range(3):
                said += [id(frame), id(frame.f_code), frame.f_lasti]
                frame = frame.f_back
            said = (ctypes.c_int64 * 9)(*said)
            return learn(said, threading.get_ident(), sys.version_info[1], _bytes(others), lines)

        def outer():
            found = []
            found.append(inner())
            return bool(found[0])

        return outer()

    def sample(self, thread_name, learned, native):
        if self._library:
            start = ctypes.PyDLL(self._path).warpsight_sampler_start
            start.argtypes = [ctypes.py_object, ctypes.py_object, ctypes.c_int]
            start(thread_name, learned, native)

    def stop_sampling(self):
        if self._library:
            self._library.warpsight_sampler_stop()


def _take_environment():
    """The library may have named a file and a follower, which our children need too."""
    get = ctypes.CDLL(None).getenv
    get.restype, get.argtypes = ctypes.c_char_p, [ctypes.c_char_p]
    for name in [name for name in os.environ if name.startswith("WARPSIGHT_RECORD_")]:
        value = os.fsdecode(get(name.encode()) or b"")
        if value != os.environ[name]:
            os.environ[name] = value


def _bytes(text):
    return str(text).encode("utf-8", "replace").replace(b"\0", b"")[:60_000]
