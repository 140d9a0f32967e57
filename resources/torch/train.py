#!/usr/bin/env python3
"""Trains the network of a Warpsight run in PyTorch: the same rows in the same order from the same first weights.

    train.py --data FOLDER --out FOLDER [--compile]

FOLDER is what `warpsight torch` writes: run.json (the choices), data.json (the shapes) and the numbers as raw
little-endian arrays. Writes metrics.csv and summary.json, with the columns and keys of Warpsight's own.
"""
import argparse
import contextlib
import json
import math
import os
import pathlib
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("PyTorch is not installed for this python3: install it with pip install torch, or pick another python3.")



def array(folder, name, dtype, *shape):
    size = math.prod(shape)
    if size == 0:
        return torch.empty(shape, dtype=dtype)
    data = bytearray((folder / name).read_bytes())
    return torch.frombuffer(data, dtype=dtype).reshape(shape)


def activation(name):
    kinds = {"relu": torch.nn.ReLU, "sigmoid": torch.nn.Sigmoid, "tanh": torch.nn.Tanh,
             "gelu": lambda: torch.nn.GELU(approximate="tanh"), "none": torch.nn.Identity}
    return kinds[name]()


def linear(weight, bias=None):
    """Weights are (in, out) in start.f32 and (out, in) in PyTorch."""
    made = torch.nn.Linear(*weight.shape, bias=bias is not None)
    made.weight = torch.nn.Parameter(weight.t().contiguous())
    if bias is not None:
        made.bias = torch.nn.Parameter(bias.reshape(-1).clone())
    return made


def convolution(layer, weight, bias=None):
    """Weights are (channels, rows, columns, channels of the input) in start.f32; PyTorch has the input's channels second."""
    high, wide = layer["window"]
    weight = weight.reshape(len(weight), high, wide, -1).permute(0, 3, 1, 2).contiguous()
    made = torch.nn.Conv2d(weight.shape[1], len(weight), (high, wide), layer["stride"], layer["padding"], bias=bias is not None)
    made.weight = torch.nn.Parameter(weight)
    if bias is not None:
        made.bias = torch.nn.Parameter(bias.reshape(-1).clone())
    return made


def norm(made, gain, shift):
    made.weight = torch.nn.Parameter(gain.reshape(-1).clone())
    made.bias = torch.nn.Parameter(shift.reshape(-1).clone())
    return made


class Embedding(torch.nn.Module):
    def __init__(self, table, positions=None):
        super().__init__()
        self.table = torch.nn.Parameter(table.clone())
        self.positions = torch.nn.Parameter(positions.clone()) if positions is not None else None

    def forward(self, x):
        h = torch.nn.functional.embedding(x.long(), self.table)
        return h if self.positions is None else h + self.positions


