"""The losses of a program that logs none: what it reads of the values from which backward() began, and of their parts.

Nothing is copied or waited for: the program reads the value itself, as in print(loss.item()). Where it reads `loss` but
calls (loss / 4).backward() or scaler.scale(loss).backward(), and where it reads the parts of `policy + 0.5 * value`, the
numbers of autograd's nodes tell that they are the same. In eval mode nothing begins a backward pass: there a value is a
loss if the program says so by its name, and the mean of an evaluation is one point of the test curve.
"""

import atexit
import dis
import os
import re
import sys
import weakref

# What stands between a loss and the scaled, converted or summed one.
_SAME = ("MulBackward0", "DivBackward0", "ToCopyBackward0", "CloneBackward0", "AliasBackward0", "ViewBackward0", "SqueezeBackward0",
         "AddBackward0", "SubBackward0", "NegBackward0")
_MOST_NODES = 24
_MOST_ROOTS = 8  # a step may have several backward passes before it reads: GANs, accumulated gradients
_LOSS = re.compile("loss(es)?([^a-z]|$)")
_NO_LOSS = re.compile("(scal(e|er|ing)|weights?|coef|factor|ratio)([^a-z]|$)")
_TEST = re.compile("(^|[^a-z])(val|valid|validation|validate|test|eval|evaluation|evaluate)(loss|[^a-z]|$)")


def _number(node):
    number = getattr(node, "_sequence_nr", None)  # since PyTorch 2.1
    return None if number is None else number()


class _Name(str):
    """The name of a place where a value is read."""

    def __new__(cls, frame):
        code = frame.f_code
        word = read_variable(code, frame.f_lasti)
        lower = re.sub("([a-z])([A-Z])", r"\1_\2", word or "").lower()
        loss = bool(_LOSS.search(lower)) and not _NO_LOSS.search(lower)
        line = f"loss ({os.path.basename(code.co_filename)}:{frame.f_lineno})"
        name = super().__new__(cls, word if loss else word + " loss" if word else line)
        name.is_loss, name.is_test = loss, bool(_TEST.search(lower))
        name.in_test = name.is_test or bool(_TEST.search(code.co_name.lower()))
        return name


_METHODS = ("item", "detach", "cpu", "float", "double", "mean", "sum", "to", "clone", "numpy", "squeeze", "tolist", "data")


def read_variable(code, at):
    """The name of what the instruction `at` reads: x of x.item(), float(x), f"{x}", self.x.item() and all["x"].item()."""
    steps = reversed([step for step in dis.get_instructions(code) if step.offset < at])
    for step in steps:
        kind, said = step.opname, step.argval
        if kind == "BINARY_SUBSCR" or (kind == "BINARY_OP" and step.argrepr == "[]"):
            key = next(steps, step)
            if key.opname.startswith("LOAD_CONST") and isinstance(key.argval, str):
                return key.argval
        elif kind.startswith(("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF")):
            return said[-1] if isinstance(said, tuple) else said
        elif kind.startswith("LOAD_ATTR") and said not in _METHODS:
            return said
        elif not kind.startswith(("LOAD_ATTR", "LOAD_METHOD", "LOAD_CONST", "LOAD_SMALL_INT", "CALL", "PRECALL", "PUSH_NULL", "KW_NAMES", "CACHE")):
            return None
    return None


_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def of_program(path):
    return os.sep + "torch" + os.sep not in path and not path.startswith(_HERE)


