#!/usr/bin/env python3
"""Records Python programs with and without PyTorch. usage: record_test.py WARPSIGHT-CLI [TEST…]

What a program prints and how it ends is the same at every level. Tests that need PyTorch are skipped with a sentence where
no python3 has it."""

import glob
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import zipfile
from concurrent.futures import ThreadPoolExecutor

CLI = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PACKAGE = os.path.join(ROOT, "profiling", "python")


def python_with(module):
    for python in ("python3", "/usr/bin/python3"):
        if shutil.which(python) and subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0:
            return python
    return None


# Without the shell script that pyenv puts before it; one test starts the program by its name.
PYTHON = subprocess.run(["python3", "-c", "import sys; print(sys.executable)"], capture_output=True, text=True).stdout.strip()
TORCH = python_with("torch")
JUPYTER = python_with("ipykernel, nbclient")
IPYTHON = python_with("IPython")
needs_torch = unittest.skipUnless(TORCH, "no python3 here has PyTorch (Debian: python3-torch)")


class Recorded(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="warpsight py ü ")  # with spaces and more than ASCII
        self.addCleanup(shutil.rmtree, self.folder, True)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path

    def run_plain(self, command, **environment):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}  # threads that spin for work take the time of other tests
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=400, env=environment)

    def record(self, command, level="modules", **environment):
        record = [CLI, "record", "--no-live", "--level", level, "--run", "r.wsrun", "--"]
        return self.run_plain(record + command, **environment)

    def events(self):
        """Spans of the newest recording, by row."""
        subprocess.run([CLI, "convert", "r.wsrun", "r.json"], cwd=self.folder, check=True, capture_output=True)
        with open(os.path.join(self.folder, "r.json")) as file:
            events = json.load(file)
        events = events.get("traceEvents", events) if isinstance(events, dict) else events
        rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
        spans = []
        for event in events:
            if event.get("ph") == "X":
                arguments = event.get("args") or {}
                spans.append((rows.get((event["pid"], event["tid"]), ""), event["name"], arguments, event))
        return spans

    def ranges(self):
        """(layer, name, phase) → how often."""
        counts = {}
        for row, name, arguments, _ in self.events():
            if row.endswith("ranges"):
                key = (arguments.get("layer", ""), name, arguments.get("phase", ""))
                counts[key] = counts.get(key, 0) + 1
        return counts

    def scalars(self):
        """(name, step, value) of each loss and accuracy."""
        subprocess.run([CLI, "convert", "r.wsrun", "r.json"], cwd=self.folder, check=True, capture_output=True)
        with open(os.path.join(self.folder, "r.json")) as file:
            points = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "C" and "step" in e]
        return [(e["name"], e["step"], value) for e in points for value in e["args"].values()]


PACKAGE_PROGRAM = """
import time, warpsight
print(warpsight.recorded())
for i in range(5):
    with warpsight.range("augment"):
        time.sleep(0.002)
    warpsight.log(loss=1.0 / (i + 1), lr=0.5, accuracy=i / 10)
    warpsight.step()
@warpsight.range("decorated")
def f():
    return 7
print(f())
warpsight.log(step=99, val_loss=0.25, note="no number")
"""


CAPTURE_PROGRAM = """
import threading, time, warpsight
def step(i, loss=True):
    with warpsight.range("work"):
        time.sleep(0.002)
    if loss:
        warpsight.log(loss=float(i))
    warpsight.step()
for i in range(5):
    step(i)
with warpsight.capture():
    for i in range(5, 8):
        step(i)
with warpsight.range("around"):
    step(8)
    warpsight.capture.start()
    step(9)
    with warpsight.range("cut"):
        step(10)
        warpsight.capture.stop()
        time.sleep(0.01)
step(11)
"""
# PyTorch has it so: the functions of the runtime are attributes of a module.
PROFILED_PROGRAM = """
import time, types
import torch
for i in range(60):
    if i in (10, 40):
        torch.cuda.profiler.start()
    if i in (20, 45):
        torch.cuda.profiler.stop()
    time.sleep(0.001)
    torch.optim.SGD().step() if i == 0 else torch.optim.kept.step()
"""
PROFILED_TORCH = """
import sys, types
__version__, version = "0", types.SimpleNamespace(cuda="13.0")
get_num_threads = lambda: 1
def module(name, **members):
    made = sys.modules[__name__ + "." + name] = types.ModuleType(name)
    vars(made).update(members)
    return made
calls = []
_C = module("_C", _cudart=types.ModuleType("_cudart"))
_C._cudart.cudaProfilerStart = lambda: calls.append("start")
_C._cudart.cudaProfilerStop = lambda: calls.append("stop")
cuda = module("cuda", is_available=lambda: False, is_initialized=lambda: False,
              profiler=types.SimpleNamespace(start=lambda: _C._cudart.cudaProfilerStart(), stop=lambda: _C._cudart.cudaProfilerStop()))
class Optimizer:
    def __init__(self):
        optim.kept = self
class SGD(Optimizer):
    def step(self):
        pass
optim = module("optim", Optimizer=Optimizer, SGD=SGD)
distributed = module("distributed", is_available=lambda: False)
"""


# The first optimizer ends the steps; a class calls its base's step() inside of its own; then another optimizer is the first.
OPTIMIZERS = """
import torch
class Base(torch.optim.SGD):
    def step(self, closure=None): pass
class Own(Base):
    def step(self, *arguments): return super().step(*arguments)
class Fails(Base):
    def step(self): raise ValueError("too large")
functions = [Base.step, Own.step]
first, second, fails = Base(), Own(), Fails()
for i in range(100):
    first.step()
    second.step()
    try:
        fails.step()
    except ValueError as error:
        message = str(error)
del first
for i in range(50):
    second.step()
print(message, [Base.step, Own.step] == functions)
"""


