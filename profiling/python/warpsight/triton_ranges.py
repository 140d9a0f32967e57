"""Ranges inside Triton kernels. `warpsight record -- python3 …` shows them as lanes by multiprocessor.

    import triton, triton.language as tl
    import warpsight, warpsight.triton_ranges as ranges

    @triton.jit
    def kernel(x, out, ring):
        at = ranges.start(ring)
        at = ranges.begin(ring, at, 0)           # the first name
        values = tl.load(x + tl.arange(0, 128))
        at = ranges.end(ring, at, 0)
        at = ranges.begin(ring, at, 1)
        tl.store(out + tl.arange(0, 128), values)
        at = ranges.end(ring, at, 1)

    kernel[(8,)](x, out, warpsight.kernel_ranges(["load", "store"]))

If nobody records, the ring is None and Triton compiles the calls to nothing. Each program writes its own stamps. The
compiler may move work across a stamp: read long ranges, not single instructions.

The layout of the ring is described in profiling/annotate/kernel_ranges.cuh.
"""

import triton
import triton.language as tl

from . import _HEAD_WORDS, _SEGMENT_WORDS

_HEAD = tl.constexpr(_HEAD_WORDS)
_SEGMENT = tl.constexpr(_SEGMENT_WORDS)


@triton.jit
def _clock():
    return tl.inline_asm_elementwise("mov.u32 $0, %clock;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def _timer():
    return tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)


@triton.jit
def _multiprocessor():
    return tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def _reserve(ring, before):
    """Returns the place of the next stamp in the low half, and the ticket of its segment in the high half."""
    number = tl.atomic_add(ring, 1, sem="relaxed")
    segments = tl.load(ring + 1)
    at = _HEAD + (number & (segments - 1)) * _SEGMENT
    time = _timer()
    block = tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))
    tl.store(ring + at + 0, time.to(tl.int32))
    tl.store(ring + at + 1, (time >> 32).to(tl.int32))
    tl.store(ring + at + 2, _clock())
    tl.store(ring + at + 4, block)
    tl.store(ring + at + 5, 0)
    tl.store(ring + at + 6, _multiprocessor())
    tl.store(ring + at + 7, before)
    tl.store(ring + at + 3, number + 1)
    return ((number + 1).to(tl.int64) << 32) | (at + 8).to(tl.int64)


@triton.jit
def _stamp(ring, at, what):
    place = (at & 0x7FFFFFFF).to(tl.int32)
    if (place - _HEAD) % _SEGMENT == 0:  # the segment is full
        at = _reserve(ring, 1)
        place = (at & 0x7FFFFFFF).to(tl.int32)
    tl.store(ring + place + 0, _clock())
    tl.store(ring + place + 1, _timer().to(tl.int32))
    tl.store(ring + place + 3, what)
    tl.store(ring + place + 2, (at >> 32).to(tl.int32))
    return at + 4


@triton.jit
def start(ring):
    """Returns where this program writes. Call it once, before the first range."""
    if ring is None:
        return 0
    else:
        return _reserve(ring, 0)


@triton.jit
def begin(ring, at, name: tl.constexpr):
    if ring is None:
        return at
    else:
        return _stamp(ring, at, 2 * name)


@triton.jit
def end(ring, at, name: tl.constexpr):
    if ring is None:
        return at
    else:
        return _stamp(ring, at, 2 * name + 1)