class _Root:
    """A value from which backward() began. Each part of a sum is a loss of its own."""

    def __init__(self, tensor, step):
        self._tensor, self.step = weakref.ref(tensor), step
        self._parts = {}  # number of a node → its part; 0: the whole
        self._read = set()  # parts
        todo = [(tensor.grad_fn, 0)]
        while todo and len(self._parts) < _MOST_NODES:
            node, part = todo.pop()
            number = _number(node)
            if number is None:
                return
            self._parts.setdefault(number, part)
            if node.name() in _SAME:
                inner = [one for one, _ in node.next_functions if one is not None]
                todo += [(one, part if len(inner) == 1 else _number(one)) for one in inner]

    def takes(self, tensor):
        """True if this tensor is the loss or a part of it, and was not read before."""
        root, node = self._tensor(), tensor.grad_fn
        if tensor is root:
            part = 0
        elif node is not None:
            part = self._parts.get(_number(node))
        else:  # loss.detach()
            part = 0 if root is not None and tensor.data_ptr() == root.data_ptr() else None
        if part is None or part in self._read:
            return False
        self._read.add(part)
        return True

    def done(self):
        return len(self._read) == len({0, *self._parts.values()})


class Losses:
    def __init__(self, program):
        self._program = program
        self.grad_enabled = lambda: True  # PyTorch's function, once it is there
        self._roots = []
        self._values = []  # (name, value, step), not reported yet: a logger may report the same ones
        self._tests = {}  # name → (sum, count) of the evaluation that runs
        self._names = {}  # (code, instruction) → name
        self._testing = False  # the last model that was switched is in eval mode
        self.formatted = None  # the tensor in f"{loss:.3f}" while PyTorch reads a detached one
        self._logged = self._logged_tests = False
        atexit.register(self.report)

    def began(self, root):
        """A backward pass begins at `root`."""
        self.report()
        self._testing = False
        if self._logged or not self._program.recorder.records():
            return
        if isinstance(root, (tuple, list)):
            root = root[0] if len(root) == 1 else None
        if root is None or root.numel() != 1:
            return
        steps = self._program.steps
        self._roots = [one for one in self._roots[1 - _MOST_ROOTS:] if one.step >= steps - 1] + [_Root(root, steps)]

    def switched(self, training):
        """The program called train() or eval() of a module."""
        self._testing = not training

    def read(self, tensor, value):
        """The program read `value` of `tensor`. Its caller called our caller."""
        if tensor.grad_fn is None and self.formatted is not None:
            tensor = self.formatted
        for root in reversed(self._roots):
            if root.takes(tensor):
                if root.done():  # what else is read costs little
                    self._roots.remove(root)
                return self._keep(self._name(sys._getframe(2)), float(value), root.step)
        no_grad = not self.grad_enabled()
        if (self._testing or no_grad) and not self._logged_tests and tensor.numel() == 1 and tensor.is_floating_point():
            name = self._name(sys._getframe(2))
            if name.is_loss and (self._testing or name.in_test) and self._program.recorder.records():
                test = str(name) if name.is_test else "validation " + name
                total, count = self._tests.get(test, (0.0, 0))
                self._tests[test] = (total + float(value), count + 1)

    def _keep(self, name, value, step):
        again = sum(bool(re.fullmatch(re.escape(name) + r"( \(\d+\))?", known)) for known, *_ in self._values)
        name = f"{name} ({again + 1})" if again else str(name)
        self._values.append((name, value, step))

    def _name(self, frame):
        while frame.f_back is not None and not of_program(frame.f_code.co_filename):  # f"{loss:.3f}" reads in PyTorch
            frame = frame.f_back
        place = (frame.f_code, frame.f_lasti)
        name = self._names.get(place)
        if name is None:
            name = self._names[place] = _Name(frame)
        return name

    def logged(self, name):
        """The program logs a loss itself: ours is not needed."""
        name = name.lower()
        if "loss" not in name:
            return
        if _TEST.search(name):
            self._logged_tests, self._tests = True, {}
        else:
            self._logged, self._values, self._roots = True, [], []

    def report(self):
        for name, value, step in self._values:
            self._program.recorder.scalar(name, value, step)
        self._values = []
        for name, (total, count) in self._tests.items():
            self._program.recorder.scalar(name, total / count, self._program.steps)
        self._tests = {}
