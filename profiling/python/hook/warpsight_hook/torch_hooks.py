"""Marks what PyTorch does: modules with their paths, phases, steps, data loaders. At level ops also each op,
at level steps only the steps.

Possible ways, with the CPU time that they add to the program's thread (CPython 3.11, PyTorch 1.13, best of nine, a shared core):

    a module's call: the interpreter's own call, recorded in the library     0.1 µs     used (module_calls.h)
    a module's call: our wrapper in Python, its range in the library         0.5 µs     where a Python has another layout
    an optimizer's step(): recorded in the library in the same way            not timed  used
    a pair of global forward hooks, empty                                     0.6 µs     no end when the module raises
    a backward function: autograd's engine, recorded in the library           80 instructions   used at level modules
    a backward function: PyTorch's observers                                  3,400 instructions, 1 µs   where it cannot be used
    a hook on each module's autograd node, with a Python function             not timed  replaced: Python in the backward pass
    an op: PyTorch's observers, recorded in the library (torch_observer.h)   0.4 µs     used
    an op: TorchDispatchMode, empty                                           4.3 µs     replaced
    an op: the profiler's NVTX ranges (emit_nvtx)                             0.5 µs     where a PyTorch has no known observers
    its line: the interpreter's frames, read at the op (python_frames.h)     0.1 µs     used
    its whole stack: the same frames up to the outermost, known by a hash     within noise of its line   used
    its line: sys.settrace, or sys.monitoring                                 a Python call for each line that runs: replaced
    stacks each ms: faulthandler, with the interpreter's lock                 25 to 100 % of a small step: replaced
    stacks each ms: frames read from a thread of ours, without the lock       within noise   used
    native frames each ms: threads that run copy 16 KiB of stack at a signal  within noise   used at level lines (native_stacks.h)
"""

import atexit
import platform
import sys
import weakref

from . import imports, loaders, ops
from .levels import MODULES
from .losses import of_program


def install(program, torch):
    parts = [_compiler, _captures, _optimizers, _ranks]
    if program.level >= MODULES:
        parts += [ops.install, _memory, _modules, _backward, _loaders, loaders.install, _waits]
    for part in parts:
        try:
            part(program, torch)
        except Exception:
            pass  # a version with a different layout: the other parts still work


def _compiler(program, torch):
    """torch.compile takes all Python that runs inside a compiled call. Our code would be graph breaks there."""
    for rules in ("torch._dynamo.trace_rules", "torch._dynamo.skipfiles"):
        imports.watch(rules, lambda module: module.add(__package__))


def _captures(program, torch):
    """Records torch.cuda.profiler.start() and stop(), also at levels without CUPTI. PyTorch has taken the addresses already."""
    runtime = torch._C._cudart

    def around(name, on):
        original = getattr(runtime, name)

        def called(*args, **kwargs):
            if not on:
                program.capture(False)
            result = original(*args, **kwargs)
            if on:
                program.capture(True)
            return result

        setattr(runtime, name, _named_like(called, original))

    around("cudaProfilerStart", True)
    around("cudaProfilerStop", False)


def _memory(program, torch):
    """Blocks of PyTorch's allocators, with the range in which they were made. When its cache failed is asked at the end."""
    if not program.recorder.torch_memory(torch.__version__):
        why = program.recorder.why_not("torch-memory", torch.__version__)
        program.recorder.fact("program_memory", why or "No blocks of PyTorch's allocator: this PyTorch does not report them.")

    def ask():
        counts = {"num_alloc_retries": 0, "num_ooms": 0}
        try:
            if not torch.cuda.is_initialized():
                return
            for device in range(torch.cuda.device_count()):
                for name in counts:
                    counts[name] += torch.cuda.memory_stats(device).get(name, 0)
        except Exception:
            return  # the GPU failed
        if counts["num_alloc_retries"]:
            program.recorder.fact("program_memory_retries", counts["num_alloc_retries"])
        if counts["num_ooms"]:
            program.recorder.fact("program_memory_errors", counts["num_ooms"])

    atexit.register(ask)


def _named_like(wrapper, original):
    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        try:
            setattr(wrapper, attribute, getattr(original, attribute))
        except AttributeError:
            pass
    wrapper._warpsight = True
    return wrapper


_PHASES = ("forward", "backward", "optimizer")  # in the library's order


