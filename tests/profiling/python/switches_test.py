#!/usr/bin/env python3
"""The switches that `warpsight prove` turns on in PyTorch programs: what they change, and that a proof says both times.

usage: switches_test.py WARPSIGHT-CLI [TEST…]    A small stand-in has the parts of PyTorch that switches change; one test
takes the real one and is skipped with a sentence where no python3 has it."""

import collections
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

CLI = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def loaded_switches():
    path = os.path.join(ROOT, "profiling", "python", "hook", "warpsight_hook", "switches.py")
    spec = importlib.util.spec_from_file_location("switches", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Facts:
    """Stands in for the recorder."""

    def __init__(self):
        self.facts, self.recorder = {}, self

    def begin(self):
        return True

    def fact(self, key, value):
        self.facts[key] = value


def torch_stand_in():
    class DataLoader:
        def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0,
                     collate_fn=None, pin_memory=False):
            self.num_workers, self.pin_memory = num_workers, pin_memory

    class Tensor:
        def __init__(self, cuda=False):
            self.is_cuda, self.moved = cuda, None

        def to(self, *arguments, **named):
            self.moved = named
            return self

        cuda = to

    class Optimizer:
        def zero_grad(self, set_to_none=True):
            self.dropped = set_to_none

    class SGD(Optimizer):
        def __init__(self, params, lr=0.1, foreach=None, fused=None):
            self.params, self.fused, self.foreach = list(params), fused, foreach

    class Module:
        _compiled_call_impl = None

        def parameters(self):
            return iter([Tensor()])

        def __call__(self, x):
            return (self._compiled_call_impl or self._call_impl)(x)

        def _call_impl(self, x):
            return x + 1

        def compile(self):
            raise AssertionError("compiles nothing of PyTorch's own modules")

        def zero_grad(self, set_to_none=True):
            self.dropped = set_to_none

    stats = collections.Counter()

    def compiled(function, mode=None):
        def call(x):
            stats["unique_graphs"] += 1
            return function(x) + (0.5 if mode else 0.25)

        return call

    settings = types.SimpleNamespace
    return settings(
        compile=compiled, _dynamo=settings(utils=settings(counters={"stats": stats})),
        utils=settings(data=settings(DataLoader=DataLoader)), Tensor=Tensor, nn=settings(Module=Module),
        optim=settings(Optimizer=Optimizer, SGD=SGD), is_grad_enabled=lambda: True,
        backends=settings(cuda=settings(matmul=settings(allow_tf32=False)), cudnn=settings(allow_tf32=False)))


class Switches(unittest.TestCase):
    def turn(self, wanted):
        self.torch, self.program = torch_stand_in(), Facts()
        switches = loaded_switches()
        os.environ[switches.VARIABLE] = wanted
        self.addCleanup(os.environ.pop, switches.VARIABLE, None)
        switches.install(self.program, self.torch)
        return self.torch

    def said(self):
        return self.program.facts.get("program_switched", "")

    def test_without_a_switch_nothing_changes(self):
        torch = self.turn("")
        self.assertFalse(torch.utils.data.DataLoader([]).pin_memory)
        self.assertEqual(self.program.facts, {})

    def test_loaders_are_pinned_and_get_workers(self):
        torch = self.turn("pinned; workers=3")
        by_name = torch.utils.data.DataLoader([], batch_size=4, num_workers=0)
        by_place = torch.utils.data.DataLoader([], 4, None, None, None, 0, None, False)
        for loader in (by_name, by_place):
            self.assertEqual((loader.pin_memory, loader.num_workers), (True, 3))
        self.assertEqual(self.said(), "workers: data loaders have 3 workers; pinned: data loaders copy to pinned memory")

    def test_a_switch_that_finds_nothing_reports_nothing(self):
        self.turn("pinned")
        self.assertEqual(self.said(), "")

    def test_copies_to_the_gpu_do_not_wait_unless_the_program_asks(self):
        torch = self.turn("non-blocking")
        tensor = torch.Tensor()
        self.assertEqual(tensor.to("cuda").moved, {"non_blocking": True})
        self.assertEqual(tensor.to("cuda", non_blocking=False).moved, {"non_blocking": False})
        self.assertEqual(tensor.to("cuda", True).moved, {})
        self.assertEqual(torch.Tensor(cuda=True).to("cpu").moved, {}, "the host would read it too early")

    def test_gradients_are_dropped(self):
        torch = self.turn("set-to-none")
        for one in (torch.optim.SGD([]), torch.nn.Module()):
            one.zero_grad(set_to_none=False)
            self.assertTrue(one.dropped)

    def test_optimizers_on_the_gpu_are_fused(self):
        torch = self.turn("fused-optimizer")
        gpu = torch.optim.SGD((one for one in [torch.Tensor(cuda=True)]), foreach=True)
        self.assertEqual((gpu.fused, gpu.foreach, len(gpu.params)), (True, None, 1))
        self.assertTrue(torch.optim.SGD([{"params": [torch.Tensor(cuda=True)]}]).fused)
        self.assertIsNone(torch.optim.SGD([torch.Tensor()]).fused)

    def test_products_may_use_tf32(self):
        torch = self.turn("tf32")
        self.assertTrue(torch.backends.cuda.matmul.allow_tf32 and torch.backends.cudnn.allow_tf32)

    def test_the_model_is_compiled_once(self):
        for wanted, more in (("compile", 0.25), ("graphs", 0.5)):
            torch = self.turn(wanted)
            model, other = torch.nn.Module(), torch.nn.Module()
            self.assertEqual([model(1), model(1), other(1)], [2 + more, 2 + more, 2])
            self.assertIn("Module is compiled", self.said())

    def test_a_model_of_which_nothing_is_compiled_is_not_switched(self):
        torch = self.turn("graphs")
        torch.compile = lambda function, mode: function
        self.assertEqual(torch.nn.Module()(1), 2)
        self.assertIn("nothing to compile in Module", self.program.facts["program_not_switched"])
        self.assertNotIn("program_switched", self.program.facts)

    def test_a_pytorch_without_it_reports_it(self):
        torch = torch_stand_in()
        del torch.nn.Module.compile
        switches, program = loaded_switches(), Facts()
        os.environ[switches.VARIABLE] = "graphs; tf32"
        self.addCleanup(os.environ.pop, switches.VARIABLE, None)
        switches.install(program, torch)
        self.assertIn("graphs: this PyTorch cannot compile", program.facts["program_not_switched"])
        self.assertTrue(torch.backends.cudnn.allow_tf32, "the other switches are turned all the same")