class Captures(Recorded):
    def record(self, command, level="modules", options=("--capture-range",), **environment):
        record = [CLI, "record", "--no-live", "--level", level, *options, "--run", "r.wsrun", "--"]
        return self.run_plain(record + command, PYTHONPATH=PACKAGE, **environment)

    def steps(self):
        """Their numbers."""
        return [arguments["step"] for row, _, arguments, _ in self.events() if row == "steps"]

    def test_only_what_is_inside_is_recorded(self):
        done = self.record([PYTHON, self.write("p.py", CAPTURE_PROGRAM)])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("5 steps", done.stderr)
        self.assertIn("2 capture ranges", done.stderr)
        self.assertEqual(self.steps(), [5, 6, 7, 9, 10], "as the program counts")
        self.assertEqual([step for _, step, _ in self.scalars()], [5, 6, 7, 9, 10])
        names = [name for row, name, _, _ in self.events() if row.endswith("ranges")]
        self.assertEqual(sorted(names), ["cut"] + 5 * ["work"])
        gaps = [event for row, name, _, event in self.events() if name == "untraced on purpose"]
        self.assertEqual(len(gaps), 1)
        self.assertIn("in 2 capture ranges", self.run_plain([CLI, "stats", "r.wsrun"]).stdout)

    def test_without_the_option_everything_is_recorded(self):
        self.record([PYTHON, self.write("p.py", CAPTURE_PROGRAM)], options=())
        self.assertEqual(self.steps(), list(range(1, 12)))

    def test_a_program_without_ranges_reports_it(self):
        done = self.record([PYTHON, self.write("p.py", "import time, warpsight\nfor i in range(9): time.sleep(0.05), warpsight.step()")])
        self.assertIn("Nothing was recorded: the program began no capture range.", done.stderr)
        self.assertIn("began no capture range", self.run_plain([CLI, "stats", "r.wsrun"]).stdout.replace("\n", " "))
        self.assertEqual([row for row, _, _, _ in self.events()], [])
        self.assertEqual(done.returncode, 0)

    def test_calls_of_pytorch_begin_and_end_a_range(self):
        self.write("torch/__init__.py", PROFILED_TORCH)
        done = self.record([PYTHON, self.write("p.py", PROFILED_PROGRAM)], level="steps")
        self.assertIn("2 capture ranges", done.stderr)
        self.assertEqual(self.steps(), [*range(10, 20), *range(40, 45)])

    def test_a_range_and_a_window_are_refused(self):
        done = self.record([PYTHON, "-c", "0"], options=("--capture-range", "--trace-window", "200ms/5s"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("Choose either capture ranges", done.stderr)

    @needs_torch
    def test_ranks_compare_the_steps_that_both_have(self):
        program = self.write("p.py", """
import os, sys, time, torch, torch.distributed as dist, warpsight
torch.set_num_threads(1)
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=2)
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer, x = torch.optim.SGD(net.parameters(), lr=0.01), torch.randn(4, 8)
for i in range(60):
    if i == 20 + 5 * rank:
        warpsight.capture.start()
    if i == 40 - 5 * rank:
        warpsight.capture.stop()
    net(x).sum().backward()
    optimizer.step()
    time.sleep(0.005)
""")
        ranks = "export WORLD_SIZE=2; RANK=0 {0} & RANK=1 {0} && wait $!".format(f"{TORCH} '{program}' '{self.folder}/store'")
        done = self.record(["sh", "-c", ranks], level="ops")
        said = json.loads(self.run_plain([CLI, "stats", "r.wsrun", "--by", "rank", "--json"]).stdout)
        # On a busy machine one rank may begin a collective before the other has ended the one before.
        self.assertGreaterEqual(len(said["steps"]), 7, done.stderr)
        self.assertLessEqual(set(said["steps"]), set(range(24, 36)), "as the program counts, on both ranks")
        self.assertIn("Rank 1 has only 10 of 20 collectives. Steps without all ranks are not compared.", said["notes"])


class Package(Recorded):
    def test_does_nothing_when_nobody_records(self):
        path = self.write("p.py", PACKAGE_PROGRAM)
        done = self.run_plain([PYTHON, path], PYTHONPATH=PACKAGE)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("False\n7\n", "", 0))

    def test_scalars_steps_and_ranges_are_in_the_run_file(self):
        path = self.write("p.py", PACKAGE_PROGRAM)
        done = self.record([PYTHON, path], PYTHONPATH=PACKAGE)
        self.assertEqual(done.stdout, "True\n7\n", done.stderr)
        self.assertEqual(done.returncode, 0)
        self.assertIn("4 steps", done.stderr, "the first call of step() begins the second step")
        self.assertEqual(self.ranges()[("", "augment", "")], 5)
        self.assertEqual(self.ranges()[("", "decorated", "")], 1)
        self.assertIn(("test loss", 99, 0.25), self.scalars())
        self.assertIn(("loss", 4, 0.2), self.scalars())

    def test_what_cannot_be_logged_never_ends_the_program(self):
        """Each call is wrong in its own way, or as another logger takes it."""
        calls = ('log("epoch 3", loss=1.0)', "log(step=float('nan'), loss=2.0)", 'log({"loss": 3.0})', 'log({"loss": 4.0}, 7)', "log(step=-4, loss=5.0)",
                 "log(step='x', loss=6.0)", "log(step=1 << 80, loss=7.0)", "log(loss='text')", "log(loss=None)", "log(loss=[1])", "log({3: 8.0})",
                 "log(loss=10 ** 400)", "log(None)", "log()", "log(9, loss=9.0)")
        text = "import time, warpsight\n" + "".join(f"warpsight.{call}\n" for call in calls) + "print('on')\n"
        for run in (self.run_plain, self.record):
            done = run([PYTHON, self.write("p.py", text)], PYTHONPATH=PACKAGE)
            self.assertEqual((done.stdout, done.returncode), ("on\n", 0), done.stderr)
        self.assertIn("Not all was logged: 'epoch 3' has no name", done.stderr)
        with sqlite3.connect(os.path.join(self.folder, "r.wsrun")) as file:
            logged = file.execute("SELECT step, loss FROM metrics ORDER BY loss").fetchall()
        self.assertEqual(logged, [(0, 3.0), (7, 4.0), (0, 7.0), (9, 9.0)], "the last value while a step lasts")

    def test_each_logged_scalar_is_exported(self):
        values = {"loss": 1.5, "val_loss": 2.5, "accuracy": 0.75, "lr": 0.125, "grad_norm": 3.5}
        text = f"import warpsight\nfor i in range(20):\n    warpsight.step()\n    warpsight.log(i, **{values})\n"
        done = self.record([PYTHON, self.write("p.py", text)], PYTHONPATH=PACKAGE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.run_plain([CLI, "convert", "r.wsrun", "r.json"])
        with open(os.path.join(self.folder, "r.json"), encoding="utf-8") as file:
            points = [(event["name"], *event["args"].values()) for event in json.load(file)["traceEvents"] if event["ph"] == "C"]
        self.assertEqual({name: points.count((name, value)) for name, value in points}, {"loss": 20, "test loss": 20, "accuracy": 20, "lr": 20, "grad_norm": 20})

    def test_keys_and_passwords_are_not_kept(self):
        command = [PYTHON, self.write("p.py", "import warpsight; warpsight.log(begins=1)"), "--api-key", "topsecret7", "hf_AbCdEfGh0123456789"]
        self.record(command, PYTHONPATH=PACKAGE)
        with open(os.path.join(self.folder, "r.wsrun"), "rb") as file:
            kept = file.read()
        self.assertIn(b"--api-key", kept)
        self.assertFalse(b"topsecret7" in kept or b"hf_AbCdEfGh" in kept)
        self.run_plain([CLI, "record", "--no-live", "--no-command", "--run", "n.wsrun", "--"] + command, PYTHONPATH=PACKAGE)
        with sqlite3.connect(os.path.join(self.folder, "n.wsrun")) as file:
            keys = {key for (key,) in file.execute("SELECT key FROM meta")}
        self.assertIn("record_level", keys)
        self.assertFalse(keys & {"record_command", "record_folder"})

    def test_is_installed_by_pip_as_it_lies_there(self):
        import tomllib

        with open(os.path.join(PACKAGE, "pyproject.toml"), "rb") as file:
            project = tomllib.load(file)
        self.assertEqual(project["tool"]["setuptools"]["packages"], ["warpsight"])
        self.assertNotIn("dependencies", project["project"])


TRAIN = """
import torch, torch.nn as nn
torch.manual_seed(1)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(16, 16), nn.Linear(16, 16)
    def forward(self, x):
        return x + self.fc2(torch.relu(self.fc1(x)))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.head = nn.Linear(16, 4)
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)
net, criterion = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters())
data = torch.utils.data.TensorDataset(torch.randn(80, 16), torch.randint(0, 4, (80,)))
for x, y in torch.utils.data.DataLoader(data, batch_size=8):
    optimizer.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
print("%.9f" % loss.item())
"""


# Cells are compiled as IPython does it: each has a name of its own, and linecache has its text.
CELLS = """
import linecache, sys
names, cells = {"__name__": "__main__"}, 0
def cell(text):
    global cells
    cells += 1
    path = f"<ipython-input-{cells}-0a1b2c>"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    exec(compile(text, path, "exec"), names)
"""
# Nothing bounds the loss: with a larger rate it overflows within the 20 steps, and JSON has no infinity.
NOTEBOOK = CELLS + """
cell("import torch, warpsight")
cell("net = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))")
cell("optimizer = torch.optim.SGD(net.parameters(), lr=0.0001)")
cell("def train(steps):\\n  for _ in range(steps):\\n    optimizer.zero_grad()\\n    loss = net(torch.ones(8, 16)).sum()\\n    loss.backward()\\n    optimizer.step()\\n    warpsight.log(loss=loss)")
cell("train(3)")
cell("print(warpsight.recorded())")
cell(f"warpsight.attach('notebook.wsrun', program={sys.argv[1]!r})")
cell("print(warpsight.recorded())")
cell("train(20)")
cell("warpsight.attach('twice.wsrun')")
"""
# What IPython gives to an extension: functions become magics, and a cell runs with its outcome.
SHELL = """
import sys
class Outcome:
    success = True
class Shell:
    def __init__(self): self.magics, self.names = {}, {"__name__": "__main__"}
    def register_magic_function(self, function, kind, name): self.magics[name] = (kind, function)
    def run_cell(self, cell):
        done = Outcome()
        try: exec(cell, self.names)
        except Exception as problem: print("failed:", problem); done.success = False
        return done
    def run_cell_magic(self, name, line, cell):
        kind, function = self.magics[name]
        assert kind == "cell"
        return function(line, cell)
    def extension(self):
        import warpsight
        warpsight.load_ipython_extension(self)
shell = Shell()
"""
IPYTHON_SHELL = """
from IPython.core.interactiveshell import InteractiveShell
class Shell(InteractiveShell):
    def extension(self): assert self.run_line_magic("load_ext", "warpsight") is None
shell = Shell.instance()
"""
RECORDED_CELLS = """
import os
shell.extension()
record = lambda line, cell: shell.run_cell_magic("record", line, cell)
shell.run_cell("import warpsight\\ndef work(name):\\n    with warpsight.range(name):\\n        return sum(i * i for i in range(200000))")
shown = record("book", "work('first')")
print(repr(shown) != "", "<iframe" in shown._repr_html_(), os.path.exists("book.wsrun"))
shell.run_cell("work('between')")
print(record("--no-page", "kept = work('second')"))
print(record("", "1 / 0") is None)
for line in ("other", "--level none", "a b"):
    try: record(line, "pass")
    except (RuntimeError, ValueError) as problem: print(problem)
"""
# A client of Jupyter starts a kernel and sends it two cells.
JUPYTER_NOTEBOOK = """
import nbclient, nbformat
cell = nbformat.v4.new_code_cell
work = "# a cell\\nimport time, warpsight\\n\\ndef work():\\n    with warpsight.range('augment'):\\n        time.sleep(0.5)\\n    return 7"
book = nbformat.v4.new_notebook(cells=[cell(work), cell("work()")])
nbclient.NotebookClient(book, timeout=300, startup_timeout=300, kernel_name="python3").execute()
print(book.cells[1].outputs[0]["data"]["text/plain"])
"""


class Notebook(Recorded):
    @needs_torch
    def test_a_cell_begins_a_recording_of_the_models_that_are_there(self):
        done = self.run_plain([TORCH, self.write("cells.py", NOTEBOOK), CLI], PYTHONPATH=PACKAGE)
        self.assertEqual(done.stdout, "False\nTrue\n", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "twice.wsrun")))
        os.rename(os.path.join(self.folder, "notebook.wsrun"), os.path.join(self.folder, "r.wsrun"))
        counts = self.ranges()
        self.assertEqual(counts[("net.0", "Linear", "forward")], 20, counts)
        self.assertEqual(counts[("net.2", "Linear", "backward")], 20, counts)
        self.assertEqual(counts[("", "SGD.step", "optimizer")], 20, "the optimizer was made before")
        self.assertEqual(sum(step in range(1, 21) for _, step, _ in self.scalars()), 20)
        lines = {arguments.get("line") for _, name, arguments, _ in self.events() if name == "aten::addmm"}
        self.assertEqual(lines, {"<ipython-input-4-0a1b2c>:4 in train"})
        kept = self.sources()
        self.assertIn("loss = net(torch.ones(8, 16)).sum()", kept["<ipython-input-4-0a1b2c>"].split("\n")[3])

    def test_cells_of_a_recorded_program_keep_their_source(self):
        text = CELLS + (
            'cell("import time, warpsight\\ndef work():\\n  with warpsight.range(\'augment\'):\\n    time.sleep(0.5)")\n'
            'cell("work()")\nprint(cells)\nimport code\n'
            "code.InteractiveConsole(names).push(\"with warpsight.range('typed'): pass\\n\")\n"
        )
        done = self.record([PYTHON, self.write("cells.py", text)], PYTHONPATH=PACKAGE)
        self.assertEqual((done.returncode, done.stdout), (0, "2\n"), done.stderr)
        lines = {name: arguments.get("line") for _, name, arguments, _ in self.events() if name in ("augment", "typed")}
        self.assertEqual(lines, {"augment": "<ipython-input-1-0a1b2c>:3 in work", "typed": "<console>:1 in <module>"})
        self.assertEqual(self.sources()["<ipython-input-2-0a1b2c>"], "work()")

    def records_cells(self, python, shell):
        done = self.run_plain([python, self.write("cells.py", shell + RECORDED_CELLS)], PYTHONPATH=PACKAGE, HOME=self.folder, IPYTHONDIR=self.folder,
                              PATH=os.path.dirname(CLI) + ":" + os.environ["PATH"])
        self.assertEqual(done.returncode, 0, done.stderr)
        said = [line for line in done.stdout.split("\n") if line]
        self.assertIn("True True True", said, done.stdout + done.stderr)
        self.assertEqual(said.count("None"), 1, said)
        self.assertIn("True", said, "a cell that fails shows no run")
        self.assertTrue(any("Restart it to record into another file." in line for line in said), said)
        self.assertEqual(sum("is not understood here: %%record" in line for line in said), 2, said)
        os.rename(os.path.join(self.folder, "book.wsrun"), os.path.join(self.folder, "r.wsrun"))
        names = {name for _, name, _, _ in self.events()}
        self.assertLessEqual({"cell 1", "cell 2", "first", "second"}, names)
        self.assertNotIn("between", names, "a cell without %%record is not recorded")

    def test_a_cell_magic_records_and_shows(self):
        self.records_cells(PYTHON, SHELL)

    @unittest.skipUnless(IPYTHON, "no python3 here has IPython (Debian: python3-ipython)")
    def test_a_cell_magic_of_ipython(self):
        self.records_cells(IPYTHON, IPYTHON_SHELL)

    @unittest.skipUnless(JUPYTER, "no python3 here has Jupyter (Debian: python3-ipykernel, python3-nbclient)")
    def test_a_notebook_of_jupyter(self):
        self.write("notebook.py", JUPYTER_NOTEBOOK)
        done = self.record([JUPYTER, "notebook.py"], PYTHONPATH=PACKAGE, HOME=self.folder, IPYTHONDIR=self.folder)
        self.assertEqual((done.returncode, done.stdout), (0, "7\n"), done.stderr)
        (line,) = {arguments.get("line") for _, name, arguments, _ in self.events() if name == "augment"}
        self.assertRegex(line, r"^\S*ipykernel_[0-9]+/[0-9]+\.py:5 in work$")
        path = line.split(":")[0]
        self.assertEqual([text.split("\n")[4] for name, text in self.sources().items() if name.endswith(path)],
                         ["    with warpsight.range('augment'):"])

    def sources(self):
        with sqlite3.connect(os.path.join(self.folder, "r.wsrun")) as file:
            kept = dict(file.execute("SELECT key, value FROM meta"))
        return {key[len("source:"):]: value for key, value in kept.items() if key.startswith("source:")}

    @unittest.skipUnless(shutil.which("cc"), "no C compiler")
    def test_an_old_cupti_is_named(self):
        old = "int cuptiGetVersion(unsigned* version) { *version = 1; return 0; }"
        for major in (12, 13):  # the collector loads the one of its toolkit
            name = f"libcupti.so.{major}"
            subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", f"-Wl,-soname,{name}", "-o", name], input=old, text=True, cwd=self.folder, check=True)
        text = "import ctypes, os\nctypes.CDLL(os.environ['CUDA_INJECTION64_PATH']).InitializeInjection()\nsum(range(10 ** 7))\n"  # as the driver does
        done = self.record([PYTHON, self.write("p.py", text)], LD_LIBRARY_PATH=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = " ".join(subprocess.run([CLI, "stats", "r.wsrun"], cwd=self.folder, capture_output=True, text=True).stdout.split())  # in one line
        if "of the CUDA toolkit was not found" in said or "built without CUDA" in said:
            self.skipTest("no CUDA runtime here")
        self.assertRegex(said, r"the CUPTI library found is older than the one Warpsight was built with: install CUDA \d+\.\d+ or newer")

    def test_what_is_missing_is_said(self):
        text = "import warpsight\ntry:\n    warpsight.attach('n.wsrun', program='/no/such/cli')\nexcept RuntimeError as e:\n    print(e)\n"
        done = self.run_plain([PYTHON, self.write("p.py", text)], PYTHONPATH=PACKAGE)
        self.assertIn("/no/such/cli cannot be started: No such file or directory", done.stdout, done.stderr)


# A class with its own __call__, a call that fails, one in another thread, a forward pass inside the backward pass and one
# inside the optimizer, a class whose call is asked for.
UNUSUAL = """
import threading, torch, torch.nn as nn
from torch.utils.checkpoint import checkpoint
class Own(nn.Linear):
    def __call__(self, *args, **kwargs):
        return super().__call__(*args, **kwargs)
class Fails(nn.Module):
    def forward(self, x, *, fail): raise KeyError(fail)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.again, self.fails = Own(4, 4), nn.Linear(4, 4), Fails()
    def forward(self, x):
        try:
            self.fails(x, fail="here")
        except KeyError as error:
            x = x + len(error.args)
        return checkpoint(self.again, self.own(x))
net = Net()
optimizer = torch.optim.LBFGS(net.parameters(), max_iter=2, line_search_fn=None)
x = torch.ones(2, 4, requires_grad=True)
def closure():
    optimizer.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    return loss
net(x).sum().backward()
optimizer.step(closure)
other = threading.Thread(target=lambda: net.own(x))
other.start(), other.join()
print(nn.Module.__call__ is nn.Module._call_impl, nn.Module.__call__(net.again, x).shape)
"""
UNUSUAL_COUNTS = {
    ("own", "forward"): 2,
    ("own", "optimizer"): 2,
    ("fails", "forward"): 1,
    ("fails", "optimizer"): 2,
    ("again", "optimizer"): 2,
}
STAND_IN_TORCH = {
    "torch/__init__.py": "__version__ = '9.0'\nclass version: cuda = None\ndef get_num_threads(): return 1\nfrom . import nn\n",
    "torch/nn.py": """
class Call:
    def __get__(self, module, kind): return (lambda *a, **k: self(module, *a, **k)) if module is not None else self
    def __call__(self, module, x): return x
class Module:
    __call__ = Call()
    def named_modules(self): return [("", self)]
""",
}

STAND_IN_DYNAMO = {
    "torch/_dynamo/__init__.py": "left_out = []\nfrom . import trace_rules\n",
    "torch/_dynamo/trace_rules.py": """
from importlib.util import find_spec
from . import left_out
def add(name): left_out.append(find_spec(name).origin)
""",
}


# Each model is a container, and both have a "0".
TWO_MODELS = """
import torch
torch.manual_seed(0)
class Trainer:
    def __init__(self):
        self.reader = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    def read(self, x):
        return self.reader(x)
def model():
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
trainer, maker = Trainer(), model()
judge = torch.nn.DataParallel(torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Sigmoid()))
for i in range(5):
    made = maker(torch.ones(2, 8))
    print("%.3f" % judge(trainer.read(made)).sum().item())
"""


@needs_torch
class Torch(Recorded):
    made, making = {}, threading.Lock()  # level → what the recorder said, and the recording

    def recorded(self, level):
        """A recording of TRAIN at this level: made once, each test has a copy. At level off the program is alone."""
        path = self.write("train.py", TRAIN)
        with self.making:
            for each in ("off", level):
                if each in self.made:
                    continue
                done = self.record([TORCH, path], each)
                recording = b""
                if os.path.exists(os.path.join(self.folder, "r.wsrun")):
                    with open(os.path.join(self.folder, "r.wsrun"), "rb") as file:
                        recording = file.read()
                self.made[each] = done, recording
        done, recording = self.made[level]
        with open(os.path.join(self.folder, "r.wsrun"), "wb") as file:
            file.write(recording)
        if level != "off":
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^[0-9]\.[0-9]{9}\n$")
        self.assertEqual(done.stdout, self.made["off"][0].stdout)
        return done

    def test_modules_have_paths_and_phases(self):
        done = self.recorded("modules")
        self.assertIn("10 steps", done.stderr)
        ranges = self.ranges()
        for path, kind in (("Net", "Net"), ("blocks.0", "Block"), ("blocks.1.fc2", "Linear"), ("head", "Linear")):
            self.assertEqual(ranges.get((path, kind, "forward")), 10, (path, ranges))
        for path in ("blocks.0.fc1", "blocks.1.fc2", "head"):
            self.assertEqual(ranges.get((path, "Linear", "backward")), 10, (path, ranges))
        self.assertEqual(ranges.get(("", "Adam.step", "optimizer")), 10)
        self.assertEqual(ranges.get(("", "wait for data", "data")), 11, "ten batches, and the end")
        self.assertEqual([key for key in ranges if "::" in key[1]], [])

    def test_containers_have_the_names_of_their_variables(self):
        path = self.write("two.py", TWO_MODELS)
        plain = self.run_plain([TORCH, path])
        done = self.record([TORCH, path])
        self.assertEqual((done.returncode, done.stdout), (0, plain.stdout), done.stderr)
        ranges = self.ranges()
        for path, kind in (("maker", "Sequential"), ("maker.0", "Linear"), ("maker.2", "Linear"), ("judge.0", "Linear"), ("reader.0", "Linear")):
            self.assertEqual(ranges.get((path, kind, "forward")), 5, (path, ranges))

    def test_modules_in_unusual_calls(self):
        path = self.write("unusual.py", UNUSUAL)
        plain = self.run_plain([TORCH, path])
        for level in ("modules", "lines"):
            done = self.record([TORCH, path], level)
            self.assertEqual((done.returncode, done.stdout), (0, plain.stdout), done.stderr)
            ranges = self.ranges()
            for path_and_phase, count in UNUSUAL_COUNTS.items():
                found = sum(n for (layer, _, phase), n in ranges.items() if (layer, phase) == path_and_phase and "::" not in _)
                self.assertEqual(found, count, (level, path_and_phase, ranges))

    def test_a_call_that_is_no_python_function_is_recorded_too(self):
        for name, text in STAND_IN_TORCH.items():
            self.write(name, text)
        done = self.record([PYTHON, self.write("p.py", "import torch\nclass M(torch.nn.Module): pass\nfor i in range(3): print(M()(i))\n")])
        self.assertEqual((done.returncode, done.stdout), (0, "0\n1\n2\n"), done.stderr)
        self.assertEqual(self.ranges().get(("M", "M", "forward")), 3)

    def test_torch_compile_leaves_our_code_out(self):
        for name, text in {**STAND_IN_TORCH, **STAND_IN_DYNAMO}.items():
            self.write(name, text)
        path = self.write("p.py", "import torch, torch._dynamo\nprint(torch._dynamo.left_out)\n")
        self.assertEqual(self.run_plain([PYTHON, path]).stdout, "[]\n")
        done = self.record([PYTHON, path])
        self.assertRegex(done.stdout, r"^\['/.*/warpsight_hook/__init__.py'\]\n$", done.stderr)

    def test_ops_stand_in_their_modules_forward_and_backward(self):
        self.recorded("ops")
        ranges = self.ranges()
        self.assertEqual(ranges.get(("blocks.1.fc1", "aten::addmm", "forward")), 10, ranges)
        self.assertEqual(ranges.get(("blocks.1", "aten::relu", "forward")), 10)
        self.assertEqual(ranges.get(("blocks.1.fc1", "aten::mm", "backward")), 20)

    def test_lines_come_from_the_program(self):
        self.recorded("lines")
        lines = {}
        for row, name, arguments, _ in self.events():
            if row.endswith("ranges") and name in ("aten::addmm", "Adam.step", "backward"):
                lines.setdefault(name, set()).add(arguments.get("line", ""))
        number = {text.strip(): i for i, text in enumerate(TRAIN.split("\n"), 1)}
        self.assertEqual(
            lines["aten::addmm"],
            {
                f"train.py:{number['return x + self.fc2(torch.relu(self.fc1(x)))']} in Block.forward",
                f"train.py:{number['return self.head(x)']} in Net.forward",
            }
            if sys.version_info >= (3, 11)
            else lines["aten::addmm"],
        )
        self.assertEqual(lines["Adam.step"], {f"train.py:{number['optimizer.step()']} in <module>"})
        self.assertEqual(lines["backward"], {f"train.py:{number['loss.backward()']} in <module>"})

    def test_the_whole_stack_of_each_op_is_kept(self):
        self.recorded("lines")
        number = {text.strip(): i for i, text in enumerate(TRAIN.split("\n"), 1)}
        block, call = number["x = block(x)"], number["loss = criterion(net(x), y)"]
        table = {}
        for line in self.stats("line").splitlines():
            cells = line.split()
            if "train.py:" in line:
                table[cells[-3]] = cells
        with_calls = {place: float(cells[3]) for place, cells in table.items()}
        inner = number["return x + self.fc2(torch.relu(self.fc1(x)))"]
        self.assertGreaterEqual(with_calls[f"train.py:{block}"], with_calls[f"train.py:{inner}"])
        self.assertGreaterEqual(with_calls[f"train.py:{call}"], with_calls[f"train.py:{block}"])
        tree = self.stats("stack")
        self.assertRegex(tree, r"<module> \(train.py\)[^$]*\n +[0-9. ]+  +Net.forward \(train.py\)[^$]*\n")
        profile = json.loads(self.stats("stack", "--json"))
        names = [frame["name"] for frame in profile["shared"]["frames"]]
        samples = ["; ".join(names[i] for i in sample) for sample in profile["profiles"][0]["samples"]]
        stack = re.compile(r"<module> \(train.py:[0-9]+\); Net.forward \(train.py:[0-9]+\); Block.forward .*; aten::addmm")
        self.assertTrue(any(stack.match(sample) for sample in samples), samples[:9])
        self.assertNotIn("_call_impl", tree, "it stands around each module")

    def test_generated_code_is_no_line_of_the_program_and_waits_have_theirs(self):
        generated = (
            "# from torch._inductor.async_compile import AsyncCompile\nimport torch\ndef call(x):\n"
            "    # Topologically Sorted Source Nodes: [add], Original ATen: [aten.add]\n    return x.add(1)\n"
        )
        self.write("made/generated.py", generated)
        program = "import sys\nsys.path.append('made')\nimport generated, torch\nfor _ in range(3):\n    generated.call(torch.ones(2))\n"
        waits = "x = torch.ones(1)\ndef read(t):\n    return t.item()\nassert read(x) == 1 and x.tolist() == [1]\n"
        done = self.record([TORCH, self.write("p.py", program + waits)], "lines")
        self.assertEqual(done.returncode, 0, done.stderr)
        spans = self.events()
        # Calls that wait for the GPU have their line as well.
        lines = {name: arguments.get("line") for _, name, arguments, _ in spans if name.startswith(".")}
        self.assertEqual(lines, {".item()": "p.py:8 in read", ".tolist()": "p.py:9 in <module>"})
        lines = {arguments.get("line") for _, name, arguments, _ in spans if name == "aten::add"}
        self.assertEqual(lines, {"p.py:5 in <module>"})
        self.assertIn("call (made/generated.py:5)", self.stats("stack"))

    def test_the_command_is_kept_for_record_again(self):
        self.recorded("ops")
        with sqlite3.connect(os.path.join(self.folder, "r.wsrun")) as file:
            kept = dict(file.execute("SELECT key, value FROM meta"))
        command = json.loads(kept["record_command"])
        self.assertEqual((command[0], os.path.basename(command[1])), (TORCH, "train.py"))
        self.assertEqual((kept["record_level"], kept["record_trace"], kept["name"]), ("ops", "full", "train.py"))
        self.assertTrue(kept["program_torch"])
        self.assertTrue(os.path.basename(kept["record_folder"]).startswith("warpsight py"), "its source files are there")

    def stats(self, by, *further):
        done = subprocess.run([CLI, "stats", "r.wsrun", "--by", by, *further], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_tables_by_module_line_and_host(self):
        self.recorded("lines")
        modules = [line.split() for line in self.stats("module").splitlines() if line.strip()]
        self.assertIn("blocks", [words[-1] for words in modules])
        self.assertIn(["fc2", "Linear"], [words[-2:] for words in modules])
        number = [i for i, text in enumerate(TRAIN.split("\n"), 1) if "loss.backward()" in text][0]
        self.assertIn(f"train.py:{number} in <module>", self.stats("line"))
        self.assertIn("host time by function and line", self.stats("host"))
        for name in ("a.collapsed", "a.speedscope.json"):
            subprocess.run([CLI, "convert", "r.wsrun", name], cwd=self.folder, check=True, capture_output=True)
        with open(os.path.join(self.folder, "a.collapsed")) as file:
            self.assertRegex(file.readline(), r"^MainThread;.* [0-9]+$")
        with open(os.path.join(self.folder, "a.speedscope.json")) as file:
            self.assertEqual(json.load(file)["profiles"][0]["type"], "sampled")

    def test_without_a_profiler_there_are_no_blocks_on_the_cpu(self):
        self.recorded("ops")
        printed = self.run_plain([CLI, "stats", "r.wsrun", "--json"]).stdout
        self.assertEqual(json.loads(printed).get("memory", []), [])
        self.assertNotIn("PyTorch CPU", printed)

    def test_level_steps_has_steps_and_nothing_inside(self):
        done = self.recorded("steps")
        self.assertIn("10 steps", done.stderr)
        self.assertEqual(self.ranges(), {})

    def test_level_off_leaves_python_alone(self):
        done = self.recorded("off")
        if "Nothing was recorded" not in done.stderr:  # beside a GPU, PyTorch starts CUDA
            return self.assertEqual({row for row, *_ in self.events() if row.endswith("ranges") or row.startswith("samples")}, set())
        self.assertIn("Nothing was recorded", done.stderr)

    def test_sampling_a_busy_program_does_not_end_it(self):
        # Frames come and go in two threads while they are sampled: CPython 3.11 crashes where Python code walks them.
        text = (
            "import threading, time, warpsight\nwarpsight.log(begins=1)\ndef f(n): return f(n - 1) if n else 0\n"
            "def work():\n    end = time.thread_time() + 0.6\n    while time.thread_time() < end: f(60)\n"
            "t = [threading.Thread(target=work) for _ in range(2)]\nfor x in t: x.start()\nfor x in t: x.join()\n"
        )
        self.assertEqual(self.record([TORCH, self.write("busy.py", text)], PYTHONPATH=PACKAGE).returncode, 0)
        self.assertTrue(any(name.startswith("f (busy.py:3)") for row, name, _, _ in self.events() if row.startswith("samples")))

    def test_samples_say_what_the_host_did(self):
        text = "import _thread, time, warpsight\nwarpsight.log(begins=1)\n_thread.start_new_thread(lambda: time.sleep(60), ())\ntime.sleep(0.3)\ndef hot():\n    end = time.thread_time() + 0.6\n    while time.thread_time() < end: pass\nhot()\n"
        self.assertEqual(self.record([PYTHON, self.write("spin.py", text)], PYTHONPATH=PACKAGE).returncode, 0)
        time_by_function = {}
        for row, name, _, event in self.events():
            if row.startswith("samples of MainThread"):
                function = name.split(" (")[0]
                time_by_function[function] = time_by_function.get(function, 0) + event["dur"]
        self.assertGreater(time_by_function.get("hot", 0), 3e5, time_by_function)
        rows = {row for row, *_ in self.events()}  # a thread that has just ended may have taken the first number
        self.assertTrue(any(re.fullmatch("samples of thread [0-9]+", row) for row in rows), rows)
        printed = self.run_plain([CLI, "stats", "r.wsrun"]).stdout
        self.assertRegex(printed, r"host time by function and line\n(.*\n)*.* hot \(spin.py:[0-9]+\)", "there is nothing else to show")


    def test_samples_begin_while_the_program_begins_its_recording(self):
        text = (
            "import sysconfig, time, warpsight\nknown = sysconfig.get_config_var\n"
            "def slow(name):\n    time.sleep(0.4)\n    return known(name)\nsysconfig.get_config_var = slow\n"
            "warpsight.log(begins=1)\nend = time.thread_time() + 0.4\nwhile time.thread_time() < end: pass\n"
        )
        self.assertEqual(self.record([PYTHON, self.write("slow.py", text)], PYTHONPATH=PACKAGE).returncode, 0)
        self.assertTrue(any(row.startswith("samples of MainThread") for row, *_ in self.events()))


PLANTED = """
import time, torch
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 60
    def __getitem__(self, i):
        time.sleep(LOADER)  # the slow loader
        return torch.zeros(4), 0
def augment(n):
    total = 0
    for i in range(n): total += i * i  # the hot line
    return total
def main():
    net = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in torch.utils.data.DataLoader(Slow(), batch_size=2):
        augment(HOT)
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
if __name__ == "__main__": main()
"""


# Without a GPU, PyTorch reports its blocks only while its own profiler asks for them.
KEEPS = """
import torch
from torch.profiler import ProfilerActivity, profile
net, kept = torch.nn.Linear(64, 32), []
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as own:
    for _ in range(40):
        net(torch.ones(8, 64)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        kept.append(torch.ones(250_000))  # KEPT
print(own.key_averages().total_average().cpu_memory_usage >= 40_000_000)
"""


READS = """
import torch
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(6):
    optimizer.zero_grad()
    loss = net(torch.full((2, 4), 1.0)).square().mean() * 0 + i
    loss.backward()
    assert not (loss + 1).item() == 0  # another value
    optimizer.step()
    READ
"""


SEVERAL = """
import torch
nets = [torch.nn.Linear(4, 1) for _ in range(3)]
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
def evaluate():
    nets[0].eval()
    with torch.no_grad():
        for value in (0.25, 0.75):
            loss = nets[0](torch.ones(2, 4)).mean() * 0 + value
            count = torch.tensor(3.0)
            print(loss.item(), count.item())
    nets[0].train()
for i in range(6):
    losses = []
    for number, net in enumerate(nets):
        loss = net(torch.ones(2, 4)).square().mean() * 0 + 10 * (number + 1) + i
        loss.backward()
        losses.append(loss)
    for optimizer in optimizers:
        optimizer.step()
    loss_d, errG, other = losses
    print(loss_d.item(), f"{errG:.3f}")
LINE
    with torch.no_grad():
        mean_loss = loss_d / 2
        print(mean_loss.item())
    if i % 3 == 2: evaluate()
"""
SEVERAL_LINE = "    print('%g %g' % (other, other))"
SEVERAL = SEVERAL.replace("LINE", SEVERAL_LINE)


@needs_torch
class ReadLosses(Recorded):
    def read(self, how):
        program = READS.replace("READ", how)
        self.assertEqual(self.record([TORCH, self.write("p.py", program)]).returncode, 0)
        return [(step, value) for _, step, value in self.scalars()]

    def test_a_loss_that_the_program_reads_is_on_the_chart(self):
        for how in ("print(loss.item())", "print(f'{loss:.3f}')", "float(loss)", "print(loss.detach().item())"):
            self.assertEqual(self.read(how), [(i, float(i)) for i in range(6)], how)
        self.assertEqual(self.read("if i % 2: print(loss.item(), loss.item())"), [(1, 1.0), (3, 3.0), (5, 5.0)])
        self.assertEqual(self.read("pass"), [])

    def test_a_loss_that_the_program_logs_is_not_doubled(self):
        self.write("tqdm/__init__.py", STAND_INS["tqdm/__init__.py"])
        self.write("tqdm/std.py", STAND_INS["tqdm/std.py"])
        program = READS.replace("READ", "bar.set_postfix(loss=loss.item())").replace("for i in range(6)", "import tqdm\nfor i in (bar := tqdm.tqdm(range(6)))")
        self.assertEqual(self.record([TORCH, self.write("p.py", program)]).returncode, 0)
        self.assertEqual([name for name, _, _ in self.scalars()], 6 * ["loss"])

    def named(self):
        """Counters of the run: name → values."""
        subprocess.run([CLI, "convert", "r.wsrun", "r.json"], cwd=self.folder, check=True, capture_output=True)
        found = {}
        for event in json.load(open(os.path.join(self.folder, "r.json")))["traceEvents"]:
            if event.get("ph") == "C":
                for value in event["args"].values():
                    found.setdefault(event["name"], []).append(value)
        return found

    def test_each_loss_that_the_program_reads_has_its_name(self):
        self.assertEqual(self.record([TORCH, self.write("gan.py", SEVERAL)]).returncode, 0)
        rows = self.scalars()
        self.assertEqual([row for row in rows if row[0] == "loss"], [("loss", i, 10.0 + i) for i in range(6)])
        # Two evaluations of two batches, each a point. What is read of the training in no_grad is no test.
        self.assertEqual([row for row in rows if row[0] == "test loss"], [("test loss", 3, 0.5), ("test loss", 6, 0.5)])
        named = self.named()
        self.assertIn("loss_d", named)
        self.assertEqual(named["errG loss"], [20.0 + i for i in range(6)])
        self.assertEqual(named["loss (gan.py:%d)" % (1 + SEVERAL.split("\n").index(SEVERAL_LINE))], [30.0 + i for i in range(6)])
        self.assertEqual(len(named), 5, "also the loss and the test loss of the rows above")
        stats = subprocess.run([CLI, "stats", "r.wsrun"], cwd=self.folder, check=True, capture_output=True, text=True).stdout
        self.assertRegex(stats, "\nsteps +6\n", "the second optimizer's last step is no step of its own")


class Node:
    """A node of autograd, since PyTorch 2.1."""

    def __init__(self, number, kind, *inner):
        self._sequence_nr, self.name = lambda: number, lambda: kind
        self.next_functions = [(node, 0) for node in inner]


class Value:
    def __init__(self, node, place=0, size=1):
        self.grad_fn, self.numel, self.data_ptr = node, lambda: size, lambda: place


class LossOfScaled(unittest.TestCase):
    def losses(self):
        sys.path.insert(0, os.path.join(PACKAGE, "hook"))
        self.addCleanup(sys.path.remove, sys.path[0])
        from warpsight_hook import losses

        return losses

    def losses_of(self, root, *reads, formatted=None):
        scalars = []
        program = types.SimpleNamespace(steps=3, recorder=types.SimpleNamespace(scalar=lambda *row: scalars.append(row), records=lambda: True))
        losses = self.losses().Losses(program)
        losses.began(root)
        program.steps = 4
        losses.formatted = formatted

        for value_loss, value in reads:
            (lambda tensor: losses.read(tensor, value))(value_loss)  # a method of ours, which the program calls
        losses.report()
        return scalars

    def test_the_loss_behind_a_scaled_one_is_found_by_its_node(self):
        node = Node(7, "NllLossBackward0", Node(6, "LogSoftmaxBackward0"))
        scaled = Value(Node(9, "DivBackward0", Node(8, "MulBackward0", node), None))
        self.assertEqual(self.losses_of(scaled, (Value(node), 0.5)), [("value_loss", 0.5, 3)])
        self.assertEqual(self.losses_of(scaled, (scaled, 0.25), (Value(node), 0.5)), [("value_loss", 0.25, 3)], "once per step")
        self.assertEqual(self.losses_of(scaled, (Value(Node(6, "LogSoftmaxBackward0")), 0.5)), [], "what lies before the loss")
        self.assertEqual(self.losses_of(scaled, (Value(None, place=1), 0.5)), [], "a value without gradient")
        self.assertEqual(self.losses_of(Value(node, size=2), (Value(node), 0.5)), [], "not one number")
        detached = Value(None, place=1)  # as f"{loss:.3f}" reads it
        self.assertEqual(self.losses_of(scaled, (detached, 0.5), formatted=Value(node)), [("value_loss", 0.5, 3)])

    def test_each_part_of_a_sum_is_a_loss(self):
        policy, value, entropy = (Node(number, "MeanBackward0", Node(1, "SquareBackward0")) for number in (5, 7, 8))
        total = Value(Node(12, "SubBackward0", Node(11, "AddBackward0", policy, Node(10, "MulBackward0", value, None)), entropy))
        self.assertEqual(
            self.losses_of(total, (Value(policy), 0.5), (Value(value), 2.0), (Value(policy), 0.5), (total, 1.5)),
            [("value_loss", 0.5, 3), ("value_loss (2)", 2.0, 3), ("value_loss (3)", 1.5, 3)],
        )
        self.assertEqual(self.losses_of(total, (Value(Node(1, "SquareBackward0")), 0.5)), [])

    def test_the_variable_of_a_read_is_found(self):
        script = """
import sys, types
sys.path.insert(0, %r)
from warpsight_hook.losses import read_variable
said = []
class X:
    def item(self):
        frame = sys._getframe(1)
        said.append(read_variable(frame.f_code, frame.f_lasti))
        return 1
    __float__ = lambda self: (self.item_of(2), 1.0)[1]
    def __format__(self, spec): return str(self.item_of(2))
    def item_of(self, depth):
        frame = sys._getframe(depth)
        said.append(read_variable(frame.f_code, frame.f_lasti))
    def detach(self): return self
    cpu = detach
x = X()
def local(a, self, all):
    def inside(): return a.item()
    b = a
    print(a.item(), b.item(), float(a), f"{a:.3f}", f"{a}", "%%f" %% a, self.part.item(), all["box"].item(), a.detach().cpu().item(), file=sys.stderr)
    inside()
    total = 0
    total += b.item() * 3
    (a or b).item()
local(x, types.SimpleNamespace(part=x), {"box": x})
x.item()
print(said)
""" % os.path.join(PACKAGE, "hook")
        wanted = ["a", "b", "a", "a", "a", "a", "part", "box", "a", "a", "b", None, "x"]
        for python in pythons().values():
            done = subprocess.run([python, "-c", script], capture_output=True, text=True)
            said = eval(done.stdout or "[]")
            self.assertEqual(len(said), len(wanted), (python, done.stderr))
            self.assertEqual(said[:11] + said[12:], wanted[:11] + wanted[12:], python)


@needs_torch
class Memory(Recorded):
    def test_blocks_have_sizes_and_the_line_that_made_them(self):
        done = self.record([TORCH, self.write("keeps.py", KEEPS)], "lines")
        self.assertEqual((done.returncode, done.stdout), (0, "True\n"), done.stderr)  # its own profiler still sees them
        printed = subprocess.run([CLI, "stats", "r.wsrun", "--json"], cwd=self.folder, capture_output=True, text=True).stdout
        (memory,) = json.loads(printed)["memory"]
        self.assertEqual(memory["allocator"], "PyTorch CPU")
        self.assertGreaterEqual(memory["peak_live"], 40_000_000)
        self.assertLess(memory["peak_live"], 42_000_000)  # what was given back is not live
        self.assertEqual([size["count"] for size in memory["sizes"] if size["to"] == 1 << 20], [40])
        line = next(i for i, text in enumerate(KEEPS.split("\n"), 1) if "# KEPT" in text)
        held = json.loads(subprocess.run([CLI, "stats", "r.wsrun", "--json", "--by", "line"], cwd=self.folder, capture_output=True,
                                         text=True).stdout)["memory"][0]["held_at_peak"]
        self.assertTrue(held[0]["line"].startswith(f"keeps.py:{line} "), held)
        self.assertEqual((held[0]["bytes"], held[0]["blocks"]), (40_000_000, 40))
        same = subprocess.run([CLI, "diff", "--by", "line", "r.wsrun", "r.wsrun"], cwd=self.folder, capture_output=True, text=True).stdout
        self.assertRegex(same, rf"\n +([0-9.]+) +\1 +([0-9.]+) +\2 +\+0.000  keeps.py:{line} in")
        causes = subprocess.run([CLI, "stats", "r.wsrun", "--by", "cause"], cwd=self.folder, capture_output=True, text=True)
        first = " ".join(causes.stdout.split("\n\n")[1].split())
        self.assertIn(f"keeps.py:{line}", first)
        self.assertIn("more each step", first)


@needs_torch
class Planted(Recorded):
    def first_cause(self, **values):
        text = PLANTED
        for name, value in values.items():
            text = text.replace(name, str(value))
        done = self.record([TORCH, self.write("planted.py", text)])
        self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run([CLI, "stats", "r.wsrun", "--by", "cause"], cwd=self.folder, capture_output=True, text=True)
        return " ".join(done.stdout.split("\n\n")[1].split()), text

    def line(self, text, mark):
        return [i for i, line in enumerate(text.split("\n"), 1) if mark in line][0]

    def test_the_slow_loader_is_named(self):
        cause, text = self.first_cause(LOADER=0.01, HOT=10)
        self.assertIn("the step waits for data", cause)
        self.assertRegex(cause, rf"planted.py:{self.line(text, 'the slow loader')} in (Slow\.)?__getitem__")

    def test_the_slow_loader_is_named_where_workers_load(self):
        for way in ("fork", "spawn"):
            cause, text = self.first_cause(LOADER=0.02, HOT=10, batch_size=f"num_workers=1, multiprocessing_context='{way}', batch_size")
            self.assertIn("the step waits for data", cause, way)
            # The path beside the program's folder is left out, whatever its letters.
            self.assertRegex(cause, rf"line is planted.py:{self.line(text, 'the slow loader')} in (Slow\.)?__getitem__", way)
            self.assertEqual(len([name for name in os.listdir(self.folder) if name.endswith(".wsrun")]), 1, way)
            rows = {row for row, *_ in self.events()}
            self.assertIn("loader worker 0", rows, way)
            printed = self.run_plain([CLI, "stats", "r.wsrun", "--json"]).stdout
            self.assertEqual(json.loads(printed).get("memory", []), [], "shared batches are not the memory of the program")

    def test_the_hot_line_is_named(self):
        cause, text = self.first_cause(LOADER=0, HOT=300000)
        self.assertIn(f"planted.py:{self.line(text, 'the hot line')} in augment takes", cause)


SPIN = """
import threading, time, warpsight
def inner(seconds=0.25):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def hot(): inner()
warpsight.log(begins=1)
other = threading.Thread(target=inner, name="second")
other.start()
with warpsight.range("augment"): hot()
other.join()
"""


def pythons():
    """All versions of Python that are here, by their number."""
    found = {}
    folders = glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3"))
    for python in ["/usr/bin/python3"] + folders + [f"/usr/bin/python3.{minor}" for minor in range(9, 16)]:
        done = subprocess.run([python, "-V"], capture_output=True, text=True) if os.path.exists(python) else None
        if done and done.returncode == 0:
            version = tuple(int(part) for part in done.stdout.split()[1].split(".")[:2] if part.isdigit())
            if version >= (3, 9):
                found.setdefault(version, python)
    return found


class Optimizers(Recorded):
    def test_in_every_python_here_the_first_one_ends_the_steps(self):
        self.write("torch/__init__.py", PROFILED_TORCH.replace("optim.kept = self", "pass"))
        path = self.write("p.py", OPTIMIZERS)
        for version, python in pythons().items():
            for level, steps in (("steps", 150), ("modules", 149)):  # at level modules, a module's call begins the first step
                done = self.record([python, path], level, PYTHONPATH=self.folder)
                unchanged = version != (3, 11)  # its functions cannot be recorded
                self.assertEqual((done.returncode, done.stdout.split("\n")[0]), (0, f"too large {unchanged}"), (version, done.stderr))
                events = self.events()
                self.assertEqual(sum(row == "steps of the program" for row, *_ in events), steps, (version, level))
                if level == "modules":
                    names = [name for _, name, _, _ in events if name.endswith(".step")]
                    self.assertEqual([names.count(kind + ".step") for kind in ("Base", "Own", "Fails")], [100, 150, 100], version)


class Frames(Recorded):
    def test_every_python_here_shows_its_stacks_and_lines(self):
        path = self.write("spin.py", SPIN)
        line = [i for i, text in enumerate(SPIN.split("\n"), 1) if "augment" in text][0]
        for version, python in pythons().items():
            done = self.record([python, path], PYTHONPATH=PACKAGE)
            self.assertEqual(done.returncode, 0, (version, done.stderr))
            times, lines = {}, set()
            for row, name, arguments, event in self.events():
                if row.startswith("samples of "):
                    inner = name.split(" < ")[0].split(" (")[0]
                    times[row, inner] = times.get((row, inner), 0) + event["dur"]
                if name == "augment":
                    lines.add(arguments.get("line"))
            self.assertGreater(times.get(("samples of MainThread", "inner"), 0), 2e4, (version, times))
            self.assertGreater(times.get(("samples of second", "inner"), 0), 2e4, (version, times))
            self.assertEqual(lines, {f"spin.py:{line} in <module>"}, version)

    def test_a_hook_that_is_switched_off_is_named_and_does_nothing(self):
        path = self.write("spin.py", SPIN)
        done = self.record([PYTHON, path], "lines", PYTHONPATH=PACKAGE, WARPSIGHT_WITHOUT="python-frames")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("WARPSIGHT_WITHOUT switches python-frames off: no source lines and no stacks.", done.stderr + done.stdout)
        self.assertFalse([row for row, *_ in self.events() if row.startswith("samples of ")])
        done = self.record([PYTHON, path], PYTHONPATH=PACKAGE, WARPSIGHT_WITHOUT="frames")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('there is no hook "frames". Choose from python-frames', done.stderr)

    def test_a_thread_that_is_seen_before_it_has_its_name_gets_it(self):
        """It runs Python a while before `threading` knows it, as any thread does on a busy machine."""
        late = "class Late(threading.Thread):\n    def _set_ident(self):\n        inner()\n        super()._set_ident()\n"
        text = SPIN.replace("other = threading.Thread(target=inner,", late + "other = Late(target=inner, args=(0.5,),")
        done = self.record([PYTHON, self.write("late.py", text)], PYTHONPATH=PACKAGE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({row for row, *_ in self.events() if row.startswith("samples of ")}, {"samples of MainThread", "samples of second"})

    def test_native_frames_stand_inside_the_line_that_called_them(self):
        text = "import hashlib, time, warpsight\nwarpsight.log(begins=1)\ndata = bytes(3_000_000)\ndef work(): hashlib.sha256(data)\n"
        path = self.write("native.py", text + "end = time.thread_time() + 0.4\nwhile time.thread_time() < end: work()\n")
        for level in ("lines", "modules"):
            self.assertEqual(self.record([PYTHON, path], level, PYTHONPATH=PACKAGE).returncode, 0)
            native = {name for row, name, _, _ in self.events() if re.search(r"\(lib[a-z]+\.so[.0-9]*\)", name)}
            within = {name for name in native if re.search(r"\.so[.0-9]*\) < work \(native.py:4\)", name)}
            self.assertEqual(bool(within), level == "lines", native)
        self.assertEqual(subprocess.run([CLI, "stats", "r.wsrun", "--by", "host"], cwd=self.folder, capture_output=True).returncode, 0)


# Stand-ins for loggers that need not be installed: what they receive is on the charts.
STAND_INS = {
    "tqdm/__init__.py": "from .std import tqdm\n",
    "tqdm/std.py": """
class tqdm:
    def __init__(self, iterable): self.iterable, self.n = iterable, 0
    def __iter__(self):
        for one in self.iterable:
            yield one
            self.n += 1
    def set_postfix(self, ordered_dict=None, refresh=True, **values): pass
""",
    "wandb/__init__.py": "logged = []\ndef log(data, step=None): logged.append((data, step))\n",
    "tensorboardX/__init__.py": "from .writer import SummaryWriter\n",
    "tensorboardX/writer.py": """
class SummaryWriter:
    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None): return 'kept'
    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None): pass
""",
    "pytorch_lightning/__init__.py": "from .core.module import LightningModule\n",
    "pytorch_lightning/core/__init__.py": "",
    "pytorch_lightning/core/module.py": """
class LightningModule:
    global_step = 0
    def log(self, name, value, **kwargs): pass
    def log_dict(self, dictionary): pass
""",
}
LOGS = {
    "tqdm": "import tqdm\nbar = tqdm.tqdm(range(3))\nfor i in bar: bar.set_postfix(loss=0.5 + i, note='x')\n",
    "wandb": "import wandb\nfor i in range(3): wandb.log({'loss': 0.5 + i, 'text': 'x'}, step=i)\nassert len(wandb.logged) == 3\n",
    "tensorboard": "import tensorboardX\nw = tensorboardX.SummaryWriter()\n"
    "for i in range(3): assert w.add_scalar('train/loss', 0.5 + i, i) == 'kept'\n",
    "lightning": "import pytorch_lightning as pl\nclass M(pl.LightningModule): pass\nm = M()\n"
    "for i in range(3):\n    m.global_step = i\n    m.log('loss', 0.5 + i, prog_bar=True)\n",
}


class Loggers(Recorded):
    def caught(self, logger):
        for name, text in STAND_INS.items():
            self.write(name, text)
        done = self.record([PYTHON, self.write("p.py", LOGS[logger])])
        self.assertEqual(done.returncode, 0, done.stderr)
        values = [value for _, _, value in self.scalars()]
        for i in range(3):
            self.assertIn(0.5 + i, values)

    def test_tqdm(self):
        self.caught("tqdm")

    def test_a_bar_that_counts_late_has_a_step_for_each_value(self):
        self.write("tqdm/__init__.py", STAND_INS["tqdm/__init__.py"])
        self.write("tqdm/std.py", STAND_INS["tqdm/std.py"].replace("self.n += 1", "pass"))
        self.assertEqual(self.record([PYTHON, self.write("p.py", LOGS["tqdm"])]).returncode, 0)
        self.assertEqual([(step, value) for _, step, value in self.scalars()], [(0, 0.5), (1, 1.5), (2, 2.5)])

    def test_bars_of_two_epochs_have_the_steps_of_the_program(self):
        for name in ("tqdm/__init__.py", "tqdm/std.py"):
            self.write(name, STAND_INS[name])
        text = "import tqdm, warpsight\nfor epoch in range(2):\n    bar = tqdm.tqdm(range(3))\n    for i in bar:\n"
        text += "        warpsight.step()\n        bar.set_postfix(loss=epoch + i)\n"
        self.assertEqual(self.record([PYTHON, self.write("p.py", text)], PYTHONPATH=PACKAGE).returncode, 0)
        self.assertEqual([step for _, step, _ in self.scalars()], [1, 2, 3, 4, 5, 6])

    def test_wandb(self):
        self.caught("wandb")

    def test_tensorboard(self):
        self.caught("tensorboard")

    def test_lightning(self):
        self.caught("lightning")


# Programs that end in many ways. Each prints the same and ends the same, recorded at any level or not.
PROGRAMS = {
    "ends": "print('done')",
    "exit status": "import sys; print('x'); sys.exit(3)",
    "exception": "def f(): raise ValueError('ü')\nf()",
    "leaves at once": "import os; print('x', flush=True); os._exit(4)",
    "killed by itself": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "interrupted": "import os, signal\ntry: os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(1)\nexcept KeyboardInterrupt: print('caught')",
    "aborts": "import os; os.abort()",
    "crashes": "import ctypes; ctypes.string_at(0)",
    "forks": "import os\np = os.fork()\nif p == 0:\n    print('child', flush=True); os._exit(0)\nos.waitpid(p, 0); print('parent')",
    "forks and goes on": "import os, sys\np = os.fork()\nif p: os.waitpid(p, 0)\nprint('child' if p == 0 else 'parent', flush=True)",
    "starts a process": "import subprocess, sys; print(subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True).stdout)",
    "spawns": "import multiprocessing as m\ndef f(x): return x * 2\nif __name__ == '__main__':\n    with m.get_context('spawn').Pool(1) as p: print(p.map(f, [1, 2]))",
    "forks a pool": "import multiprocessing as m\ndef f(x): return x * 2\nif __name__ == '__main__':\n    with m.get_context('fork').Pool(2) as p: print(p.map(f, [1, 2]))",
    "replaces itself": "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'print(5)'])",
    "threads": "import threading\nt = [threading.Thread(target=print, args=(1,)) for _ in range(3)]\nfor x in t: x.start(); x.join()\nprint(threading.active_count())",
    "daemon thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start(); print('end')",
    "recursion": "def f(n): return f(n + 1)\ntry: f(0)\nexcept RecursionError: print('too deep')",
    "paths": "import sys, os; print(sys.path)",
    "traces itself": "import sys\nn = []\nsys.settrace(lambda *a: n.append(1))\n(lambda: 0)()\nsys.settrace(None)\nprint(len(n) > 0)",
    "closed output": "import sys; sys.stdout.close(); sys.exit(6)",
    "at exit": "import atexit; atexit.register(print, 'bye'); print('hi')",
    "longer": "import time; time.sleep(0.4); print('later')",
    "subinterpreter": "try:\n    import _xxsubinterpreters as s\n    i = s.create(); s.run_string(i, 'print(9)', {}); s.destroy(i)\nexcept (ImportError, TypeError): print(9)",
    "isolated": "import sys; print(sys.flags.isolated)",
}


FORKS = """
import os, threading, time
time.sleep(SETTLED)
BEFORE
def fork():
    if not os.fork(): os._exit(0)
    os.wait()
fork()
print("end")
"""
STARTS_ALL = """
import json, subprocess, sys, warpsight
warpsight.log(begins=1)
from concurrent.futures import ThreadPoolExecutor
def run(number):
    done = subprocess.run([sys.executable, f"{number}.py"], capture_output=True, text=True, errors="replace")
    return json.dumps([done.returncode, done.stdout, done.stderr])
with ThreadPoolExecutor(3) as several:
    for printed in several.map(run, range(int(sys.argv[1]))):
        print(printed)
"""


class Unharmed(Recorded):
    def check(self, name, module="sys"):
        command = [TORCH if module == "torch" else PYTHON, "program.py"]
        self.write("program.py", "import sys\n" + PROGRAMS[name])  # PyTorch says nothing
        plain = self.run_plain(command)
        self.write("program.py", f"import {module}\n" + PROGRAMS[name])
        plain.stderr = plain.stderr.replace("import sys", f"import {module}")
        for level in ("modules", "lines") if module == "torch" and name in ("exception", "forks a pool") else ("lines",):
            done = self.record(command, level)
            self.assertEqual(done.stdout, plain.stdout, (name, level, done.stderr))
            status = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
            self.assertEqual(done.returncode, status, (name, level, done.stderr))
            self.assertTrue(done.stderr.startswith(plain.stderr), (name, level, plain.stderr, done.stderr))

    def test_all_together_at_each_level(self):
        """One recording a level of a program that starts them all: each process is recorded. Level lines: the tests of each."""
        for number, text in enumerate(PROGRAMS.values()):
            self.write(f"{number}.py", "import sys\n" + text)
        command = [PYTHON, self.write("all.py", STARTS_ALL), str(len(PROGRAMS))]
        plain = self.run_plain(command, PYTHONPATH=PACKAGE).stdout.splitlines()
        self.assertEqual(len(plain), len(PROGRAMS))
        for level in ("off", "modules"):  # ops: as modules where no PyTorch is imported
            done = self.record(command, level, PYTHONPATH=PACKAGE)
            self.assertEqual("Nothing was recorded" in done.stderr, level == "off", done.stderr)
            printed = done.stdout.splitlines()
            self.assertEqual(len(printed), len(PROGRAMS), level)
            for name, said, once in zip(PROGRAMS, printed, plain):
                self.assertEqual(said, once, (name, level))

    def test_python_does_not_warn_of_our_threads_at_a_fork(self):
        version, python = max(pythons().items())
        if version < (3, 12):
            self.skipTest("no Python here warns of a fork beside threads (3.12 does)")
        thread = "other = threading.Event(); threading.Thread(target=other.wait, daemon=True).start()"
        for settled in ("0", "0.5"):  # before and after our sampling has begun
            for before in ("pass", thread):
                path = self.write("forks.py", FORKS.replace("SETTLED", settled).replace("BEFORE", before))
                plain, done = self.run_plain([python, path]), self.record([python, path], "lines")
                self.assertEqual(plain.stdout, done.stdout)
                self.assertEqual(plain.stderr.count("is multi-threaded"), before == thread, plain.stderr)
                self.assertEqual(done.stderr.count("is multi-threaded"), before == thread, done.stderr)

    def test_a_thread_of_ours_is_counted_once_while_it_takes_its_name(self):
        text = (
            "import sys, threading, warpsight\nforks = sys.modules['_warpsight_hook.forks']\n"
            "other = threading.Event()\nthreading.Thread(target=other.wait, daemon=True).start()\n"
            "named, go = threading.Event(), threading.Event()\n"
            "class Slow:\n"
            "    def __init__(self, path, mode='r'): self.file, self.mode = open(path, mode), mode\n"
            "    def __enter__(self): return self.file\n"
            "    def __exit__(self, *_):\n"
            "        self.file.close()\n"
            "        if self.mode == 'w': named.set(), go.wait()\n"
            "forks.open = Slow\nforks.starts_thread()\n"
            "ours = threading.Thread(target=forks.name_thread)\nours.start(), named.wait()\n"
            "warpsight.log(begins=1)\nprint(forks._only_ours_run())\nother.set(), go.set(), ours.join()\n"
        )
        done = self.record([PYTHON, self.write("p.py", text)], PYTHONPATH=PACKAGE)
        self.assertEqual((done.returncode, done.stdout), (0, "False\n"), done.stderr)

    def test_a_hidden_sitecustomize_still_runs(self):
        other = self.write("other/sitecustomize.py", "print('theirs')\n")
        path = self.write("program.py", "import sys; print(sys.modules['sitecustomize'].__file__)")
        done = self.record([PYTHON, path], PYTHONPATH=os.path.dirname(other))
        self.assertEqual(done.stdout, f"theirs\n{other}\n")

    def test_a_library_that_cannot_be_loaded_is_left_out(self):
        path = self.write("program.py", "import time; time.sleep(0.4); print('on')")
        done = self.run_plain([CLI, "record", "--no-live", "--library", "/no/library.so", "--", PYTHON, path])
        self.assertEqual(done.stdout, "on\n")
        self.assertIn("Nothing was recorded", done.stderr)


# 20,000 calls deep, in a file that is gone when its names are read.
DEEP = """
import os, sys, time, warpsight
sys.setrecursionlimit(30_000)
os.remove(__file__)
def fall(n):
    if n: return fall(n - 1)
    with warpsight.range("bottom"):
        time.sleep(1.5)
fall(20_000)
print("deep")
"""
TWO_INTERPRETERS = """
import threading, time, warpsight
try:
    import _interpreters as other
except ImportError:
    import _xxsubinterpreters as other
code = "import time\\nend = time.thread_time() + 0.6\\nwhile time.thread_time() < end: pass\\nprint(9, flush=True)"
def spin(end):
    while time.thread_time() < end: pass
warpsight.log(begins=1)
one = other.create()
thread = threading.Thread(target=lambda: other.run_string(one, code))
thread.start(), spin(time.thread_time() + 0.6), thread.join()
other.destroy(one)
print("end")
"""
MANY_MODULES = """
import torch
net = torch.nn.Sequential(*(torch.nn.Identity() for _ in range(100_000)))
print(net(torch.ones(1)).item())
"""


PLACED = """
import contextlib, time, torch, warpsight
class Net(torch.nn.Module): pass
def hot():
    with warpsight.range("augment"): time.sleep(1.2)  # hot
print(Net()(7))
with contextlib.ExitStack() as stack:
    stack.enter_context(warpsight.range("entered"))  # enter
hot()
"""


FREEZE = """
  PyConfig config;
  PyConfig_InitIsolatedConfig(&config);
  Py_InitializeFromConfig(&config);
  PyRun_SimpleString("import sys; sys.frozen = True; sys.path.insert(0, 'app.zip'); import hot");
"""


def link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


class Strange(Recorded):
    def test_a_deep_stack_of_a_file_that_is_gone(self):
        done = self.record([PYTHON, self.write("deep.py", DEEP)], "lines", PYTHONPATH=PACKAGE)
        self.assertEqual((done.returncode, done.stdout), (0, "deep\n"), done.stderr)
        stacks = [name for row, name, _, _ in self.events() if row.startswith("samples of MainThread")]
        self.assertTrue(any("fall (deep.py:8)" in stack for stack in stacks), stacks)
        self.assertLess(max(stack.count("fall") for stack in stacks), 1000)
        self.assertEqual({arguments.get("line") for _, name, arguments, _ in self.events() if name == "bottom"}, {"deep.py:7 in fall"})

    def test_a_second_interpreter_runs_while_the_first_is_sampled(self):
        version, python = max(pythons().items())  # since 3.12 it may have a lock of its own
        done = self.record([python, self.write("two.py", TWO_INTERPRETERS)], "lines", PYTHONPATH=PACKAGE)
        self.assertEqual((done.returncode, done.stdout), (0, "9\nend\n"), (version, done.stderr))
        stacks = {name for row, name, _, _ in self.events() if row.startswith("samples of MainThread")}
        self.assertTrue(any("spin (two.py:9)" in stack for stack in stacks), (version, stacks))

    def test_a_pytorch_that_is_not_imported_delays_nothing(self):
        self.write("torch/__init__.py", "raise SystemExit('imported')\n")
        text = (
            "import os, time\ndef early():\n    end = time.thread_time() + 0.6\n    while time.thread_time() < end: pass\nearly()\nmaps = open('/proc/self/maps').read()\n"
            "print([name in maps for name in ('libwarpsight_inject', 'libcupti', 'libcudart')])\n"
        )
        done = self.record([PYTHON, self.write("program.py", text)], PYTHONPATH=self.folder)
        self.assertEqual(done.stdout, "[True, False, False]\n", "CUDA's libraries are loaded when the program starts CUDA")
        early = sum(event["dur"] for row, name, _, event in self.events() if name.startswith("early (program.py:"))
        self.assertGreater(early, 1e5)

    def test_a_virtual_environment_with_spaces_in_its_path(self):
        python = os.path.join(self.folder, "its own ü", "bin", "python3")
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", os.path.dirname(os.path.dirname(python))], check=True)
        name = "a < b; c > d (e:1)/spin ü.py"  # what stands between frames where stacks are text
        path = self.write(name, "import time, warpsight\ndef hot():\n    with warpsight.range('augment'): time.sleep(1.5)\nhot()\n")
        self.assertEqual(self.record([python, path], PYTHONPATH=PACKAGE).returncode, 0)
        subprocess.run([CLI, "convert", "r.wsrun", "a.speedscope.json"], cwd=self.folder, check=True, capture_output=True)
        with open(os.path.join(self.folder, "a.speedscope.json")) as file:
            frames = {(frame["name"], frame.get("file"), frame.get("line")) for frame in json.load(file)["shared"]["frames"]}
        self.assertIn((f"hot ({name}:3)", name, 3), frames)
        lines = {arguments.get("line") for _, name, arguments, _ in self.events() if name == "augment"}
        self.assertEqual(lines, {f"{name}:3 in hot"})
        subprocess.run([CLI, "convert", "r.json", "again.collapsed"], cwd=self.folder, check=True, capture_output=True)
        with open(os.path.join(self.folder, "again.collapsed")) as file:
            self.assertIn(f";<module> ({name}:4);hot ({name}:3)".replace(name, name.replace(";", ",")), file.read())

    def test_pythons_in_other_places(self):
        """In folders as uv, conda and venv have them. The interpreter is Debian's, without debug symbols."""
        self.write("train ü.py", PLACED)
        number = {text.split("#")[1].strip(): i for i, text in enumerate(PLACED.split("\n"), 1) if "#" in text}
        wanted = {"augment": f"train ü.py:{number['hot']} in hot", "entered": f"train ü.py:{number['enter']} in <module>"}
        for place, python, environment in self.places():
            done = self.record([python, "train ü.py"], "lines", PYTHONPATH=PACKAGE, **environment)
            self.assertEqual((done.returncode, done.stdout), (0, "7\n"), (place, done.stderr))
            spans = self.events()
            self.assertEqual(sum(name == "Net" and arguments.get("layer") == "Net" for _, name, arguments, _ in spans), 1, place)
            said = {name: arguments.get("line") for _, name, arguments, _ in spans if name in wanted}
            self.assertEqual(said, wanted, place)
            stacks = {name for row, name, _, _ in spans if row.startswith("samples of MainThread")}
            self.assertTrue(any(f"hot (train ü.py:{number['hot']})" in stack for stack in stacks), (place, stacks))

    def places(self):
        """(place, its Python, its environment). Each has a torch among its packages."""
        base = os.path.realpath("/usr/bin/python3")
        name = os.path.basename(base)
        if not re.fullmatch(r"python3\.[0-9]+", name) or not shutil.which("strip"):
            self.skipTest("there is no Python of Debian to move, or no binutils")
        moved, env = os.path.join(self.folder, "moved ü", "cpython"), os.path.join(self.folder, "envs", "with library")

        def prefix(folder):
            os.makedirs(os.path.join(folder, "bin"))
            left_out = shutil.ignore_patterns("test", "idlelib", "__pycache__", "dist-packages", "config-*", "sitecustomize.py")
            library = os.path.join(folder, "lib", name)
            shutil.copytree(os.path.join("/usr/lib", name), library, copy_function=link_or_copy, ignore=left_out)
            return os.path.join(folder, "bin", name)

        def with_torch(python):
            asked = [python, "-c", "import site; print(site.getsitepackages()[0])"]
            packages = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
            for path, text in STAND_IN_TORCH.items():
                self.write(os.path.join(packages, path), text)
            return python

        def virtual(folder, *flags):
            folder = os.path.join(self.folder, folder)
            subprocess.run([uv, "-m", "venv", "--without-pip", *flags, folder], check=True, capture_output=True)
            return with_torch(os.path.join(folder, "bin", "python"))

        def stripped(source, target):
            shutil.copy2(source, target)
            subprocess.run(["strip", "--strip-all", target], check=True)
            return target

        uv = stripped(base, prefix(moved))
        yield "uv: a virtual environment with links to a moved Python", virtual(".venv"), {}
        yield "a virtual environment with a copy", virtual("copied", "--copies"), {}
        yield "conda: the moved Python itself", with_torch(uv), {"CONDA_PREFIX": moved}
        yield "PYTHONHOME", base, {"PYTHONHOME": moved}
        shared = glob.glob(f"/usr/lib/*/lib{name}.so.1.0")
        if shared and shutil.which("cc"):
            python = prefix(env)
            library = stripped(shared[0], os.path.join(env, "lib", f"lib{name}.so.1.0"))
            main = self.write("main.c", "int Py_BytesMain(int, char**); int main(int n, char** a) { return Py_BytesMain(n, a); }\n")
            subprocess.run(["cc", main, "-o", python, library, "-Wl,-rpath,$ORIGIN/../lib"], check=True)
            yield "conda: a shared libpython beside it", with_torch(python), {"CONDA_PREFIX": env}

    def embed(self, text):
        """Compiles a C program with Python inside."""
        config = shutil.which("/usr/bin/python3-config")
        if not config or not shutil.which("cc"):
            self.skipTest("there is no C compiler with libpython (Debian: python3-dev)")
        source = self.write("embed.c", "#include <Python.h>\nint main(void) {\n" + text + "  return Py_FinalizeEx();\n}\n")
        flags = subprocess.run([config, "--embed", "--includes", "--ldflags"], capture_output=True, text=True).stdout.split()
        made = subprocess.run(["cc", source, "-o", os.path.join(self.folder, "embed"), *flags], capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)

    def test_a_program_with_python_inside_is_recorded(self):
        self.write("spin.py", "import time, warpsight; warpsight.log(begins=1)\ndef hot():\n    time.sleep(1.5)\nhot()\n")
        self.embed('  Py_Initialize();\n  PyRun_SimpleFile(fopen("spin.py", "r"), "spin.py");\n')
        self.assertEqual(self.record(["./embed"], PYTHONPATH=PACKAGE).returncode, 0)
        stacks = {name for row, name, _, _ in self.events() if row.startswith("samples of MainThread")}
        self.assertTrue(any("hot (spin.py:3)" in stack for stack in stacks), stacks)

    def test_a_frozen_program(self):
        """Like a program of PyInstaller: isolated, its modules are compiled and lie in an archive, its sources are not there."""
        self.embed(FREEZE)
        text = "import os, turtle, warpsight\ndef hot():\n    turtle.sleep(warpsight.range('augment'))\n"
        attached = text + "warpsight.attach('r.wsrun', program=os.environ['RECORDER'])\nhot()\nprint('end')\n"
        loaded = "import ctypes\n" + text + "ctypes.CDLL(os.environ['WARPSIGHT_RECORD_LIBRARY']).InitializeInjection()\nhot()\nprint('end')\n"
        self.freeze("hot.py", attached)
        done = self.run_plain(["./embed"], RECORDER=CLI)
        self.assertEqual((done.returncode, done.stdout), (0, "end\n"), done.stderr)
        self.assertEqual({arguments.get("line") for _, name, arguments, _ in self.events() if name == "augment"}, {"hot.py:3 in hot"})
        stacks = {name for row, name, _, _ in self.events() if row.startswith("samples of MainThread")}
        self.assertTrue(any("hot (hot.py:3)" in stack for stack in stacks), stacks)
        self.freeze("hot.py", loaded)
        done = self.record(["./embed"])
        self.assertEqual((done.returncode, done.stdout), (0, "end\n"), done.stderr)
        self.assertEqual(done.stderr.count("this Python ignores PYTHONPATH, as in a program made by PyInstaller"), 1, done.stderr)

    def freeze(self, name, text):
        """Writes an archive of compiled modules: this one, our package, and one of a library."""
        sources = {name: self.write(name, text), "warpsight/__init__.py": os.path.join(PACKAGE, "warpsight", "__init__.py")}
        sources["turtle.py"] = self.write("turtle.py", "import time\ndef sleep(one):\n    with one: time.sleep(1.5)\n")  # has the name of a module of Python
        compiles = "import py_compile, sys; py_compile.compile(sys.argv[1], cfile=sys.argv[2], dfile=sys.argv[3], doraise=True)"
        compiled = os.path.join(self.folder, "compiled.pyc")
        with zipfile.ZipFile(os.path.join(self.folder, "app.zip"), "w") as archive:
            for inside, source in sources.items():
                subprocess.run(["/usr/bin/python3", "-c", compiles, source, compiled, inside], check=True)
                archive.write(compiled, inside + "c")
        os.remove(sources[name])

    def test_a_python_without_ctypes_reports_it(self):
        self.write("broken/ctypes.py", "raise ImportError('no libffi')\n")
        text = (
            "import os, sys, time\nsys.path.remove(os.path.abspath('broken'))\nimport ctypes\n"
            "ctypes.CDLL(os.environ['WARPSIGHT_RECORD_LIBRARY']).InitializeInjection()\ntime.sleep(0.3)\nprint('end')\n"
        )
        done = self.record([PYTHON, self.write("p.py", text)], PYTHONPATH=os.path.join(self.folder, "broken"))
        self.assertEqual((done.returncode, done.stdout), (0, "end\n"), done.stderr)
        self.assertEqual(done.stderr.count("our hook did not start in this Python: no libffi."), 1, done.stderr)

    def test_a_python_that_does_not_load_our_hook_is_named(self):
        # Like a program made by PyInstaller: CUDA loads our library, but nothing of Python's paths is ours.
        text = (
            "import ctypes, os, time\nlibrary = ctypes.CDLL(os.environ['WARPSIGHT_RECORD_LIBRARY'])\n"
            "library.InitializeInjection()\ntime.sleep(0.3)\nprint('end')\n"
        )
        path = self.write("frozen.py", text)
        for flags, named in ((["-I"], True), ([], False)):
            done = self.record([PYTHON, *flags, path])
            self.assertEqual((done.returncode, done.stdout), (0, "end\n"), done.stderr)
            self.assertEqual("this Python ignores PYTHONPATH" in done.stderr, named, done.stderr)

    def test_a_program_that_ends_while_its_recording_begins(self):
        slow = self.write("writer.sh", f"#!/bin/sh\nsleep 0.3\nexec \"$(cat '{self.folder}/writer.txt')\" \"$@\"\n")
        os.chmod(slow, 0o755)
        text = (
            "import ctypes, os, sys, threading, time\nopen('writer.txt', 'w').write(os.environ['WARPSIGHT_RECORD_WRITER'])\n"
            f"os.putenv('WARPSIGHT_RECORD_WRITER', {slow!r})\nlibrary = ctypes.CDLL(os.environ['WARPSIGHT_RECORD_LIBRARY'])\n"
            "threading.Thread(target=library.InitializeInjection, daemon=True).start()\ntime.sleep(0.05)\nsys.exit(3)\n"
        )
        done = self.record([PYTHON, "-I", self.write("short.py", text)])
        self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)
        self.assertNotIn("was killed", done.stderr)
        self.assertIn("recorded in r.wsrun", done.stderr)

    def test_frames_that_cannot_be_read_are_said_once(self):
        # An interpreter of an unknown version: its frames are elsewhere.
        text = "import sys\nsys.version_info = (3, 99, 0)\nimport time, warpsight\nwarpsight.log(loss=1.0)\nend = time.time() + 0.5\nwhile time.time() < end: pass\nprint('end')\n"
        path = self.write("unknown.py", text.replace("(3, 99, 0)", "type('Unknown', (), {'__getitem__': lambda s, i: (3, 10 if sys.hexversion >= 0x30b0000 else 12)[i]})()"))
        done = self.record([PYTHON, path], "lines", PYTHONPATH=PACKAGE)
        self.assertEqual((done.returncode, done.stdout), (0, "end\n"), done.stderr)
        self.assertEqual(done.stderr.count("No source lines and no stacks"), 1, done.stderr)

    def test_a_free_threaded_python_reports_what_is_left_out(self):
        # A stand-in: only its configuration belongs to a free-threaded one.
        text = (
            "import sysconfig\nknown = sysconfig.get_config_var\n"
            "sysconfig.get_config_var = lambda name: 1 if name == 'Py_GIL_DISABLED' else known(name)\n"
            "import threading, time, warpsight\n"
            "def work():\n    for i in range(200):\n        with warpsight.range('augment'): warpsight.log(loss=1.0)\n"
            "t = [threading.Thread(target=work) for _ in range(4)]\nfor x in t: x.start()\nfor x in t: x.join()\n"
            "time.sleep(0.4)\nprint('end')\n"
        )
        done = self.record([PYTHON, self.write("free.py", text)], "lines", PYTHONPATH=PACKAGE)
        self.assertEqual((done.returncode, done.stdout), (0, "end\n"), done.stderr)
        self.assertEqual(done.stderr.count("the frames of a free-threaded Python are not read"), 1, done.stderr)
        self.assertEqual(self.ranges(), {("", "augment", ""): 800})
        self.assertFalse([row for row, *_ in self.events() if row.startswith("samples")])

    def test_a_launcher_leaves_no_file_beside_its_program(self):
        # Does what accelerate launch does: it imports torch itself, then starts the program.
        write = self.write("steps.py", "import warpsight\nfor i in range(4):\n    warpsight.log(loss=1.0 / (i + 1))\n    warpsight.step()\n")
        launcher = self.write("launch.py", "import subprocess, sys, time\ntime.sleep(0.5)\nsys.exit(subprocess.run([sys.executable, sys.argv[1]]).returncode)\n")
        done = self.record(["python3", launcher, write], PYTHONPATH=PACKAGE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".wsrun")], ["r.wsrun"])
        self.assertIn("3 steps", done.stderr)

    def test_a_full_disk_ends_the_recording_and_not_the_program(self):
        text = (
            "import random, resource, sys, time, warpsight\nwarpsight.log(begins=1)\ntime.sleep(0.4)\n"
            "if 'own' in sys.argv: resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))\n"
            "for i in range(60_000): warpsight.log(x=random.random())\n"
            "time.sleep(0.6)\nprint('end')\n"
        )
        path = self.write("full.py", text)
        done = self.record(["sh", "-c", "ulimit -f 800; exec \"$0\" \"$1\"", PYTHON, path], PYTHONPATH=PACKAGE)
        self.assertEqual((done.returncode, done.stdout), (0, "end\n"), done.stderr)
        self.assertEqual(done.stderr.count("nothing more is recorded"), 1, done.stderr)
        self.assertIn("its steps were not counted", done.stderr)
        self.assertNotIn("no steps were found", done.stderr)
        self.assertEqual(self.run_plain([CLI, "stats", "r.wsrun"]).returncode, 0, "what was written before is there")
        done = self.record([PYTHON, path, "own"], PYTHONPATH=PACKAGE)
        self.assertEqual((done.returncode, done.stdout), (0, "end\n"), done.stderr)
        self.assertNotIn("nothing more is recorded", done.stderr, "a limit that the program sets is not for its recording")

    def test_a_message_is_no_part_of_a_file_of_the_program(self):
        """Files of the program have the numbers of its closed standard streams when its writer is killed. It has no stderr any more."""
        text = (
            "import os, signal, warpsight\nwarpsight.log(begins=1)\n"
            "writer = int(open('.r.wsrun.owner').read().split()[1])\nos.closerange(0, 64)\n"
            "files = [os.open(f'own{i}', os.O_RDWR | os.O_CREAT) for i in range(3)]\nassert files == [0, 1, 2]\n"
            "for file in files: os.write(file, b'mine')\nos.kill(writer, signal.SIGKILL)\n"
        )
        done = self.record([PYTHON, self.write("closes.py", text)], PYTHONPATH=PACKAGE)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("own0", "own1", "own2"):
            with open(os.path.join(self.folder, name)) as file:
                self.assertEqual(file.read(), "mine", name)
        self.assertNotIn("nothing more is recorded", done.stderr)

    def test_a_recorded_program_keeps_most_of_its_address_space(self):
        path = self.write("space.py", "import warpsight\nwarpsight.log(begins=1)\nprint([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmSize')][0])\n")
        alone = int(self.run_plain([PYTHON, path], PYTHONPATH=PACKAGE).stdout)
        done = self.record([PYTHON, path], level="lines", PYTHONPATH=PACKAGE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(int(done.stdout) - alone, 125_000, "KiB: the ring of 16 MiB, the library, our stacks, and a heap of 64 MiB of the one Python thread")
        # Where address space is limited, the C library makes no such heap.
        os.remove(os.path.join(self.folder, "r.wsrun"))
        done = self.record(["sh", "-c", f"ulimit -v {alone + 60_000}; exec \"$0\" \"$1\"", PYTHON, path], level="lines", PYTHONPATH=PACKAGE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(int(done.stdout) - alone, 60_000)
        with sqlite3.connect(os.path.join(self.folder, "r.wsrun")) as file:
            (status,) = file.execute("SELECT value FROM meta WHERE key = 'status'").fetchone()
        self.assertIn(status, ("finished", "stopped"))

    def test_too_little_address_space_is_said_and_changes_nothing(self):
        path = self.write("space.py", "import warpsight\nwarpsight.log(begins=1)\nprint([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmSize')][0])\n")
        alone = int(self.run_plain([PYTHON, path], PYTHONPATH=PACKAGE).stdout)
        said = set()
        for more in range(6_000, 44_000, 4_000):
            done = self.record(["sh", "-c", f"ulimit -v {alone + more}; exec \"$0\" \"$1\"", PYTHON, path], level="lines", PYTHONPATH=PACKAGE)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLess(int(done.stdout) - alone, more)
            said |= set(re.findall("nothing is recorded: (.*)", done.stderr))
            if os.path.exists(os.path.join(self.folder, "r.wsrun")):
                os.remove(os.path.join(self.folder, "r.wsrun"))
        self.assertTrue(said)
        for sentence in said:
            self.assertRegex(sentence, r"^no memory is left|^no further thread|^shared memory cannot be mapped|cannot be started: ")

    def test_without_write_access_the_program_is_not_started(self):
        path = self.write("program.py", "open('ran', 'w')")
        record = [CLI, "record", "--no-live", "--run", "/proc/r.wsrun", "--", PYTHON, path]
        done = self.run_plain(record)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("/proc/r.wsrun: cannot be written", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "ran")))

    @needs_torch
    def test_a_hundred_thousand_modules(self):
        done = self.record([TORCH, self.write("many.py", MANY_MODULES)])
        self.assertEqual((done.returncode, done.stdout), (0, "1.0\n"), done.stderr)
        with sqlite3.connect(os.path.join(self.folder, "r.wsrun")) as file:
            ((count,),) = file.execute("SELECT sum(count) FROM blocks JOIN tracks ON track = tracks.id WHERE name LIKE '% ranges'")
        self.assertEqual(count, 100_002, "each module, the model around them, and .item()")


