"""Runs in a notebook: the page to share under the cell, and above it the verdict.

    %load_ext warpsight

    %%record [FILE] [--level modules|ops|lines] [--no-page]
    train(10)

records the cell and shows the run. The kernel begins its recording with the first such cell; other cells are not recorded.
"""

import html
import itertools
import json
import os
import shlex
import subprocess
import tempfile
import time

from . import attach, capture, program, recorded
from . import range as named

HEIGHT = 720  # pixels
_WAIT_S = 20  # the longest until the recorder has written a cell
_LEVELS = ("modules", "ops", "lines")
_USAGE = "%%record [FILE] [--level modules|ops|lines] [--no-page]"


def _ask(*words):
    try:
        done = subprocess.run([program.path(), *words], capture_output=True, text=True)
    except OSError as problem:
        raise RuntimeError("The program warpsight was not found. Install the wheel, or put it on PATH.") from problem
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().removeprefix("warpsight: ") or "warpsight failed.")
    return done.stdout


class Shown:
    """What a cell displays. As text it is the verdict."""

    def __init__(self, files, verdict, height):
        self.verdict = verdict
        self._height = height
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.html")
            _ask("report", "--interactive", *files, "--out", page)
            with open(page, encoding="utf-8") as file:
                self.page = file.read()

    def __repr__(self):
        return self.verdict

    def _repr_html_(self):
        # The frame runs the script of the page only, and cannot reach the notebook.
        return (f'<p>{html.escape(self.verdict)}</p><iframe sandbox="allow-scripts" srcdoc="{html.escape(self.page)}" '
                f'style="width:100%;height:{int(self._height)}px;border:1px solid #8886" title="Warpsight"></iframe>')


def show(run, height=HEIGHT):
    """Shows a run file, or the trace of another program, under the cell."""
    insights = json.loads(_ask("stats", str(run), "--by", "cause", "--json"))["insights"]
    return Shown([str(run)], insights[0]["headline"] if insights else "Nothing stands out.", height)


def compare(a, b, height=HEIGHT):
    """Shows two runs beside each other; `a` is the baseline."""
    return Shown([str(a), str(b)], json.loads(_ask("diff", str(a), str(b), "--json"))["summary"], height)


class Magics:
    """`%%record` of one kernel. A process has one run file, so its cells are in one file."""

    def __init__(self, shell):
        self._shell = shell
        self._file = None
        self._cells = itertools.count(1)

    def record(self, line, cell):
        """%%record [FILE] [--level modules|ops|lines] [--no-page]: records this cell, and shows the run under it."""
        file, level, page = _arguments(line)
        self._begin(file, level)
        name = f"cell {next(self._cells)}"
        with capture(), named(name):
            done = self._shell.run_cell(cell)
        if not page or not done.success:  # IPython has shown the error
            return None
        _wait_for(self._file, name)
        return show(self._file)

    def _begin(self, file, level):
        if self._file is None:
            if recorded():
                raise RuntimeError("This kernel is recorded already, as a whole. %%record is for a kernel that is not.")
            path = os.path.abspath(file or _free_name())
            attach(path, level=level, captures=True)
            self._file = path
        elif file and os.path.abspath(file) != self._file:
            raise RuntimeError(f"This kernel records into {self._file}. Restart it to record into another file.")


def _arguments(line):
    words, file, level, page = shlex.split(line), None, "lines", True
    while words:
        word = words.pop(0)
        if word == "--no-page":
            page = False
        elif word == "--level" and words and words[0] in _LEVELS:
            level = words.pop(0)
        elif word.startswith("-") or file is not None:
            raise ValueError(f"{word} is not understood here: {_USAGE}")
        else:
            file = word if word.endswith(".wsrun") else word + ".wsrun"
    return file, level, page


def _free_name():
    names = itertools.chain(["notebook.wsrun"], (f"notebook-{number}.wsrun" for number in itertools.count(2)))
    return next(name for name in names if not os.path.exists(name))


def _wait_for(file, name):
    """Until the file has the cell: the recorder writes it a moment later."""
    end, query = time.monotonic() + _WAIT_S, f"select 1 from spans where name = '{name}' limit 1"
    problem = "the recorder has not written it"
    while time.monotonic() < end:
        try:
            if json.loads(_ask("sql", file, query, "--json"))["rows"]:
                return
        except RuntimeError as not_yet:
            problem = str(not_yet)
        time.sleep(0.05)
    raise RuntimeError(f"{file} has nothing of this cell: {problem}")
