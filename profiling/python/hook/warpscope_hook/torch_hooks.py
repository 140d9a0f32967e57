"""Marks what PyTorch does: modules with their paths, phases, steps, data loaders; at level ops each op as well.

Routes, by what they add (CPython 3.11, PyTorch 1.13, best of five on a shared core): one call of the library 0.05 µs as a
method, 0.14 µs through ctypes; a module's call, with its place found and its backward noted, 0.6 µs; a pair of global forward
hooks 0.6 µs empty, and none of its end when the module raises; TorchDispatchMode 4.3 µs an op, empty. On a GPU ops come from
the profiler's own NVTX ranges instead.
"""

import sys
import weakref

from . import lines, ops


def install(program, torch):
    for part in (_modules, _backward, _optimizers, _loaders, _waits, ops.install, lines.install):
        try:
            part(program, torch)
        except Exception:
            pass  # a version that has it elsewhere: the other parts are marked


frame_of = sys._getframe


def _named_like(wrapper, original):
    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        try:
            setattr(wrapper, attribute, getattr(original, attribute))
        except AttributeError:
            pass
    wrapper._warpscope = True
    return wrapper


class Paths:
    """Modules by identity, with the number of their place in each phase. Keeps no module alive."""

    def __init__(self, recorder):
        self._recorder = recorder
        self._paths = {}  # id → (path, class name)
        self._alive = {}  # id → weak reference
        self._roots = []  # class names of models so far
        self.places = {}  # phase → id → place

    def learn(self, module, phase):
        key = id(module)
        if key not in self._paths:
            self._name_all(module)
        path, kind = self._paths[key]
        place = self._recorder.place(kind, path, phase)
        self.places.setdefault(phase, {})[key] = place
        return place

    def _name_all(self, root):
        kind = type(root).__name__
        modules = list(root.named_modules())
        prefix = ""
        if len(modules) > 1:  # a second model's modules are told from those of the first
            prefix = kind + "." if self._roots and kind not in self._roots[:1] else ""
            if kind not in self._roots:
                self._roots.append(kind)
        for name, module in modules:
            self._keep(module, prefix + _short(name) if name else kind)

    def _keep(self, module, path):
        key = id(module)
        known = self._paths.get(key)
        if known is not None and known[0] != known[1]:
            return  # named by a larger model
        self._paths[key] = (path, type(module).__name__)
        for places in self.places.values():
            places.pop(key, None)
        if key not in self._alive:
            self._alive[key] = weakref.ref(module, lambda _, key=key: self._forget(key))

    def _forget(self, key):
        self._paths.pop(key, None)
        self._alive.pop(key, None)
        for places in list(self.places.values()):
            places.pop(key, None)


_WRAPPERS = ("module.", "_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")


def _short(path):
    """Without the names that wrappers of models add."""
    while path.startswith("module."):
        path = path[len("module."):]
    for wrapper in _WRAPPERS[1:]:
        path = path.replace(wrapper, "")
    return path


def _modules(program, torch):
    recorder = program.recorder
    paths = Paths(recorder)
    program.paths = paths
    push, pop = recorder.push, recorder.pop
    places = paths.places
    note_backward = _backward_notes(program, torch)
    original = torch.nn.Module.__call__

    def __call__(self, *args, **kwargs):
        phase = program.phase
        try:
            place = places[phase][id(self)]
        except KeyError:
            try:
                program.begin_step()
                place = paths.learn(self, phase)
            except Exception:
                place = 0
        push(place)
        try:
            result = original(self, *args, **kwargs)
        finally:
            pop()
        note_backward(self, result)
        return result

    torch.nn.Module.__call__ = _named_like(__call__, original)


def _first_node(value, depth=2):
    node = getattr(value, "grad_fn", None)
    if node is not None or depth == 0:
        return node
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        for one in value[:8]:
            node = _first_node(one, depth - 1)
            if node is not None:
                return node
    return None


