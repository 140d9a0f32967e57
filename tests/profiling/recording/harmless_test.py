#!/usr/bin/env python3
"""Programs do unusual things to their descriptors, processes, threads and limits: bare and recorded they print the same, write the
same files, end the same way and at most a second of a free core later. usage: harmless_test.py WARPSIGHT-CLI STARTS-RECORDING PROGRAM [NAME…]"""

import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

CLI, STARTS, PROGRAM = (os.path.abspath(word) for word in sys.argv[1:4])
PYTHON = subprocess.run(["python3", "-c", "import sys; print(sys.executable)"], capture_output=True, text=True).stdout.strip()
PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../profiling/python")
LATER = 1.0  # seconds at the end

# What a Python program can call. `work` opens files, which get the numbers that are free, and writes them for 0.1 s.
PRELUDE = r"""
import atexit, os, resource, signal, socket, subprocess, sys, threading, time, warpsight
def say(*words):
    try:
        os.write(1, (" ".join(map(str, words)) + "\n").encode())
    except OSError:  # it is closed
        pass
def work(name="file", files=12):
    opened, refused = [], 0
    for i in range(files):
        try:
            opened.append(os.open(f"{name}{i}", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))
        except OSError as error:
            say(error.strerror)
    say(name, opened)
    for piece in range(30):
        for i, file in enumerate(opened):
            try:
                os.write(file, bytes([97 + (piece + i) % 26]) * 4096)
            except OSError as error:
                refused += 1
        time.sleep(0.003)
    for file in opened:
        try:
            os.close(file)
        except OSError as error:
            say("closed by somebody else")
    say(refused, "refused")
def child(act, leave):
    number = os.fork()
    if number == 0:
        try:
            act()
        finally:
            if leave:
                os._exit(3)
            sys.exit(4)
    say("child", os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]))
def limit(what, soft):
    resource.setrlimit(what, (soft, resource.getrlimit(what)[1]))
"""
BEGIN = "warpsight.log(begun=1)\n"