class Paths:
    """Names the place of each module in each phase; the library keeps it. Does not keep modules alive."""

    def __init__(self, program):
        self._program = program
        self._paths = {}  # id → (path, class name)
        self._alive = {}  # id → weak reference
        self._roots = []  # class names of the models seen so far

    def learn(self, module, phase):
        try:
            self._program.recorder.begin_step()
            if id(module) not in self._paths:
                self._name_all(module)
            path, kind = self._paths[id(module)]
            return self._program.recorder.place(kind, path, _PHASES[phase])
        except Exception:
            return 0

    def _name_all(self, root):
        label = type(root).__name__
        modules = list(root.named_modules())
        prefix = ""
        if len(modules) > 1:
            word = _variable_of(root) if type(_inside(root)).__name__ in _CONTAINERS else None
            if word:  # two models may be containers, and both begin with "0"
                label, prefix = word, word + "."
            elif self._roots and label not in self._roots[:1]:  # distinguishes the modules of a second model
                prefix = label + "."
            if label not in self._roots:
                self._roots.append(label)
        for name, module in modules:
            self._keep(module, prefix + _short(name) if name else label)

    def _keep(self, module, path):
        key = id(module)
        known = self._paths.get(key)
        if known is not None and known[0] != known[1]:
            return  # already named by a larger model
        self._paths[key] = (path, type(module).__name__)
        self._program.recorder.forget_module(key)
        if key not in self._alive:
            self._alive[key] = weakref.ref(module, lambda _, key=key: self._forget(key))

    def _forget(self, key):
        self._paths.pop(key, None)
        self._alive.pop(key, None)
        self._program.recorder.forget_module(key)


_CONTAINERS = ("Sequential", "ModuleList", "ModuleDict")  # their class says nothing of the model
_AROUND = {"DataParallel": "module", "DistributedDataParallel": "module", "OptimizedModule": "_orig_mod"}


def _inside(root):
    """The model inside of wrappers."""
    while type(root).__name__ in _AROUND:
        root = getattr(root, _AROUND[type(root).__name__])
    return root


def _variable_of(module):
    """What the program calls it: a variable of a function that is running, or an attribute of its self."""
    frame = sys._getframe(1)
    while frame is not None:
        if of_program(frame.f_code.co_filename):
            owner = frame.f_locals.get("self")
            for names in (frame.f_locals, frame.f_globals, getattr(owner, "__dict__", {}), getattr(owner, "_modules", {})):
                for name, held in list(names.items()):
                    if held is module and name != "self":
                        return name
        frame = frame.f_back
    return None


_WRAPPERS = ("module.", "_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")


def _short(path):
    """Removes the names that model wrappers add."""
    while path.startswith("module."):
        path = path[len("module."):]
    for wrapper in _WRAPPERS[1:]:
        path = path.replace(wrapper, "")
    return path


def _modules(program, torch):
    recorder = program.recorder
    paths = Paths(program)
    original = torch.nn.Module.__call__

    def learn(module, phase):
        return paths.learn(module, phase)

    if recorder.watch_modules(original, learn):
        return recorder.fact("program_modules_heard", "in the interpreter's call")
    recorder.fact("program_modules_heard", "by a wrapper in Python")
    push, pop = recorder.push_module, recorder.pop
    compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)

    def __call__(self, *args, **kwargs):
        if compiling():  # torch.compile must see only the program
            return original(self, *args, **kwargs)
        push(self)
        try:
            return original(self, *args, **kwargs)
        finally:
            pop()

    torch.nn.Module.__call__ = _named_like(__call__, original)


def _backward(program, torch):
    recorder = program.recorder
    begin, end = recorder.begin_backward, recorder.end_backward
    place = recorder.place("backward", "", "backward")

    def around(original, began=None):
        def backward(*args, **kwargs):
            if began is not None:
                try:
                    began(args[0] if args else kwargs.get("tensors"))
                except Exception:
                    pass  # PyTorch reports the program's own mistakes
            begin(place)
            try:
                return original(*args, **kwargs)
            finally:
                end()

        return _named_like(backward, original)

    torch.autograd.backward = around(torch.autograd.backward, program.losses.began)
    torch.autograd.grad = around(torch.autograd.grad)


