"""The loss of a program that logs none: what it reads of the value from which backward() began.

Nothing is copied or waited for: the program reads the value itself, as in print(loss.item()). Where it reads `loss` but
calls (loss / 4).backward() or scaler.scale(loss).backward(), the numbers of autograd's nodes tell that it is the same loss.
"""

import atexit
import weakref

# What stands between a loss and the scaled or converted one.
_SAME = ("MulBackward0", "DivBackward0", "ToCopyBackward0", "CloneBackward0", "AliasBackward0", "ViewBackward0", "SqueezeBackward0")
_DEEPEST = 4
NAME = "read loss"


def _number(node):
    number = getattr(node, "_sequence_nr", None)  # since PyTorch 2.1
    return None if number is None else number()


class Losses:
    def __init__(self, program):
        self._program = program
        self._nodes = set()
        self._root = None
        self._step = 0
        self._value = None  # not told yet: a logger may tell the same one
        self._logged = False
        atexit.register(self.tell)

    def began(self, root):
        """A backward pass begins at `root`."""
        self.tell()
        self._nodes, self._root = set(), None
        if self._logged or not self._program.recorder.hears():
            return
        if isinstance(root, (tuple, list)):
            root = root[0] if len(root) == 1 else None
        if root is None or root.numel() != 1:
            return
        self._root, self._step = weakref.ref(root), self._program.steps
        node = root.grad_fn
        for _ in range(_DEEPEST):
            number = _number(node)
            if number is None:
                return
            self._nodes.add(number)
            inner = [one for one, _ in node.next_functions if one is not None]
            if node.name() not in _SAME or len(inner) != 1:
                return
            node = inner[0]

    def read(self, tensor, value):
        """The program read `value` of `tensor`."""
        if self._root is None or not self._is_loss(tensor):
            return
        self._nodes, self._root = set(), None
        self._value = float(value)

    def _is_loss(self, tensor):
        root = self._root()
        if tensor is root:
            return True
        node = tensor.grad_fn
        if node is not None:
            return _number(node) in self._nodes
        return root is not None and tensor.data_ptr() == root.data_ptr()  # loss.detach()

    def logged(self, name):
        """The program logs a loss itself: ours is not needed."""
        if "loss" in name.lower():
            self._logged, self._value, self._root = True, None, None

    def tell(self):
        if self._value is not None:
            self._program.recorder.scalar(NAME, self._value, self._step)
            self._value = None