ACTIONS = {
    "nothing": "work()",
    "closerange-1024": "os.closerange(3, 1024); work()",
    "closerange-65536": "os.closerange(3, 65536); work()",
    "closerange-all": "os.closerange(0, 65536); work()",
    "close-listed": "[os.close(int(n)) for n in os.listdir('/proc/self/fd') if int(n) > 2 and os.path.exists('/proc/self/fd/' + n)]; work()",
    "dup-64": "f = os.open('over', os.O_RDWR | os.O_CREAT)\nfor n in range(3, 64): os.dup2(f, n)\nfor n in range(3, 64): os.write(n, b'0123456789'); time.sleep(0.002)\nos.closerange(3, 64); work()",
    "dup-1024": "f = os.open('over', os.O_RDWR | os.O_CREAT)\nfor n in range(3, 1024): os.dup2(f, n)\nfor n in range(3, 1024, 20): os.write(n, b'0123456789'); time.sleep(0.002)\nos.closerange(3, 1024); work()",
    "exhaust": "limit(resource.RLIMIT_NOFILE, 150)\nall = []\ntry:\n    while True: all.append(os.dup(1))\nexcept OSError as e: say(len(all), e.strerror)\ntime.sleep(0.1)\n[os.close(n) for n in all]\nwork()",
    "few-files": "limit(resource.RLIMIT_NOFILE, 9); work()",
}
MOMENTS = {
    "now": "{action}",
    "soon": "time.sleep(0.03)\n{action}",
    "later": "time.sleep(0.3)\n{action}",
    "thread": "def act():\n{indented}\nt = threading.Thread(target=act); t.start(); t.join()",
    "exit": "def act():\n{indented}\natexit.register(act)",
    "child": "def act():\n{indented}\nchild(act, False)",
    "child-leaves": "def act():\n{indented}\nchild(act, True)",
    "twice": "def act():\n{indented}\nact(); time.sleep(0.07); act()",
    "handler": "def act(*_):\n{indented}\nsignal.signal(signal.SIGUSR1, act); os.kill(os.getpid(), signal.SIGUSR1)",
    "before": "{action}\n" + BEGIN,
}
SINGLE = {
    "hello": "say('hello')",
    "raises": "raise ValueError('wrong')",
    "exit-3": "sys.exit(3)",
    "leave-5": "work(files=2); os._exit(5)",
    "killed": "work(files=2); os.kill(os.getpid(), signal.SIGKILL)",
    "terminated": "work(files=2); os.kill(os.getpid(), signal.SIGTERM)",
    "interrupted": "work(files=2); os.kill(os.getpid(), signal.SIGINT); time.sleep(9)",
    "aborted": "limit(resource.RLIMIT_CORE, 0); work(files=2); os.abort()",
    "exec": "work(files=2); os.execv('/bin/echo', ['echo', 'another'])",
    "exec-python": "os.closerange(3, 1024); os.execv(sys.executable, [sys.executable, '-c', 'print(7)'])",
    "spawned": "say(subprocess.run(['/bin/echo', 'spawned'], capture_output=True, close_fds=True).stdout)",
    "pass-fds": "r, w = os.pipe(); say(subprocess.run(['/bin/sh', '-c', f'echo here >&{w}'], pass_fds=[w]).returncode, os.read(r, 9))",
    "kept-files": "say(subprocess.run(['/bin/ls', '/proc/self/fd'], close_fds=False, capture_output=True).stdout)",
    "shell": "say(os.system('exit 3'))",
    "popen-many": "all = [subprocess.Popen(['/bin/true']) for _ in range(20)]; say([p.wait() for p in all])",
    "no-child": "try: say(os.waitpid(-1, 0))\nexcept OSError as e: say(e.strerror)",
    "child-signals": "seen = []\nsignal.signal(signal.SIGCHLD, lambda *_: seen.append(1)); time.sleep(0.2); say(len(seen)); child(lambda: None, True); time.sleep(0.01); say(len(seen))",
    "ignored-children": "signal.signal(signal.SIGCHLD, signal.SIG_IGN); time.sleep(0.1); say(os.system('true'))",
    "daemon": "if os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\nos.closerange(0, 1024); os.open('/dev/null', os.O_RDWR); os.dup(0); os.dup(0); work(); open('done', 'w').close(); os._exit(0)",
    "fork-often": "for i in range(10): child(lambda: None, i % 2 == 0)",
    "fork-in-thread": "t = threading.Thread(target=lambda: child(lambda: work('child', 3), True)); t.start(); t.join(); work()",
    "fork-and-go": "n = os.fork()\nif n == 0: time.sleep(0.7); work('child'); os._exit(0)\nwork(); os.waitpid(n, 0)",
    "pool": "import multiprocessing as m\nwith m.get_context('fork').Pool(3) as p: say(p.map(abs, range(-9, 0)))",
    "pool-spawned": "import multiprocessing as m\nif __name__ == '__main__':\n    with m.get_context('spawn').Pool(2) as p: say(p.map(abs, range(-9, 0)))",
    "executor": "from concurrent.futures import ThreadPoolExecutor as E\nwith E(8) as e: say(sum(e.map(abs, range(-99, 0))))",
    "daemon-threads": "def spin():\n    while True: time.sleep(0.001)\nfor _ in range(8): threading.Thread(target=spin, daemon=True).start()\ntime.sleep(0.05); say('end')",
    "thread-goes-on": "threading.Thread(target=lambda: (time.sleep(0.2), say('late'))).start(); say('main')",
    "deep": "sys.setrecursionlimit(20000)\ndef f(n): return n and 1 + f(n - 1)\nsay(f(9000))",
    "too-deep": "def f(n): return f(n + 1) + 1\ntry: f(0)\nexcept RecursionError: say('too deep')",
    "chdir": "os.mkdir('away'); os.chdir('away'); work(files=2)",
    "folder-gone": "os.mkdir('away'); os.chdir('away'); os.rmdir('../away'); time.sleep(0.15); say('gone')",
    "chroot": "os.mkdir('root')\ntry: os.chroot('root'); os.chdir('/'); work(files=2)\nexcept OSError as e: say(e.strerror)",
    "umask": "os.umask(0o777); work(files=2); os.umask(0o022)",
    "small-files": "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); limit(resource.RLIMIT_FSIZE, 50_000); work()",
    "little-memory": "limit(resource.RLIMIT_AS, 1 << 30)\ntry: bytearray(2 << 30)\nexcept MemoryError: say('no memory')",
    "signals-blocked": "signal.pthread_sigmask(signal.SIG_SETMASK, range(1, 65)); work(files=2); say(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))",
    "alarms": "signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002); work(files=3); signal.setitimer(signal.ITIMER_REAL, 0)",
    "stdin": "say(os.read(0, 9))",
    "no-stdout": "os.close(1); f = os.open('instead', os.O_RDWR | os.O_CREAT); say('written', f)",
    "stdout-replaced": "f = os.open('instead', os.O_RDWR | os.O_CREAT); os.dup2(f, 1); os.dup2(f, 2); say('there'); print('there, too', flush=True)",
    "file-objects": "all = [open(f'o{i}', 'w') for i in range(50)]\nos.closerange(3, 20)\nfor f in all[20:]: f.write('x' * 9000)\nfor f in all[20:]: f.close()\nos._exit(0)",
    "mmap": "import mmap\nf = os.open('m', os.O_RDWR | os.O_CREAT); os.ftruncate(f, 1 << 20); m = mmap.mmap(f, 1 << 20); os.closerange(3, 1024); m[:4] = b'abcd'; time.sleep(0.1); m.flush(); work()",
    "sqlite": "import sqlite3\nos.closerange(3, 1024); d = sqlite3.connect('d.sqlite'); d.execute('create table t(a)')\nfor i in range(40): d.execute('insert into t values(?)', (i,)); d.commit(); time.sleep(0.003)\nsay(d.execute('select sum(a) from t').fetchone()); d.close()",
    "sockets": "os.closerange(3, 1024)\nfor i in range(20):\n    a, b = socket.socketpair(); a.send(b'abc'); time.sleep(0.008); say(b.recv(99), a.fileno())",
    "listening": "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); os.closerange(3, 1024); work(files=3); s.detach()",
    "select": "import select\nr, w = os.pipe(); os.write(w, b'x'); say(select.select([r], [], [], 1)); time.sleep(0.1); say(os.read(r, 1))",
    "asyncio": "import asyncio\nasync def f(): await asyncio.sleep(0.1); return 7\nsay(asyncio.run(f()))",
    "bytecode": "open('mod.py', 'w').write('x = 1'); sys.path.insert(0, '.'); import mod; say(mod.x)",
    "hooks": "sys.excepthook = lambda *a: say('hooked', a[0].__name__); raise KeyError(1)",
    "trace": "sys.settrace(lambda *a: None); work(files=2); say(sys.gettrace() is not None)",
    "atexit-order": "atexit.register(lambda: say('first')); atexit.register(lambda: say('second'))",
    "exit-in-thread": "threading.Thread(target=lambda: os._exit(6)).start(); time.sleep(5)",
    "gc-off": "import gc; gc.disable(); gc.freeze(); say(gc.isenabled())",
    "environment": "say(sorted(one for one in os.environ.items() if not one[0].startswith(('WARPSIGHT', 'CUDA_INJ', 'NVTX_INJ', 'PYTHONPATH'))))",
    "arguments": "say(sys.argv[1:])",
    "descriptors": "def own(): return sorted(int(n) for n in os.listdir('/proc/self/fd'))\nsay(own()); time.sleep(0.3); say(own()); t = threading.Thread(target=lambda: say(own())); t.start(); t.join(); child(lambda: say(own()), True); work(files=2); say(own())",
    "session": "os.setsid() if os.getpid() != os.getpgrp() else None; work(files=2)",
    "nice": "os.nice(5); work(files=2)",
}
C_MOMENTS = {"now": None, "later": ("close", "dup", "exhaust", "few", "no-files", "fork", "list"), "thread": ("close", "dup", "fork", "exec"),
             "exit": ("close", "dup", "fork"), "child": ("close", "dup", "exhaust"), "twice": ("close", "dup", "sockets")}


