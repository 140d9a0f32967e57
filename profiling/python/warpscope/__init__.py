"""Tells the recorder of Warpscope what only the program knows. Nothing happens when nobody records.

    warpscope.log(loss=loss, lr=rate)    # on the charts, with the step
    warpscope.step()                     # a step ends here
    with warpscope.range("augment"):     # work with a name
"""

import sys as _sys

__all__ = ["log", "step", "range", "recorded"]


def _recorder():
    # Put there by `warpscope-cli record` before the program began.
    return getattr(_sys.modules.get("_warpscope_hook"), "api", None)


def recorded():
    """True if a recorder listens."""
    return _recorder() is not None


def log(step=None, **scalars):
    """Scalars of this step. Values are numbers, or anything with item(), such as a tensor of one element."""
    recorder = _recorder()
    if recorder is not None:
        recorder.log(scalars, step)


def step():
    """A step of the program ends, the next one begins."""
    recorder = _recorder()
    if recorder is not None:
        recorder.step()


class range:  # noqa: A001 - the name that reads best: warpscope.range("augment")
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
