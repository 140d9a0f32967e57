"""At level lines: the line of the program's own code that runs, on each thread that runs some."""

import os
import sys
import sysconfig


def install(program, torch):
    if program.level < 3:
        return
    own = program.own
    if hasattr(sys, "monitoring"):
        _monitor(program, own)
    elif sys.gettrace() is None:
        _trace(program, own)


class Own:
    """Whether code is the program's: not of Python, an installed package, or ours."""

    def __init__(self):
        paths = sysconfig.get_paths()
        self._others = tuple(
            os.path.realpath(paths[name]) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib") if name in paths
        ) + (os.path.dirname(os.path.abspath(__file__)) + os.sep, "/usr/lib/python3/")
        self._known = {}

    def __call__(self, code):
        known = self._known.get(code)
        if known is None:
            path = code.co_filename
            outside = path.startswith("<") or "site-packages" in path or "dist-packages" in path
            known = self._known[code] = not outside and not os.path.realpath(path).startswith(self._others)
        return known


def _monitor(program, own):
    import threading

    monitoring = sys.monitoring
    tool = next((number for number in (4, 3, 5, 2) if monitoring.get_tool(number) is None), None)
    if tool is None:
        return
    events = monitoring.events
    local = threading.local()
    recorder, lines = program.recorder, {}
    at_line = recorder.at_line

    def tag(code, number):
        known = lines.get((code, number))
        if known is None:
            known = lines[code, number] = program.line(_Place(code, number))
        return known

    def stack():
        try:
            return local.stack
        except AttributeError:
            local.stack = [0]
            return local.stack

    def line(code, number):
        if not own(code):
            return monitoring.DISABLE
        here = stack()
        here[-1] = known = tag(code, number)
        at_line(known)

    def start(code, _):
        if not own(code):
            return monitoring.DISABLE
        stack().append(0)

    def leave(code, *_):
        if not own(code):
            return None
        here = stack()
        if len(here) > 1:
            here.pop()
        at_line(here[-1])

    def returned(code, *_):
        return leave(code) if own(code) else monitoring.DISABLE

    monitoring.use_tool_id(tool, "warpscope")
    for event, callback in (
        (events.LINE, line),
        (events.PY_START, start),
        (events.PY_RESUME, start),
        (events.PY_RETURN, returned),
        (events.PY_YIELD, returned),
        (events.PY_UNWIND, leave),
    ):
        monitoring.register_callback(tool, event, callback)
    monitoring.set_events(
        tool, events.LINE | events.PY_START | events.PY_RESUME | events.PY_RETURN | events.PY_YIELD | events.PY_UNWIND
    )


class _Place:
    """What Program.line() needs of a frame."""

    def __init__(self, code, number):
        self.f_code, self.f_lineno = code, number


def _trace(program, own):
    import threading

    at_line, line_of = program.recorder.at_line, program.line
    known = program._lines

    def inside(frame, event, _):
        if event == "line":
            place = known.get((frame.f_code, frame.f_lineno))
            at_line(line_of(frame) if place is None else place)
        elif event == "return":
            outer = frame.f_back
            while outer is not None and not own(outer.f_code):
                outer = outer.f_back
            at_line(line_of(outer) if outer is not None else 0)
        return inside

    def called(frame, event, _):
        if own(frame.f_code):
            return inside
        return None

    # Frames that run already, such as that of the program's file.
    frame = sys._getframe(1)
    while frame is not None:
        if own(frame.f_code):
            frame.f_trace = inside
        frame = frame.f_back
    sys.settrace(called)
    threading.settrace(called)