def _optimizers(program, torch):
    recorder = program.recorder
    enter, leave = recorder.enter_optimizer, recorder.leave_optimizer
    places = {}  # class → place
    leader = [lambda: None]  # a weak reference to the optimizer that ends the steps

    def learn(optimizer):
        try:
            if leader[0]() is None:
                leader[0] = weakref.ref(optimizer, lambda _: recorder.forget_leader())
            kind = type(optimizer)
            if kind not in places:
                places[kind] = recorder.place(kind.__name__ + ".step", "", "optimizer")
            return places[kind]
        except Exception:
            return 0

    recorder.learn_optimizers(learn, program.level >= MODULES)

    def watch(kind):
        step = kind.step
        if getattr(step, "_warpsight", False) or recorder.watch_optimizer(step):
            return

        def called(self, *args, **kwargs):
            enter(self)
            try:
                return step(self, *args, **kwargs)
            finally:
                leave()

        wrapper = _named_like(called, step)
        wrapper.hooked = getattr(step, "hooked", True)
        wrapper.__wrapped__ = step
        kind.step = wrapper

    Optimizer = torch.optim.Optimizer
    original = Optimizer.__init__

    def __init__(self, *args, **kwargs):
        original(self, *args, **kwargs)
        try:
            if program.level < MODULES:
                recorder.begin_step()  # nothing else says that the program works
            watch(type(self))
        except Exception:
            pass

    Optimizer.__init__ = _named_like(__init__, original)
    if program.attached:  # there may be optimizers of any kind
        kinds = Optimizer.__subclasses__()
        while kinds:
            kind = kinds.pop()
            kinds += kind.__subclasses__()
            watch(kind)


def _loaders(program, torch):
    recorder = program.recorder
    pop = recorder.pop
    place = recorder.place("wait for data", "", "data")
    import torch.utils.data.dataloader as dataloader

    Iterator = dataloader._BaseDataLoaderIter

    def reporting(iterator):
        """Records how many batches the workers have ready."""
        ready = getattr(getattr(iterator, "_data_queue", None), "qsize", None)
        if ready is not None and recorder.records():
            try:
                recorder.scalar("batches ready", float(ready()), program.steps)
            except Exception:
                pass  # not available on this system

    original = Iterator.__next__

    def __next__(self):
        recorder.begin_step()
        reporting(self)
        recorder.push_at(place)
        try:
            return original(self)
        finally:
            pop()

    Iterator.__next__ = _named_like(__next__, original)
    Iterator.next = Iterator.__next__


def _ranks(program, torch):
    """A process that no launcher started as a rank may make itself one: torch.multiprocessing.spawn, its own processes."""
    distributed = torch.distributed
    if not distributed.is_available():
        return
    original = distributed.init_process_group

    def init_process_group(*args, **kwargs):
        result = original(*args, **kwargs)
        try:
            if distributed.get_world_size() > 1:
                facts = {"rank": distributed.get_rank(), "world_size": distributed.get_world_size(), "host": platform.node()}
                for key, value in facts.items():
                    program.recorder.fact(key, value)
        except Exception:
            pass
        return result

    for owner in (distributed, distributed.distributed_c10d):  # the first has the second's functions
        owner.init_process_group = _named_like(init_process_group, original)


def _formats(program, torch):
    """f"{loss:.3f}" reads a detached copy of the loss: it must be known of which one."""
    original, losses = torch.Tensor.__format__, program.losses

    def __format__(self, spec):
        losses.formatted = self
        try:
            return original(self, spec)
        finally:
            losses.formatted = None

    torch.Tensor.__format__ = _named_like(__format__, original)


def _switches(program, torch):
    """train() and eval(), which calls train(False): the losses that are read in eval mode belong to a test."""
    original, switched = torch.nn.Module.train, program.losses.switched

    def train(self, mode=True):
        switched(mode)
        return original(self, mode)

    torch.nn.Module.train = _named_like(train, original)


def _waits(program, torch):
    """Marks calls in which the host waits for the GPU. A loss that is read there is kept."""
    recorder = program.recorder
    pop = recorder.pop

    def around(owner, name, shown, read=None):
        original = getattr(owner, name, None)
        if original is None:
            return
        place = recorder.place(shown, "", "sync")

        def waits(*args, **kwargs):
            recorder.push_at(place)
            try:
                result = original(*args, **kwargs)
            finally:
                pop()
            if read is not None:
                try:
                    read(args[0], result)
                except Exception:
                    pass  # not a number
            return result

        setattr(owner, name, _named_like(waits, original))

    for name, shown in (("item", ".item()"), ("__float__", "float()")):
        around(torch.Tensor, name, shown, program.losses.read)
    program.losses.grad_enabled = torch.is_grad_enabled
    _switches(program, torch)
    _formats(program, torch)
    for name in ("tolist", "cpu"):
        around(torch.Tensor, name, f".{name}()")
    around(torch.cuda, "synchronize", "torch.cuda.synchronize()")