def _backward_notes(program, torch):
    """When backward reaches the function that made a module's output, the module's own backward begins."""
    if not hasattr(torch.autograd.graph, "Node") and torch.__version__.startswith("1."):
        has_prehook = True  # of each function; the class is not named in these versions
    else:
        has_prehook = hasattr(torch.autograd.graph.Node, "register_prehook")
    if not has_prehook:
        return lambda module, result: None
    recorder, paths = program.recorder, program.paths
    switch = recorder.switch_backward
    hooks = {}

    def hook_of(key):
        hook = hooks.get(key)
        if hook is None:
            path, kind = paths._paths[key]
            place = recorder.place(kind, path, "backward")

            def hook(_):
                switch(place)

            hooks[key] = hook
        return hook

    def note(module, result):
        try:
            node = _first_node(result)
            if node is None:
                return
            marks = node.metadata
            if "warpscope" not in marks:  # an inner module came first
                marks["warpscope"] = True
                node.register_prehook(hook_of(id(module)))
        except Exception:
            pass

    return note


def _backward(program, torch):
    recorder = program.recorder
    pop, switch = recorder.pop, recorder.switch_backward
    place = recorder.place("backward", "", "backward")

    def around(original):
        def backward(*args, **kwargs):
            before, program.phase = program.phase, "backward"
            program.push_at(place, frame_of(1))
            try:
                return original(*args, **kwargs)
            finally:
                program.phase = before
                switch(0)
                pop()
                recorder.end_backward()

        return _named_like(backward, original)

    torch.autograd.backward = around(torch.autograd.backward)
    torch.autograd.grad = around(torch.autograd.grad)


def _optimizers(program, torch):
    recorder = program.recorder
    pop = recorder.pop
    places = {}
    leader = []

    def before(optimizer):
        kind = type(optimizer).__name__
        if kind not in places:
            places[kind] = recorder.place(kind + ".step", "", "optimizer")
        program.phase = "optimizer"
        program.push_at(places[kind], frame_of(2))

    def after(optimizer):
        pop()
        program.phase = "forward"
        if not leader or leader[0]() is None:
            leader[:] = [weakref.ref(optimizer)]
        if leader[0]() is optimizer and not program.says_steps:
            program.end_step()

    wrapped = set()

    def wrap(kind):
        step = kind.step
        if getattr(step, "_warpscope", False) or kind in wrapped:
            return
        wrapped.add(kind)

        def around(self, *args, **kwargs):
            before(self)
            try:
                return step(self, *args, **kwargs)
            finally:
                after(self)

        _named_like(around, step)
        around.hooked = getattr(step, "hooked", True)
        around.__wrapped__ = step
        kind.step = around

    Optimizer = torch.optim.Optimizer
    original = Optimizer.__init__

    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        try:
            wrap(type(self))
        except Exception:
            pass

    Optimizer.__init__ = _named_like(__init__, original)


def _loaders(program, torch):
    recorder = program.recorder
    pop = recorder.pop
    place = recorder.place("wait for data", "", "data")
    import torch.utils.data.dataloader as dataloader

    Iterator = dataloader._BaseDataLoaderIter
    original = Iterator.__next__

    def __next__(self):
        program.begin_step()
        program.push_at(place, frame_of(1))
        try:
            return original(self)
        finally:
            pop()

    Iterator.__next__ = _named_like(__next__, original)
    Iterator.next = Iterator.__next__


def _waits(program, torch):
    """Calls after which the host has waited for the GPU."""
    recorder = program.recorder
    pop = recorder.pop

    def around(owner, name, shown):
        original = getattr(owner, name, None)
        if original is None:
            return
        place = recorder.place(shown, "", "sync")

        def waits(*args, **kwargs):
            program.push_at(place, frame_of(1))
            try:
                return original(*args, **kwargs)
            finally:
                pop()

        setattr(owner, name, _named_like(waits, original))

    for name in ("item", "tolist", "cpu"):
        around(torch.Tensor, name, f".{name}()")
    around(torch.cuda, "synchronize", "torch.cuda.synchronize()")
