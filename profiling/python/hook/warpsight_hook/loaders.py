"""Records the workers of a DataLoader, forked or spawned. Each worker writes one line per batch to its own file, which the
recorded process reads. A worker has none of the library's threads and keeps no recording of its own."""

import faulthandler
import os
import re
import threading
import time

EACH = 0.005  # seconds between samples of a worker
_LETTER = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
_FRAME = re.compile(rb'  File "(.*)", line ([0-9]+) in (.*)')


def install(program, torch):
    from torch.utils.data import get_worker_info
    from torch.utils.data._utils import fetch

    workers = {}  # process id → worker

    def follow(kind):
        original = kind.fetch

        def fetched(self, possibly_batched_index):
            info = get_worker_info()
            if info is None:
                return original(self, possibly_batched_index)
            worker = workers.get(os.getpid())
            if worker is None:
                worker = workers[os.getpid()] = _Worker(program, info.id)
            with worker:
                return original(self, possibly_batched_index)

        kind.fetch = fetched

    if _folder():
        follow(fetch._MapDatasetFetcher)
        follow(fetch._IterableDatasetFetcher)


def _folder():
    return os.path.dirname(os.environ.get("WARPSIGHT_RECORD_FOLLOWER", ""))


def _text(written):
    """faulthandler writes a letter beyond ASCII as its number: \\xfc, \\u706b or \\U0001f600."""
    return _LETTER.sub(lambda found: chr(int(found[found.lastindex], 16)), written.decode("ascii", "replace"))


def _stacks():
    file = os.memfd_create("stacks")
    try:
        faulthandler.dump_traceback(file, all_threads=True)  # all threads are stopped meanwhile
        return os.pread(file, 1 << 18, 0)
    finally:
        os.close(file)


class _Worker:
    def __init__(self, program, number):
        self._number, self._lines = number, {}
        self._busy = False
        self._path = os.path.join(_folder(), f"loader-{os.getppid()}-{os.getpid()}")
        try:
            program.recorder.fact("loader_worker", number)  # its own recording will be removed
            self._others = program.not_own
            self._thread = threading.get_ident()
            threading.Thread(target=self._sample, daemon=True).start()
        except Exception:
            pass

    def __enter__(self):
        self._begin, self._lines, self._busy = time.monotonic_ns(), {}, True

    def __exit__(self, *_):
        self._busy = False
        try:
            line = max(self._lines, key=self._lines.get, default="")
            self._add(f"{self._number}\t{self._begin}\t{time.monotonic_ns()}\t{line}\n".encode("utf-8", "replace"))
        except Exception:
            pass  # the recorder has removed the folder
        return False

    def _add(self, line):
        """No descriptor stays open: the worker may close any number, and get it for a file of its own."""
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, line)
        finally:
            os.close(file)

    def _sample(self):
        try:
            while True:
                time.sleep(EACH)
                line = self._own_line(_stacks()) if self._busy else ""
                if line:
                    self._lines[line] = self._lines.get(line, 0) + 1
        except BaseException:
            return  # the worker ends

    def _own_line(self, stacks):
        mark = b"%x" % self._thread
        for block in stacks.split(b"\n\n"):
            head, _, stack = block.partition(b"\n")
            if mark not in head:
                continue
            for path, line, name in _FRAME.findall(stack):
                path = _text(path)
                outside = path.startswith("<") or "site-packages" in path or "dist-packages" in path
                if not outside and not os.path.realpath(path).startswith(self._others):
                    here = os.getcwd() + os.sep
                    shown = path[len(here):] if path.startswith(here) else path
                    return f"{shown}:{line.decode()} in {_text(name)}"
        return ""
