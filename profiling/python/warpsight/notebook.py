"""Runs in a notebook: the page to share under the cell, and above it what the run or the comparison says."""

import html
import json
import os
import subprocess
import tempfile

from . import program

HEIGHT = 720  # pixels


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
