"""Switches of a PyTorch program that `warpsight prove` turns on: how it trains changes, not what it trains.

A switch that finds nothing to change leaves the program alone. What it changed is a fact of the recording.
"""

import builtins
import os

VARIABLE = "WARPSIGHT_SWITCHES"  # "pinned; workers=4"


def install(program, torch):
    turned = Turned(program)
    for name, value in wanted(os.environ.get(VARIABLE, "")):
        try:
            SWITCHES[name](turned, torch, value)
        except Exception as error:  # a PyTorch without it
            turned.failed(name, error)


def wanted(text):
    for part in text.split(";"):
        name, _, value = part.strip().partition("=")
        if name in SWITCHES:
            yield name, value


class Turned:
    """Notes in the recording what was changed, once for each switch."""

    def __init__(self, program):
        self._program, self._changed, self._failures = program, [], []

    def changed(self, name, what):
        if (name, what) not in self._changed:
            self._changed.append((name, what))
            self._say("program_switched", [f"{name}: {what}" for name, what in self._changed])

    def failed(self, name, error):
        self._failures.append(f"{name}: {error}")
        self._say("program_not_switched", self._failures)

    def _say(self, key, parts):
        if self._program.begin():
            self._program.recorder.fact(key, "; ".join(parts))


def _around(owner, name, made):
    """Replaces the function `name` of `owner` by made(original)."""
    original = getattr(owner, name)
    wrapper = made(original)
    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        try:
            setattr(wrapper, attribute, getattr(original, attribute))
        except AttributeError:
            pass
    setattr(owner, name, wrapper)


def _loaders(turned, torch, name, position, value, what):
    """An argument of each DataLoader, which the program may have given by position."""

    def made(original):
        def __init__(self, *arguments, **named):
            if len(arguments) > position:
                arguments = (*arguments[:position], value, *arguments[position + 1 :])
            else:
                named[name] = value
            turned.changed(*what)
            original(self, *arguments, **named)

        return __init__

    _around(torch.utils.data.DataLoader, "__init__", made)


def pinned(turned, torch, _):
    _loaders(turned, torch, "pin_memory", 7, True, ("pinned", "data loaders copy to pinned memory"))


def workers(turned, torch, value):
    count = int(value or 4)
    _loaders(turned, torch, "num_workers", 5, count, ("workers", f"data loaders have {count} workers"))


def non_blocking(turned, torch, _):
    def made(original):
        def moved(self, *arguments, **named):
            if not self.is_cuda and "non_blocking" not in named and not any(isinstance(one, bool) for one in arguments):
                named["non_blocking"] = True
                turned.changed("non-blocking", "copies to the GPU do not wait")
            return original(self, *arguments, **named)

        return moved

    _around(torch.Tensor, "to", made)
    _around(torch.Tensor, "cuda", made)


def set_to_none(turned, torch, _):
    def made(original):
        def zero_grad(self, set_to_none=True):
            if not set_to_none:
                turned.changed("set-to-none", "gradients are dropped, not set to zero")
            return original(self, set_to_none=True)

        return zero_grad

    _around(torch.optim.Optimizer, "zero_grad", made)
    _around(torch.nn.Module, "zero_grad", made)


def fused_optimizer(turned, torch, _):
    def made(original):
        def __init__(self, params, *arguments, **named):
            params = list(params)
            tensors = [one for group in params for one in (group["params"] if isinstance(group, dict) else [group])]
            if tensors and all(getattr(one, "is_cuda", False) for one in tensors) and not named.get("fused"):
                named.pop("foreach", None)
                named["fused"] = True
                turned.changed("fused-optimizer", f"{type(self).__name__} updates in one kernel")
            return original(self, params, *arguments, **named)

        return __init__

    for name in ("Adam", "AdamW", "SGD", "Adagrad"):
        if hasattr(torch.optim, name):
            _around(getattr(torch.optim, name), "__init__", made)


def tf32(turned, torch, _):
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    turned.changed("tf32", "products of fp32 may use tf32")


# torch.compile skips frames of our files and of PyTorch's own modules, unless another frame calls them: after
# nn.Sequential(...).compile() it compiles nothing. This is such another frame.
_CALL = builtins.compile("def call(*arguments, **named):\n    return inner(*arguments, **named)\n", "<compiled model>", "exec")


def _first_call(turned, torch, name, mode, model, arguments, named):
    kind = type(model).__name__
    try:
        scope = {"inner": model._call_impl}
        exec(_CALL, scope)
        model._compiled_call_impl = torch.compile(scope["call"], mode=mode)
        result = model(*arguments, **named)
        if not torch._dynamo.utils.counters["stats"]["unique_graphs"]:
            raise RuntimeError(f"torch.compile found nothing to compile in {kind}")
    except Exception as error:
        model._compiled_call_impl = None
        turned.failed(name, (str(error).strip() or type(error).__name__).splitlines()[0])
        return model(*arguments, **named)
    turned.changed(name, f"{kind} is compiled" + (" into CUDA graphs" if mode else ""))
    return result


def _compiled(turned, torch, name, mode):
    """Compiles the first module that is called while gradients are on: the model."""
    kind = torch.nn.Module
    original = kind.__call__

    def __call__(self, *arguments, **named):
        if torch.is_grad_enabled() and any(True for _ in self.parameters()):
            kind.__call__ = original
            return _first_call(turned, torch, name, mode, self, arguments, named)
        return original(self, *arguments, **named)

    if not hasattr(kind, "compile"):
        raise AttributeError("this PyTorch cannot compile a module in its place")
    kind.__call__ = __call__


def compile(turned, torch, _):
    _compiled(turned, torch, "compile", None)


def graphs(turned, torch, _):
    _compiled(turned, torch, "graphs", "reduce-overhead")


SWITCHES = {
    "pinned": pinned,
    "workers": workers,
    "non-blocking": non_blocking,
    "set-to-none": set_to_none,
    "fused-optimizer": fused_optimizer,
    "tf32": tf32,
    "compile": compile,
    "graphs": graphs,
}