class Attention(torch.nn.Module):
    def __init__(self, heads, parameters):
        super().__init__()
        self.heads = heads
        half = len(parameters) // 2
        self.qkv, self.project = linear(*parameters[:half]), linear(*parameters[half:])

    def forward(self, x):
        n, time, width = x.shape
        q, k, v = (part.reshape(n, time, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        if hasattr(torch.nn.functional, "scaled_dot_product_attention"):
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:  # before 2.0
            hidden = torch.ones(time, time, dtype=torch.bool, device=x.device).triu(1)
            scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(hidden, -math.inf)
            out = scores.softmax(-1) @ v
        return self.project(out.transpose(1, 2).reshape(n, time, width))


class Flatten(torch.nn.Module):
    """A picture's values in the order row, column, channel."""

    def forward(self, x):
        return x.permute(0, 2, 3, 1).flatten(1)


class Pictures(torch.nn.Module):
    def __init__(self, high, wide, channels):
        super().__init__()
        self.shape = (high, wide, channels)

    def forward(self, x):
        return x.view(-1, *self.shape).permute(0, 3, 1, 2)


class Network(torch.nn.Module):
    """The layers of data.json, one after the other. A branch keeps its input, and the join behind it adds that."""

    def __init__(self, layers, parameters):
        super().__init__()
        self.kinds, self.parts = [], torch.nn.ModuleList()
        picture = False
        for layer in layers:
            own = [parameters[i] for i in layer["parameters"]]
            if layer["kind"] in ("conv", "maxpool", "avgpool", "batchnorm") and layer["picture"][0] and not picture:
                self.add("", Pictures(*layer["picture"]))
                picture = True
            if layer["kind"] == "linear" and picture:
                self.add("", Flatten())
                picture = False
            self.add(layer["kind"], self.made(layer, own, picture))

    def add(self, kind, part):
        self.kinds.append(kind)
        self.parts.append(part)

    @staticmethod
    def made(layer, own, picture):
        kind, window, steps = layer["kind"], tuple(layer["window"]), (layer["stride"], layer["padding"])
        if kind == "linear":
            return linear(*own)
        if kind == "conv":
            return convolution(layer, *own)
        if kind == "maxpool":
            return torch.nn.MaxPool2d(window, *steps)
        if kind == "avgpool":
            return torch.nn.AvgPool2d(window, *steps, count_include_pad=False)
        if kind == "batchnorm":
            return norm((torch.nn.BatchNorm2d if picture else torch.nn.BatchNorm1d)(own[0].numel()), own[0], own[1])
        if kind == "layernorm":
            return norm(torch.nn.LayerNorm(own[0].numel()), own[0], own[1])
        if kind == "activation":
            return activation(layer["activation"])
        if kind == "dropout":
            return torch.nn.Dropout(layer["rate"])
        if kind == "embed":
            return Embedding(*own)
        if kind == "attention":
            return Attention(layer["heads"], own)
        return torch.nn.Identity()  # branch, join

    def forward(self, x):
        kept = []
        for kind, part in zip(self.kinds, self.parts):
            if kind == "branch":
                kept.append(x)
            elif kind == "join":
                x = x + kept.pop()
            else:
                x = part(x)
        return x


def cropped(x, places, crops):
    """The pictures of a batch at their random places, as Warpsight cuts and mirrors them."""
    high, wide, channels = crops["picture"]
    padding = torch.tensor(crops["padding"], device=x.device)
    down, across, mirrored = places[:, 0:1], places[:, 1:2], places[:, 2:3] > 0
    y = torch.arange(high, device=x.device)[None] + down
    columns = torch.arange(wide, device=x.device)[None]
    columns = torch.where(mirrored, wide - 1 - columns, columns) + across
    inside = ((y >= 0) & (y < high))[:, :, None] & ((columns >= 0) & (columns < wide))[:, None, :]
    rows = torch.arange(len(x), device=x.device)[:, None, None]
    picked = x.view(-1, high, wide, channels)[rows, y.clamp(0, high - 1)[:, :, None], columns.clamp(0, wide - 1)[:, None, :]]
    return torch.where(inside[..., None], picked, padding).flatten(1)


def network(shapes, folder):
    values = array(folder, "start.f32", torch.float32, sum(p["rows"] * p["cols"] for p in shapes["parameters"]))
    at, parameters = 0, []
    for p in shapes["parameters"]:
        count = p["rows"] * p["cols"]
        parameters.append(values[at:at + count].reshape(p["rows"], p["cols"]))
        at += count
    return Network(shapes["layers"], parameters)


def optimizer(train, net):
    """Weight decay belongs to the weights, not to biases and gains."""
    groups = [{"params": [p for p in net.parameters() if p.dim() > 1], "weight_decay": train["weight_decay"]},
              {"params": [p for p in net.parameters() if p.dim() == 1], "weight_decay": 0.0}]
    groups = [g for g in groups if g["params"]]
    if train["optimizer"] in ("adam", "adamw"):
        kind = torch.optim.AdamW if train["optimizer"] == "adamw" else torch.optim.Adam
        return kind(groups, lr=train["lr"], betas=(train["beta1"], train["beta2"]), eps=train["epsilon"])
    momentum = train["momentum"] if train["optimizer"] == "momentum" else 0.0
    return torch.optim.SGD(groups, lr=train["lr"], momentum=momentum, nesterov=momentum > 0 and train["nesterov"])


def learning_rate(train, step, per_epoch):
    warmup = train["warmup_steps"]
    if step < warmup:
        return train["lr"] * (step + 1) / warmup
    if train["schedule"] == "step":
        return train["lr"] * train["step_factor"] ** (step // per_epoch // train["step_epochs"])
    if train["schedule"] == "constant":
        return train["lr"]
    done = min(1.0, max(0.0, (step - warmup) / max(1.0, train["epochs"] * per_epoch - warmup)))
    return train["lr"] * (1 - done if train["schedule"] == "linear" else 0.5 * (1 + math.cos(math.pi * done)))


class Trainer:
    def __init__(self, folder, out, compiled):
        self.run = json.loads((folder / "run.json").read_text())
        self.shapes = json.loads((folder / "data.json").read_text())
        self.folder, self.out = folder, out
        wanted = self.run["exec"]["device"]
        if wanted == "cuda" and not torch.cuda.is_available():
            sys.exit("PyTorch sees no GPU here; set exec.device to cpu or auto.")
        self.device = torch.device("cpu" if wanted == "cpu" or not torch.cuda.is_available() else "cuda")
        self.cuda = self.device.type == "cuda"
        precision = self.run["exec"]["precision"]
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
        self.cast = (lambda: torch.autocast(self.device.type, dtype=half)) if half else contextlib.nullcontext
        scaled = precision == "fp16" and self.cuda
        new = hasattr(torch.amp, "GradScaler")  # before 2.3 it stood elsewhere
        self.scaler = torch.amp.GradScaler("cuda", enabled=scaled) if new else torch.cuda.amp.GradScaler(enabled=scaled)
        self.classes = self.shapes["task"] == "classification"
        self.load_data()
        self.net = network(self.shapes, folder).to(self.device)
        self.call = torch.compile(self.net) if compiled else self.net
        self.optimizer = optimizer(self.run["train"], self.net)
        smoothing = self.run["train"]["label_smoothing"]
        self.loss = torch.nn.CrossEntropyLoss(label_smoothing=smoothing) if self.classes else torch.nn.MSELoss()
        self.test_loss = torch.nn.CrossEntropyLoss() if self.classes else torch.nn.MSELoss()
        self.rows = []
        self.marked = self.cuda and "WARPSIGHT_RECORD_FILE" in os.environ  # a recorder listens: it learns the steps

    def load_data(self):
        s = self.shapes
        for part in ("train", "test"):
            rows = s[part + "_rows"]
            x = array(self.folder, part + "_x.f32", torch.float32, rows, s["features"])
            if self.classes:
                y = array(self.folder, part + "_y.i32", torch.int32, rows * max(1, s["context"])).long()
                y = y.reshape(rows, s["context"]) if s["context"] else y
            else:
                y = array(self.folder, part + "_y.f32", torch.float32, rows, s["outputs"])
            setattr(self, part, (x.to(self.device), y.to(self.device)))
        epochs, rows = s["orders"], s["train_rows"]
        self.orders = array(self.folder, "order.i32", torch.int32, epochs, rows).long().to(self.device) if epochs else None

        self.places = None
        if "crops" in s:
            self.places = array(self.folder, "places.i16", torch.int16, self.run["train"]["epochs"], rows, 3).long().to(self.device)

    def wait(self):
        if self.cuda:
            torch.cuda.synchronize()

    def step(self, x, y, rate):
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        with self.cast():
            z = self.call(x)
            if self.classes:
                z, y = z.flatten(0, -2), y.flatten()
            loss = self.loss(z.float(), y)
        self.scaler.scale(loss).backward()
        if self.run["train"]["clip"] > 0:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.run["train"]["clip"])
        self.scaler.step(self.optimizer)
        self.scaler.update()
        hits = (z.argmax(1) == y).float().mean() if self.classes else None
        return loss.detach(), hits

    @torch.no_grad()
    def evaluate(self):
        x, y = self.test
        if len(x) == 0:
            return math.nan, math.nan
        self.net.eval()
        loss = hits = 0.0
        for at in range(0, len(x), self.test_rows):
            part, right = x[at:at + self.test_rows], y[at:at + self.test_rows]
            with self.cast():
                z = self.call(part).float()
            if self.classes:
                z, right = z.flatten(0, -2), right.flatten()
                hits += (z.argmax(1) == right).float().mean().item() * len(part)
            loss += self.test_loss(z, right).item() * len(part)
        self.net.train()
        return loss / len(x), hits / len(x) if self.classes else math.nan

    @property
    def test_rows(self):
        """Rows of one evaluation: fewer for networks with large layers."""
        return 10000 if all(layer["kind"] in ("linear", "activation") for layer in self.shapes["layers"]) else 500

    def take_in(self, held):
        for step, epoch, wall, loss, hits in held:
            row = [step, epoch + 1, f"{wall:.9g}", f"{loss.item():.9g}", "" if hits is None else f"{hits.item():.9g}"]
            self.rows.append(row + ["", ""])
        held.clear()

    def write(self, file, last=False):
        """The newest row waits: where an epoch ends its test values come after it."""
        ready = len(self.rows) if last else max(0, len(self.rows) - 1)
        for row in self.rows[:ready]:
            file.write(",".join(str(v) for v in row) + "\n")
        del self.rows[:ready]
        file.flush()

    def train_all(self):
        train = self.run["train"]
        rows = self.shapes["train_rows"]
        batch = train["batch"] if 0 < train["batch"] < rows else rows
        per_epoch = (rows + batch - 1) // batch
        x, y = self.train
        self.steps, self.spent, self.counted = 0, 0.0, 0
        held, begun = [], time.perf_counter()
        with open(self.out / "metrics.csv", "w") as file:
            file.write("step,epoch,wall_s,train_loss,train_accuracy,test_loss,test_accuracy\n")
            for epoch in range(train["epochs"]):
                order = self.orders[epoch] if self.orders is not None else None
                self.wait()
                started, first = time.perf_counter(), self.steps
                for i in range(per_epoch):
                    if order is None:
                        bx, by = x[i * batch:(i + 1) * batch], y[i * batch:(i + 1) * batch]
                    else:
                        picked = order[i * batch:(i + 1) * batch]
                        bx, by = x[picked], y[picked]
                    if self.places is not None:
                        bx = cropped(bx, self.places[epoch, i * batch:(i + 1) * batch], self.shapes["crops"])
                    if self.marked:
                        torch.cuda.nvtx.range_push(f"step {self.steps}")
                    loss, hits = self.step(bx, by, learning_rate(train, self.steps, per_epoch))
                    if self.marked:
                        torch.cuda.nvtx.range_pop()
                    held.append((self.steps, epoch, time.perf_counter() - begun, loss, hits))
                    self.steps += 1
                    if epoch == 0 and i + 1 == min(10, per_epoch - 1):  # what follows no longer warms up
                        self.wait()
                        started, first = time.perf_counter(), self.steps
                self.wait()
                self.spent += time.perf_counter() - started
                self.counted += self.steps - first
                self.take_in(held)
                every = train["eval_every"]
                if (every and (epoch + 1) % every == 0) or epoch + 1 == train["epochs"]:
                    self.tested = self.evaluate()
                    self.rows[-1][5:7] = [f"{v:.9g}" if math.isfinite(v) else "" for v in self.tested]
                self.write(file)
                print(f"epoch {epoch + 1} of {train['epochs']}: step {self.steps}, loss {self.rows[-1][3]}"
                      + (f", test accuracy {100 * self.tested[1]:.2f} %" if math.isfinite(self.tested[1]) else ""),
                      flush=True)
                if train["time_limit_s"] and time.perf_counter() - begun > train["time_limit_s"]:
                    break
            self.last_loss = float(self.rows[-1][3])
            self.write(file, last=True)
        self.wall = time.perf_counter() - begun

    def summary(self):
        number = lambda v: v if math.isfinite(v) else None
        us = 1e6 * self.spent / self.counted if self.counted else 0.0
        device = torch.cuda.get_device_name() if self.cuda else "CPU"
        batch = self.run["train"]["batch"] or self.shapes["train_rows"]
        return {"status": "finished", "steps": self.steps, "wall_s": self.wall, "us_per_step": us,
                "samples_per_s": 1e6 * batch / us if us else None, "final_train_loss": number(self.last_loss),
                "test_loss": number(self.tested[0]), "test_accuracy": number(self.tested[1]), "device": device,
                "peak_bytes": torch.cuda.max_memory_allocated() if self.cuda else 0, "torch": torch.__version__}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--compile", action="store_true", help="torch.compile the network")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(arguments.data, arguments.out, arguments.compile)
    trainer.tested = (math.nan, math.nan)
    trainer.train_all()
    text = json.dumps(trainer.summary(), indent=1)
    part = arguments.out / "summary.json.part"
    part.write_text(text)
    os.replace(part, arguments.out / "summary.json")


if __name__ == "__main__":
    main()
