#!/usr/bin/env python3
"""Rings of stamps that Python hands out, and what Triton kernels write into them. Neither torch, Triton nor a GPU is
needed: all three are replaced by small ones. usage: kernel_ranges_test.py C++-COMPILER"""

import ctypes
import importlib
import os
import subprocess
import sys
import tempfile
import types
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "profiling", "python"))
sys.dont_write_bytecode = True
import warpsight  # noqa: E402

# Keeps what it received, as the recorder's library would.
LIBRARY = """
#include "profiling/annotate/kernel_ranges.cuh"
#include <cstdio>
static char text[1000];
extern "C" int warpsight_ring_add(const warpsight::Ring* r) {
  int n = std::snprintf(text, sizeof text, "%u %p %u %u %u", r->version, r->memory, r->segments, r->stamps, r->by_warp);
  for (unsigned i = 0; i < r->name_count; ++i) n += std::snprintf(text + n, sizeof text - n, " %s", r->names[i]);
  return 1;
}
extern "C" const char* received() { return text; }
extern "C" unsigned sizes() { return sizeof(warpsight::RingHead) * 10000 + sizeof(warpsight::RangeSegment) * 100 + sizeof(warpsight::RangeStamp); }
"""


class Tensor(list):
    def data_ptr(self):
        return 0x1234000


def small_torch():
    torch = types.ModuleType("torch")
    torch.int32 = "int32"
    torch.zeros = lambda count, dtype, device: Tensor([0] * count)
    nothing = lambda: None  # noqa: E731
    torch.cuda = types.SimpleNamespace(
        is_available=lambda: True, init=nothing, current_device=lambda: 0, synchronize=nothing
    )
    return torch


class Number(int):
    """A scalar of Triton."""

    def to(self, kind):
        return Number(int(self) & 0xFFFFFFFF if kind == 32 else int(self))



for _name in ("add", "radd", "sub", "mul", "and", "or", "lshift", "rshift", "mod"):
    _plain = getattr(int, f"__{_name}__")
    setattr(Number, f"__{_name}__", lambda a, b, plain=_plain: Number(plain(int(a), int(b))))


class Pointer:
    def __init__(self, memory, at=0):
        self.memory, self.at = memory, at

    def __add__(self, by):
        return Pointer(self.memory, self.at + int(by))


def small_triton(clocks):
    """Runs kernels in Python, one program after another."""
    triton, tl = types.ModuleType("triton"), types.ModuleType("triton.language")
    triton.jit, triton.language = lambda function: function, tl
    tl.constexpr, tl.int32, tl.int64 = lambda value: value, 32, 64
    tl.load = lambda pointer: Number(pointer.memory[pointer.at])
    tl.program_id = lambda axis: Number(clocks["block"] if axis == 0 else 0)
    tl.num_programs = lambda axis: Number(8)

    def store(pointer, value):
        pointer.memory[pointer.at] = int(value) & 0xFFFFFFFF

    def atomic_add(pointer, by, sem):
        before = pointer.memory[pointer.at]
        pointer.memory[pointer.at] += by
        return Number(before)

    def asm(text, constraints, arguments, dtype, is_pure, pack):
        assert not is_pure and arguments == [] and constraints == ("=l" if dtype == 64 else "=r"), text
        if "smid" in text:
            return Number(5)
        clocks["ns"] += 10
        return Number(clocks["ns"] if "globaltimer" in text else 2 * clocks["ns"] & 0xFFFFFFFF)

    tl.store, tl.atomic_add, tl.inline_asm_elementwise = store, atomic_add, asm
    return {"triton": triton, "triton.language": tl}


class KernelRanges(unittest.TestCase):
    def setUp(self):
        self.modules = dict(sys.modules)
        sys.modules["torch"] = small_torch()
        warpsight._rings.clear()

    def tearDown(self):
        os.environ.pop("CUDA_INJECTION64_PATH", None)
        for name in set(sys.modules) - set(self.modules):
            del sys.modules[name]

    def library(self):
        folder = tempfile.mkdtemp()
        path = os.path.join(folder, "libtold.so")
        command = [sys.argv[1], "-std=c++17", "-shared", "-fPIC", "-I", ROOT, "-x", "c++", "-", "-o", path]
        subprocess.run(command, input=LIBRARY.encode(), check=True)
        os.environ["CUDA_INJECTION64_PATH"] = path
        return path

    def test_none_when_nobody_records(self):
        self.assertIsNone(warpsight.kernel_ranges(["load"]))
        self.library()  # named, but never loaded
        self.assertIsNone(warpsight.kernel_ranges(["load"]))

    def test_the_library_receives_the_ring(self):
        library = ctypes.CDLL(self.library())
        library.received.restype = ctypes.c_char_p
        ring = warpsight.kernel_ranges(["load", "mma"], blocks=100)
        self.assertEqual(library.received(), b"1 0x1234000 128 254 0 load mma")
        self.assertEqual(len(ring), 16 + 128 * 1024)
        self.assertIs(ring, warpsight.kernel_ranges(["load", "mma"], blocks=100))
        self.assertEqual(library.sizes(), 64_32_16, "the layout that the Python code assumes")

    def test_programs_write_what_the_header_describes(self):
        clocks = {"ns": (3 << 32) + 1000, "block": 0}
        sys.modules.update(small_triton(clocks))
        ranges = importlib.import_module("warpsight.triton_ranges")
        memory = [0] * (16 + 4 * 1024)
        memory[1] = 4
        ring = Pointer(memory)
        for block in (0, 3):
            clocks["block"] = block
            at = ranges.start(ring)
            for _ in range(1 if block == 0 else 130):  # the second one needs two segments
                at = ranges.end(ring, ranges.begin(ring, at, 1), 1)
        self.assertEqual(memory[0], 3)
        for number, (block, before, stamps) in enumerate([(0, 0, 2), (3, 0, 254), (3, 1, 6)]):
            segment = memory[16 + number * 1024 : 16 + (number + 1) * 1024]
            self.assertEqual(segment[1], 3, "high half of the time")
            self.assertEqual(segment[3:8], [number + 1, block, 0, 5, before])
            written = [segment[at : at + 4] for at in range(8, 1024, 4)]
            self.assertEqual([stamp[2] for stamp in written], [number + 1] * stamps + [0] * (254 - stamps))
            self.assertEqual([stamp[3] for stamp in written[:stamps]], [2, 3] * (stamps // 2))
            self.assertEqual(sorted(written[:stamps]), written[:stamps], "the clock goes on")

    def test_without_a_ring_nothing_is_written(self):
        sys.modules.update(small_triton({"ns": 0, "block": 0}))
        ranges = importlib.import_module("warpsight.triton_ranges")
        at = ranges.start(None)
        self.assertEqual(ranges.end(None, ranges.begin(None, at, 0), 0), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
