"""State of the recorded program: its steps, scalars and ranges. Also hooks for the loggers that it may use."""

import functools
import os
import platform
import sys
import sysconfig
import threading

from . import switches, torch_hooks
from .losses import Losses
from .levels import LINES, MODULES


def _quiet(method):
    """The program goes on after any error of ours."""

    @functools.wraps(method)
    def called(*args, **kwargs):
        try:
            return method(*args, **kwargs)
        except Exception:
            return None

    return called


class Program:
    def __init__(self, recorder, level):
        self.recorder = recorder
        self.level = level  # index into LEVELS
        self.attached = False  # to a program that was already running
        self.reads_frames = None  # not tried yet
        self._learning = threading.RLock()  # a signal handler may begin, too
        self.not_own = not_own()
        self._late = []  # scalars whose copy from the GPU is not finished
        self._waits = False  # for these
        self._said_what_is_left_out = False
        self._take_late_then = self._take_late  # one object, which the library keeps
        self.losses = Losses(self)

    # Called by the package `warpsight`.

    @_quiet
    def log_call(self, data, scalars, step):
        """`data`: dictionaries of scalars, as loggers take them, or the step. Says what is neither."""
        for one in data:
            if isinstance(one, dict):
                scalars = {**one, **scalars}
            elif step is None and isinstance(one, (int, float)):
                step = one
            else:
                self._cannot_log(f"{one!r:.40} has no name: write log(name={one!r:.40})")
        if step is not None and _whole(step) is None:
            self._cannot_log(f"step {step!r:.40} is no whole number from 0 on: the values are at the step of the program")
            step = None
        for name, value in scalars.items():
            if not isinstance(value, (int, float)) and not hasattr(value, "item"):
                self._cannot_log(f"{str(name)!r:.40} is not a number")
        self.log(scalars, step)

    def _cannot_log(self, what):
        """The first of them is said."""
        if not self._said_what_is_left_out and self.begin():
            self._said_what_is_left_out = True
            self.recorder.fact("program_log", f"Not all was logged: {what}.")

    @_quiet
    def log(self, scalars, step=None):
        if self.begin():
            for name, value in list(scalars.items()):
                self.scalar(name, value, step)

    @_quiet
    def step(self):
        if self.begin():
            self.recorder.end_step()
            self._take_late()

    @_quiet
    def capture(self, on):
        if self.begin():
            self.recorder.capture(on)

    @_quiet
    def enter(self, name):
        if self.begin():
            self.recorder.push_text(name)

    @_quiet
    def leave(self):
        self.recorder.pop()

    # Called by the hooks.

    def begin(self):
        """True if this process is recorded."""
        if not self.recorder.begin():
            return False
        if self.reads_frames is None:
            with self._learning:  # the thread of the samples begins, too
                if self.reads_frames is None:
                    self.reads_frames = self._learn_frames()
        return True

    def _learn_frames(self):
        recorder = self.recorder
        free = sysconfig.get_config_var("Py_GIL_DISABLED")
        recorder.fact("program_python", platform.python_version() + (", free-threaded" if free else ""))
        if self.level < MODULES:
            return False
        if free:  # frames would change while they are read
            recorder.fact("program_lines", "No source lines and no stacks: the frames of a free-threaded Python are not read.")
            return False
        try:
            if recorder.learn_frames("\n".join(self.not_own), self.level >= LINES):
                return True
        except Exception:
            pass
        version = ".".join(platform.python_version_tuple()[:2])
        why = recorder.why_not("python-frames", version)
        recorder.fact("program_lines", why or f"No source lines and no stacks: the frames of Python {version} cannot be read here.")
        return False

    @property
    def steps(self):
        return self.recorder.steps()

    def scalar(self, name, value, step=None):
        if not self.recorder.records():
            return
        try:
            step = _whole(step)
            at = self.steps if step is None else step
            self.losses.logged(str(name))
            if getattr(value, "is_cuda", False):
                self._late.append(_Late(str(name), value, at))
                self._take_late()
            else:
                self.recorder.scalar(name, float(value.item() if hasattr(value, "item") else value), at)
        except Exception:
            pass  # not a number

    def _take_late(self):
        while self._late and self._late[0].there():
            late = self._late.pop(0)
            self.recorder.scalar(late.name, late.value(), late.step)
        del self._late[: max(0, len(self._late) - 256)]
        if bool(self._late) != self._waits:
            self._waits = not self._waits
            self.recorder.after_steps(self._take_late_then, self._waits)

    def on_torch(self, torch):
        if not self.begin():
            return
        self.say_facts(torch)
        switches.install(self, torch)  # before our own hooks, which stand around what it changes
        torch_hooks.install(self, torch)

    def say_facts(self, torch):
        facts = {
            "torch": torch.__version__,
            "torch_cuda": torch.version.cuda or "no",
            "threads": torch.get_num_threads(),
        }
        for key, value in facts.items():
            self.recorder.fact("program_" + key, value)