DDP = """
import os, time, torch, torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("meeting"), rank=int(os.environ["RANK"]), world_size=2)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(60):
    if dist.get_rank() == 1 and step % 5 == 3:
        time.sleep(0.1)
    optimizer.zero_grad()
    model(torch.ones(8, 64)).sum().backward()
    optimizer.step()
dist.destroy_process_group()
"""
SPAWNED = """
import os, torch, torch.distributed as dist
def work(rank):
    dist.init_process_group("gloo", init_method="file://" + os.path.abspath("meeting"), rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(30):
        optimizer.zero_grad()
        model(torch.ones(8, 64)).sum().backward()
        optimizer.step()
    dist.destroy_process_group()
if __name__ == "__main__":
    torch.multiprocessing.spawn(work, nprocs=2)
"""
LAUNCH = """
import os, subprocess, sys
world = {"WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
ranks = [subprocess.Popen([sys.executable, "ddp.py"], env={**os.environ, **world, "RANK": str(rank)}) for rank in range(2)]
sys.exit(max(rank.wait() for rank in ranks))
"""


# A launcher as torchrun: it starts all ranks anew if one fails, and passes SIGTERM on.
RESTARTS = """
import os, signal, subprocess, sys
ranks = []
def start(attempt):
    world = {"WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": str(attempt)}
    ranks[:] = [subprocess.Popen([sys.executable, *sys.argv[2:]], env={**os.environ, **world, "RANK": str(rank)}) for rank in range(2)]
def terminate(*_):
    for rank in ranks:
        rank.terminate()
signal.signal(signal.SIGTERM, terminate)
for attempt in range(int(sys.argv[1])):
    start(attempt)
    if ranks[1].wait() == 0:
        break
    ranks[0].terminate()
    ranks[0].wait()
ranks[0].wait()
"""
COUNTING = """
import glob, os, signal, sqlite3, sys, time, warpsight
def all_kept():  # what both ranks have done is in their files
    def kept(path):
        try:
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as file:
                return file.execute("SELECT count(*) FROM blocks").fetchone()[0] > 0
        except sqlite3.Error:
            return False
    return sum(map(kept, glob.glob("*.wsrun"))) >= 2
attempt, rank = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]
for step in range(int(sys.argv[1])):
    warpsight.log(loss=1 / (step + 1))
    warpsight.step()
    time.sleep(0.02)
    if step == 20:
        open("going." + rank, "w").close()
    if sys.argv[2:] == ["dies"] and attempt == "0" and rank == "1" and step == 40:
        while not os.path.exists("going.0"):
            time.sleep(0.02)
        while not all_kept():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)
"""