LOADER = """
import sys, time, torch
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 24
    def __getitem__(self, i):
        time.sleep(0.02)
        return torch.ones(4)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for batch in torch.utils.data.DataLoader(Slow(), batch_size=1):
    optimizer.zero_grad()
    net(batch).sum().backward()
    optimizer.step()
    time.sleep(0.01)
"""


def python_with_torch():
    for python in ("python3", "/usr/bin/python3"):
        if shutil.which(python) and subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    return None


class Proofs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="warpsight-switches-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def prove(self, *arguments):
        environment = {**os.environ, "XDG_DATA_HOME": self.folder, "OMP_NUM_THREADS": "1"}
        return subprocess.run([CLI, "prove", *arguments], cwd=self.folder, capture_output=True, text=True, timeout=300, env=environment)

    def test_wrong_questions_get_a_sentence(self):
        for arguments, status, sentence in (
            (("--switch", "faster", "--", "true"), 1, '"faster" is no switch'),
            (("--switch", "tf32", "--", "true"), 1, "No edit says what tf32 does"),
            (("--", "python3", "-c", "raise SystemExit(3)"), 1, "ended with status 3"),
            (("--switch", "pinned", "--", "python3", "-c", "raise SystemExit(3)"), 1, "ended with status 3"),
        ):
            with self.subTest(sentence):
                done = self.prove(*arguments)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(sentence, done.stderr)

    @unittest.skipUnless(python_with_torch(), "no python3 here has PyTorch (Debian: python3-torch)")
    def test_workers_take_the_wait_for_data_away_as_predicted(self):
        with open(os.path.join(self.folder, "train.py"), "w") as file:
            file.write(LOADER)
        program = [python_with_torch(), "train.py"]
        done = self.prove("--switch", "workers=4", "--rounds", "1", "--json", "--", *program)
        self.assertEqual(done.returncode, 0, done.stderr)
        proof = json.loads(done.stdout)
        self.assertEqual((proof["edits"], proof["changes"]), ("loader ready", "workers=4"))
        self.assertIn("torch", proof["versions"])
        self.assertGreater(proof["before"]["us"], 30_000)
        self.assertLess(proof["predicted"]["us"], 0.7 * proof["before"]["us"])
        self.assertLess(proof["measured"]["us"], 0.9 * proof["before"]["us"])
        found = self.prove("--rounds", "1", "--json", "--", *program)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(json.loads(found.stdout)["changes"], "workers", "pinned and non-blocking have no copies here")
        self.assertIn("predicted to help: workers", found.stderr)
        refused = self.prove("--switch", "pinned", "--edits", "SGD.step /2", "--rounds", "1", "--", program[0], "-c", "import torch; x = torch.optim.SGD([torch.ones(1)], lr=1)\nfor i in range(9): x.step()")
        self.assertIn("has nothing that pinned changes", refused.stderr)


if __name__ == "__main__":
    del sys.argv[1:2]
    unittest.main(verbosity=2)