def programs():
    """Name → words, or the text of a Python program."""
    found = {}
    for action, text in ACTIONS.items():
        for moment, frame in MOMENTS.items():
            indented = "\n".join("    " + line for line in text.split("\n"))
            begin = "" if moment == "before" else BEGIN
            found[f"python {action} {moment}"] = PRELUDE + begin + frame.format(action=text, indented=indented) + "\nsay('the end')\n"
    for name, text in SINGLE.items():
        found[f"python {name}"] = PRELUDE + BEGIN + text + "\n"
    for action in subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout.split():
        for moment, some in C_MOMENTS.items():
            if some is None or action.startswith(some):
                found[f"c++ {action} {moment}"] = [PROGRAM, action, moment]
    return found


def recording_environment():
    said = subprocess.run([CLI, "record", "--environment", "--level", "lines"], capture_output=True, text=True, check=True).stdout
    variables = dict(word.split("=", 1) for word in shlex.split(said) if "=" in word)
    del variables["WARPSIGHT_RECORD_SERVER"]
    variables["PYTHONPATH"] += ":" + PACKAGE
    return variables


def files_in(folder):
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if name.endswith(".pyc"):
                continue
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


def run(words, folder, environment, goes_on):
    """`goes_on`: a part of the program goes on in the background, until it has made the file "done"."""
    os.mkdir(folder)
    begin = time.monotonic()
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
    seconds = time.monotonic() - begin
    until = time.monotonic() + 20
    while goes_on and not os.path.exists(folder + "/done") and time.monotonic() < until:
        time.sleep(0.01)
    return {"output": done.stdout, "errors": done.stderr, "status": done.returncode, "files": files_in(folder)}, seconds


