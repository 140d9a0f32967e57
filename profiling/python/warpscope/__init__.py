"""Tells Warpscope's recorder what only the program knows. Does nothing if the program is not recorded.

    warpscope.log(loss=loss, lr=rate)    # shown on the charts, by step
    warpscope.step()                     # a step ends here
    with warpscope.range("augment"):     # names the work inside
"""

import sys as _sys

__all__ = ["log", "step", "range", "recorded"]


def _recorder():
    # `warpscope-cli record` puts the module there before the program begins.
    return getattr(_sys.modules.get("_warpscope_hook"), "api", None)


def recorded():
    """True if the program is recorded."""
    return _recorder() is not None


def log(step=None, **scalars):
    """Logs scalars of this step. Values are numbers, or objects with item(), such as a tensor with one element."""
    recorder = _recorder()
    if recorder is not None:
        recorder.log(scalars, step)


def step():
    """Ends a step of the program and begins the next one."""
    recorder = _recorder()
    if recorder is not None:
        recorder.step()


class range:  # noqa: A001 - reads best: warpscope.range("augment")
    """Names the work inside: `with warpscope.range("augment"):`, or as a decorator."""

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