class Launched(Recorded):
    def runs(self):
        return sorted(name for name in os.listdir(self.folder) if name.endswith(".wsrun"))

    def ranks_of(self, run):
        return [one["rank"] for one in json.loads(self.run_plain([CLI, "stats", run, "--by", "rank", "--json"]).stdout)["ranks"]]

    def test_each_attempt_of_a_launcher_is_one_run(self):
        program, launcher = self.write("counting.py", COUNTING), self.write("restarts.py", RESTARTS)
        done = self.record([PYTHON, launcher, "2", program, "150", "dies"], PYTHONPATH=PACKAGE)
        self.assertEqual(done.returncode, 0, done.stderr)
        runs = self.runs()
        self.assertEqual(len(runs), 2, done.stderr)
        self.assertEqual(runs[1], "r.wsrun")
        self.assertIn("Each attempt is a run of its own", done.stderr)
        self.assertIn("restart 1", self.run_plain([CLI, "stats", "r.wsrun"]).stdout)
        self.assertEqual([self.ranks_of(run) for run in runs], [[0, 1], [0, 1]])

    def test_sigterm_to_the_recorder_alone_ends_the_program_and_joins_its_ranks(self):
        program, launcher = self.write("counting.py", COUNTING), self.write("restarts.py", RESTARTS)
        command = [CLI, "record", "--no-live", "--run", "r.wsrun", "--", PYTHON, launcher, "1", program, "100000"]
        environment = {**os.environ, "PYTHONPATH": PACKAGE}
        with subprocess.Popen(command, cwd=self.folder, env=environment, stderr=subprocess.PIPE, text=True) as recorder:
            begin = time.monotonic()
            while time.monotonic() - begin < 60 and not all(os.path.exists(os.path.join(self.folder, f"going.{r}")) for r in range(2)):
                time.sleep(0.05)
            time.sleep(1)
            recorder.terminate()
            _, said = recorder.communicate(timeout=60)
        self.assertEqual(self.runs(), ["r.wsrun"], said)
        self.assertEqual(self.ranks_of("r.wsrun"), [0, 1], said)