def status_of(path):
    """Status in the run file once nobody writes it; empty: no recording."""
    until = time.monotonic() + 20
    lock = os.path.join(os.path.dirname(path), "." + os.path.basename(path) + ".owner")
    while os.path.exists(lock) and time.monotonic() < until:
        time.sleep(0.01)
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return ""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as file:
        return file.execute("SELECT value FROM meta WHERE key = 'status'").fetchone()[0]


def stretch():
    """How much longer work takes on this machine now than on a free core."""
    begin, worked = time.monotonic(), time.thread_time()
    while time.thread_time() - worked < 0.05:
        pass
    return max(1.0, (time.monotonic() - begin) / (time.thread_time() - worked))


class Comparison:
    def __init__(self, folder, variables):
        self.folder, self.variables = folder, variables

    def words_of(self, name, program):
        if isinstance(program, list):
            return program, {"LD_PRELOAD": STARTS}
        path = os.path.join(self.folder, name.replace(" ", "-") + ".py")
        with open(path, "w") as file:
            file.write(program)
        return [PYTHON, path, "one", "two"], {}

    def differences(self, name, program):
        words, more = self.words_of(name, program)
        place = os.path.join(self.folder, name.replace(" ", "-"))
        goes_on = name.split()[1] == "daemon"
        bare, bare_seconds = run(words, place + "-bare", {**os.environ, "PYTHONPATH": PACKAGE}, goes_on)
        file = place + ".wsrun"
        level = "lines" if sum(name.encode()) % 2 else "modules"
        recorded, seconds = run(words, place + "-with", {
            **os.environ, **self.variables, **more, "WARPSIGHT_RECORD_FILE": file, "WARPSIGHT_RECORD_PYTHON": level}, goes_on)
        wrong = [f"{what}: {bare[what]!r:.300} bare, {recorded[what]!r:.300} recorded" for what in ("output", "errors", "status") if bare[what] != recorded[what]]
        for path in sorted({*bare["files"], *recorded["files"]}):
            if bare["files"].get(path) != recorded["files"].get(path):
                wrong.append(f"file {path} differs")
        if seconds > bare_seconds + LATER and seconds > bare_seconds + LATER * (busy := stretch()):
            wrong.append(f"{seconds:.2f} s recorded, {bare_seconds:.2f} s bare, on a machine that takes {busy:.1f} times as long as a free core")
        if status_of(file) not in ("finished", "stopped"):
            wrong.append(f"the recording is {status_of(file) or 'not there'}")
        return wrong

    def check(self, name, program, tries=3):
        """A busy machine may let one program wait: what differs must differ each time."""
        wrong = self.differences(name, program)
        for _ in range(tries - 1):
            again = Comparison(tempfile.mkdtemp(dir=self.folder), self.variables)
            wrong = wrong and again.differences(name, program)
        return name, wrong


def main():
    folder = tempfile.mkdtemp(prefix="warpsight-harmless-")
    try:
        chosen = {name: program for name, program in programs().items() if not sys.argv[4:] or any(word in name for word in sys.argv[4:])}
        compare = Comparison(folder, recording_environment())
        with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as workers:
            results = list(workers.map(lambda one: compare.check(*one), chosen.items()))
        # Their own neighbours are gone now.
        suspects = [name for name, wrong in results if wrong]
        alone = Comparison(tempfile.mkdtemp(dir=folder), compare.variables)
        bad = [(name, wrong) for name, wrong in (alone.check(name, chosen[name]) for name in suspects) if wrong]
        for name, wrong in bad:
            print(f"{name}:\n  " + "\n  ".join(wrong))
        print(f"{len(results)} programs, {len(bad)} behave otherwise when they are recorded")
        return 1 if bad or not results else 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
