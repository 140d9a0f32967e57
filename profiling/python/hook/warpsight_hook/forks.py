"""Python 3.12 and later warn a program that forks while it has several threads. Our threads must not cause this warning."""

import os
import sys
import threading

OURS = "warpsight rec"  # name of the library's threads
_started = 0  # threads of ours that Python starts
_begun = set()  # numbers of those that run


def watch():
    if sys.version_info >= (3, 12):
        os.register_at_fork(before=_before, after_in_child=_forget)


def starts_thread():
    global _started
    _started += 1


def name_thread():
    """On the thread that was started. The threads that it starts have its name from their beginning."""
    _begun.add(threading.get_native_id())
    with open("/proc/thread-self/comm", "w") as file:
        file.write(OURS)


class _Once:
    """Stands in the list of filters from before a fork until its warning comes, which is after all our hooks in 3.13."""

    def match(self, text):
        _forget()
        return text.startswith("This process (pid=")


_filter = ("ignore", _Once(), DeprecationWarning, None, 0)


def _filters():
    # Changed directly: a call would make Python forget which warnings it has shown.
    return (sys.modules.get("warnings") or sys.modules["_warnings"]).filters


def _before():
    try:
        _forget()
        if _only_ours_run():
            _filters().insert(0, _filter)
    except Exception:
        pass


def _forget():
    try:
        filters = _filters()
        filters[:] = [one for one in filters if one is not _filter]
    except Exception:
        pass


def _only_ours_run():
    others, tasks = 0, os.listdir("/proc/self/task")
    for task in tasks:
        if int(task) not in _begun:
            with open(f"/proc/self/task/{task}/comm") as file:
                others += file.read().strip() != OURS
    return others - (_started - len(_begun)) <= 1 < len(tasks)
