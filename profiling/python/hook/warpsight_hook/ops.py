"""Has the library observe PyTorch's ops, forward and backward, and the modules of the backward pass."""

from .levels import OPS


def install(program, torch):
    recorder = program.recorder
    if program.level < OPS and _followed(recorder, torch):
        return recorder.fact("program_backward_heard", "in autograd's engine")
    if _observed(recorder, torch, program.level >= OPS):
        return recorder.fact("program_backward_heard", "by PyTorch's observers")
    why = recorder.why_not("torch-ops", torch.__version__)
    recorder.fact("program_ops", why or "No modules of the backward pass: this PyTorch has no observers that are known here.")
    if program.level >= OPS and (torch.version.cuda or getattr(torch.version, "hip", None)):
        _when_cuda_begins(program, torch)


def _followed(recorder, torch):
    with torch.enable_grad():
        a = torch.ones(1, requires_grad=True)
        made = [a * 2 for _ in range(3)]
    return recorder.torch_follow([one.grad_fn for one in made], torch.__version__)


def _observed(recorder, torch, ops):
    if not recorder.torch_search(torch.__version__):
        return False
    with torch.enable_grad():  # two ops for torch_search()
        a = torch.ones(1, requires_grad=True)
        a * 2
        a * 2
    return recorder.torch_observe(ops)


def _when_cuda_begins(program, torch):
    """Fallback: PyTorch's profiler marks ops as NVTX ranges for our library. 0.5 µs per op, also in backward threads."""
    original = torch.cuda._lazy_init
    state = {}

    def _lazy_init():
        result = original()
        if not state and torch.cuda.is_initialized():
            state["ranges"] = _Ranges(torch)
            state["ranges"].begin()
            _step_aside(torch, state["ranges"])
        return result

    torch.cuda._lazy_init = _lazy_init


class _Ranges:
    def __init__(self, torch):
        self._ranges = torch.autograd.profiler.emit_nvtx()
        self._on = False

    def begin(self):
        try:
            self._ranges.__enter__()
            self._on = True
        except Exception:
            pass  # the program already profiles

    def end(self):
        if self._on:
            self._on = False
            try:
                self._ranges.__exit__(None, None, None)
            except Exception:
                pass


def _step_aside(torch, ranges):
    """Ends our ranges before the program uses PyTorch's profiler: only one can be on."""
    profiler = torch.autograd.profiler

    def before(owner, name):
        original = getattr(owner, name, None)
        if original is None:
            return

        def aside(*args, **kwargs):
            ranges.end()
            return original(*args, **kwargs)

        setattr(owner, name, aside)

    for owner, name in (
        (profiler, "_prepare_profiler"),
        (profiler, "_enable_profiler"),
        (torch.autograd, "_enable_profiler_legacy"),
    ):
        before(owner, name)