@needs_torch
class Ranks(Recorded):
    def test_the_ranks_of_a_program_are_one_run_that_names_the_late_one(self):
        self.write("ddp.py", DDP)
        done = self.record([TORCH, self.write("launch.py", LAUNCH)], level="ops")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".wsrun")], ["r.wsrun"])
        stats = self.run_plain([CLI, "stats", "r.wsrun", "--by", "rank", "--json"])
        report = json.loads(stats.stdout)
        self.assertEqual(len(report["ranks"]), 2)
        self.assertEqual(report["straggler"]["rank"], 1, stats.stdout)
        # Twelve delays of 100 ms. On a busy machine the other rank may be late in some of these steps as well.
        late = sorted((us for us in report["ranks"][1]["late_us_by_step"] if us is not None), reverse=True)
        self.assertGreater(late[5], 0.95 * 100e3, stats.stdout)

    def test_files_of_two_hosts_with_several_ranks_each_are_joined(self):
        """Each host records its own ranks. What it says leads to one run of all."""
        program = self.write("steps.py", "import torch, time, warpsight\nfor i in range(5):\n    time.sleep(0.002)\n    warpsight.step()\n")
        for host in 0, 1:
            ranks = "export WORLD_SIZE=4; for r in {0} {1}; do RANK=$r {2} & done; wait".format(2 * host, 2 * host + 1, f"{TORCH} '{program}'")
            done = self.run_plain([CLI, "record", "--no-live", "--run", f"h{host}.wsrun", "--", "sh", "-c", ranks], PYTHONPATH=PACKAGE)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"It has ranks {2 * host}, {2 * host + 1} of 4. If other hosts ran the missing ranks", done.stdout + done.stderr)
        joined = self.run_plain([CLI, "convert", "h0.wsrun", "h1.wsrun", "all.wsrun"])
        self.assertEqual(joined.returncode, 0, joined.stderr)
        with_ranks = json.loads(self.run_plain([CLI, "stats", "all.wsrun", "--by", "rank", "--json"]).stdout)
        self.assertEqual([one["rank"] for one in with_ranks["ranks"]], [0, 1, 2, 3])
        self.assertNotIn("There is no file", str(with_ranks["notes"]))

    def test_processes_that_make_themselves_ranks_are_one_run(self):
        """No launcher set RANK: torch.multiprocessing starts them, and each says in Python which rank it is."""
        self.write("spawned.py", SPAWNED)
        done = self.record([TORCH, "spawned.py"], level="modules")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".wsrun")], ["r.wsrun"])
        stats = self.run_plain([CLI, "stats", "r.wsrun", "--by", "rank", "--json"])
        self.assertEqual([one["rank"] for one in json.loads(stats.stdout)["ranks"]], [0, 1], stats.stdout)