def _whole(step):
    """The step as a number from 0 on that the run file can hold, or None."""
    try:
        number = int(step)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 <= number < 1 << 62 else None


class _Late:
    """A scalar on the GPU. It is copied after its kernel, without waiting."""

    def __init__(self, name, tensor, step):
        import torch

        self.name, self.step = name, step
        self._copy = torch.empty((), dtype=torch.float32, pin_memory=True)
        with torch.no_grad():
            self._copy.copy_(tensor.detach().reshape(()), non_blocking=True)
        self._event = torch.cuda.Event()
        self._event.record()

    def there(self):
        return self._event.query()

    def value(self):
        return float(self._copy)


def not_own():
    """Path prefixes of code that is not the program's own: Python, installed packages, ours."""
    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {os.path.realpath(paths[name]) + os.sep for name in names if name in paths}
    folders |= {paths[name] + os.sep for name in names if name in paths}
    if getattr(sys, "frozen", False):  # by PyInstaller: paths begin with their package
        packages = (*getattr(sys, "stdlib_module_names", ()), "torch", "lightning", "transformers", "jax", "numpy", "tqdm")
        folders |= {package + ending for package in packages for ending in (".py", "/")}
    return (*sorted(folders), os.path.dirname(os.path.abspath(__file__)) + os.sep, "/usr/lib/python3/")


# Loggers: we receive the same values after each logger call, so that a logger's own errors are not affected.


def _after(owner, name, then):
    original = getattr(owner, name, None)
    if original is None or getattr(original, "_warpsight", False):
        return

    def reporting(*args, **kwargs):
        result = original(*args, **kwargs)
        try:
            then(*args, **kwargs)
        except Exception:
            pass
        return result

    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        try:
            setattr(reporting, attribute, getattr(original, attribute))
        except AttributeError:
            pass
    reporting.__wrapped__ = original
    reporting._warpsight = True
    setattr(owner, name, reporting)


def _tensorboard(program, module):
    def added(self, tag, scalar_value, global_step=None, *_, **__):
        program.log({tag: scalar_value}, global_step)

    def added_some(self, main_tag, tag_scalar_dict, global_step=None, *_, **__):
        program.log({f"{main_tag}/{tag}": value for tag, value in tag_scalar_dict.items()}, global_step)

    _after(module.SummaryWriter, "add_scalar", added)
    _after(module.SummaryWriter, "add_scalars", added_some)


def _numbers(values):
    return {name: value for name, value in values.items() if isinstance(value, (int, float)) or hasattr(value, "item")}


def _wandb(program, module):
    def logged(data=None, step=None, *_, **__):
        program.log(_numbers(data or {}), step)

    def logged_by_run(self, data=None, step=None, *_, **__):
        logged(data, step)

    # After a run has begun, the module's `log` is a method of the run. So we hook the class.
    run = getattr(sys.modules.get("wandb.sdk.wandb_run"), "Run", None)
    if run is not None:
        _after(run, "log", logged_by_run)
    else:
        _after(module, "log", logged)


def _lightning(program, module):
    def logged(self, name, value, *_, **__):
        program.log(_numbers({name: value}), getattr(self, "global_step", None))

    def logged_some(self, dictionary, *_, **__):
        program.log(_numbers(dictionary), getattr(self, "global_step", None))

    _after(module.LightningModule, "log", logged)
    _after(module.LightningModule, "log_dict", logged_some)


def _tqdm(program, module):
    def shown(self, ordered_dict=None, refresh=True, **values):
        # A bar counts late: between its updates of the screen, its number stays the same. The bar of the next epoch begins
        # at 0 again, so steps that are known otherwise are better.
        step = max(getattr(self, "n", 0), getattr(self, "_warpsight_step", -1) + 1)
        self._warpsight_step = step
        program.log(_numbers({**(ordered_dict or {}), **values}), None if program.steps else step)

    _after(module.tqdm, "set_postfix", shown)


LOGGERS = {
    "torch.utils.tensorboard.writer": _tensorboard,
    "tensorboardX.writer": _tensorboard,
    "wandb": _wandb,
    "lightning.pytorch.core.module": _lightning,
    "pytorch_lightning.core.module": _lightning,
    "tqdm.std": _tqdm,
}
