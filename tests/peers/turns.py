"""Processes that take turns, so that what the machine does meanwhile falls on all of them alike."""

import json
import math
import os
import signal
import statistics
import subprocess
import tempfile


class Failed(Exception):
    pass


class Way:
    """A process that takes a turn when asked."""

    def __init__(self, command, folder):
        self._errors = tempfile.TemporaryFile(mode="w+")
        self._process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, bufsize=1,
            start_new_session=True,
        )

    def ask(self, steps):
        try:
            self._process.stdin.write(f"{steps}\n")
        except OSError:
            pass  # it has ended: the answer says so

    def answer(self):
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        self._errors.seek(0)
        raise Failed(f"{self._process.args[-3:]} ended: {self._errors.read()[-1500:]}")

    def turn(self, steps):
        self.ask(steps)
        return self.answer()["us"]

    def leave(self):
        """Asks it to end, without waiting."""
        self._process.stdin.close()

    def end(self):
        """What the program says at its end."""
        try:
            self._process.stdin.close()
            said = self.answer()
            self._process.wait(timeout=60)
            return said
        except (OSError, Failed, subprocess.TimeoutExpired):
            return None
        finally:
            self.kill()

    def kill(self):
        """With all that it has started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)


def interval(values):
    """The median, and the half width of its 95 % interval by order."""
    ordered, n = sorted(values), len(values)
    reach = 0.98 * math.sqrt(n)
    low, high = (ordered[max(0, min(n - 1, round(n / 2 + side * reach - 0.5)))] for side in (-1, 1))
    return statistics.median(ordered), (high - low) / 2 if n >= 6 else math.inf