def _unharmed(name, module):
    def test(self):
        self.check(name, module)

    return needs_torch(test) if module == "torch" else test


for _name in PROGRAMS:
    setattr(Unharmed, "test_" + _name.replace(" ", "_"), _unharmed(_name, "sys"))
for _name in ("exception", "forks a pool", "threads", "leaves at once", "crashes", "spawns"):
    setattr(Unharmed, "test_torch_" + _name.replace(" ", "_"), _unharmed(_name, "torch"))

def tests_of(suite):
    for one in suite:
        yield from tests_of(one) if isinstance(one, unittest.TestSuite) else [one]


def run_side_by_side(names):
    """Tests wait for programs most of the time. What is said of one is said at its end, as unittest says it."""
    loader = unittest.defaultTestLoader
    module = sys.modules["__main__"]
    suite = loader.loadTestsFromNames(names, module) if names else loader.loadTestsFromModule(module)
    shown, failed, skipped = threading.Lock(), [], []

    def run(test):
        result = unittest.TestResult()
        test.run(result)
        with shown:
            for one, text in result.failures + result.errors:
                failed.append(one)
                print(f"FAIL: {one}\n{text}", flush=True)
            skipped.extend(result.skipped)

    tests = list(tests_of(suite))
    with ThreadPoolExecutor(2 * max(2, os.cpu_count() or 2)) as several:
        list(several.map(run, tests))
    for reason in sorted({reason for _, reason in skipped}):
        print(f"skipped: {reason}")
    print(f"{len(tests) - len(failed) - len(skipped)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    if not CLI:
        sys.exit(__doc__)
    sys.exit(run_side_by_side(sys.argv[2:]))
