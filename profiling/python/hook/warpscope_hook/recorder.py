"""The functions of libwarpscope_inject.so. It is loaded late: after torch, whose own CUDA libraries come first then."""

import ctypes
import threading


def _nothing(*_):
    return None


class Recorder:
    _all = []

    def __init__(self, path):
        self._path = path
        self._lock = threading.Lock()
        self._library = None
        self.begun = False
        self._reset()
        Recorder._all.append(self)

    def _reset(self):
        self.push = self.push_text = self.pop = self.at_line = self.switch_backward = _nothing
        self._library = None

    def begin(self):
        """True if this process is recorded."""
        with self._lock:
            if self._library is None and not self.begun:
                self.begun = True
                try:
                    self._load()
                except (OSError, AttributeError):  # a library that this machine cannot load
                    self._reset()
            return self._library is not None

    def _load(self):
        library = ctypes.CDLL(self._path)
        texts = [ctypes.c_char_p] * 3
        for name, result, arguments in (
            ("begin", ctypes.c_int, []),
            ("method", ctypes.c_void_p, [ctypes.c_int]),
            ("place", ctypes.c_uint, texts),
            ("line", ctypes.c_uint, texts[:2]),
            ("end_backward", None, []),
            ("step", None, [ctypes.c_int64]),
            ("scalar", None, [ctypes.c_char_p, ctypes.c_double, ctypes.c_int64]),
            ("stack", ctypes.c_uint, texts[:1]),
            ("sample", None, [ctypes.c_char_p, ctypes.c_uint, ctypes.c_int64, ctypes.c_int64]),
            ("fact", None, texts[:2]),
            ("now", ctypes.c_int64, []),
        ):
            function = getattr(library, "warpscope_" + name)
            function.restype, function.argtypes = result, arguments
        if not library.warpscope_begin():
            return
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
        for number, name in enumerate(("push", "push_text", "pop", "at_line", "switch_backward")):
            definition = library.warpscope_method(number)
            if not definition:
                return
            setattr(self, name, make(definition, None, None))
        self._library = library

    @classmethod
    def silence(cls):
        """In a forked child, which has none of the library's threads."""
        for recorder in cls._all:
            recorder._lock = threading.Lock()
            recorder.begun = True
            recorder._reset()

    def place(self, name, path="", phase=""):
        library = self._library
        return library.warpscope_place(_bytes(name), _bytes(path), _bytes(phase)) if library else 0

    def line(self, function, where):
        library = self._library
        return library.warpscope_line(_bytes(function), _bytes(where)) if library else 0

    def end_backward(self):
        if self._library:
            self._library.warpscope_end_backward()

    def step(self, number):
        if self._library:
            self._library.warpscope_step(number)

    def scalar(self, name, value, step):
        if self._library:
            self._library.warpscope_scalar(_bytes(name), value, step)

    def stack(self, text):
        library = self._library
        return library.warpscope_stack(_bytes(text)) if library else 0

    def sample(self, thread, stack, begin, end):
        if self._library:
            self._library.warpscope_sample(_bytes(thread), stack, begin, end)

    def fact(self, key, value):
        if self._library:
            self._library.warpscope_fact(_bytes(key), _bytes(value))

    def now(self):
        return self._library.warpscope_now() if self._library else 0


def _bytes(text):
    return str(text).encode("utf-8", "replace").replace(b"\0", b"")[:60_000]
