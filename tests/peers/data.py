"""The data sets and start weights of Warpsight, read and made again in numpy, so that both sides train the same thing."""
import csv
import gzip
import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2] / "datasets"
F = np.float32


def philox(index, stream, seed):
    """Four 32-bit words for each index: Philox4x32-10 with counter (index, stream) and key seed."""
    index = np.asarray(index, dtype=np.uint64)
    mask = np.uint64(0xFFFFFFFF)
    c = [index & mask, index >> np.uint64(32), np.full_like(index, stream & 0xFFFFFFFF), np.full_like(index, stream >> 32)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]), p1 & mask,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]), p0 & mask]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return [w.astype(np.uint32) for w in c]


def normals(count, seed, stream):
    """Standard normal numbers; equal to the engine's up to the last bits of log, sine and cosine."""
    words = philox(np.arange((count + 3) // 4), stream, seed)
    out = np.empty((words[0].size, 4), dtype=F)
    for pair in (0, 1):
        above_zero = ((words[2 * pair] >> 8).astype(np.float64) + 1) * 2.0 ** -24
        turn = (words[2 * pair + 1] >> 8).astype(np.float64) * 2.0 ** -24
        radius = np.sqrt(-2 * np.log(above_zero))
        out[:, 2 * pair] = radius * np.cos(2 * np.pi * turn)
        out[:, 2 * pair + 1] = radius * np.sin(2 * np.pi * turn)
    return out.reshape(-1)[:count]


def start_weights(widths, bias, seed=42):
    """Kaiming weights (in, out) and zero biases, as the engine starts with: parameter number is the stream."""
    layers, number = [], 0
    for fan_in, fan_out in zip(widths, widths[1:]):
        weights = F(np.sqrt(2.0 / fan_in)) * normals(fan_in * fan_out, seed, number)
        layers.append((weights.reshape(fan_in, fan_out), np.zeros(fan_out, dtype=F)))
        number += 2 if bias else 1
    return layers


def mnist():
    def idx(name, offset):
        with gzip.open(ROOT / "mnist" / name) as file:
            return np.frombuffer(file.read(), dtype=np.uint8, offset=offset)
    x = idx("train-images-idx3-ubyte.gz", 16).reshape(-1, 784).astype(F) / F(255)
    return x, idx("train-labels-idx1-ubyte.gz", 8).astype(np.int64)


def shuffled(rows, seed, stream):
    rows = list(rows)
    for i in range(len(rows), 1, -1):
        word = int(philox(np.array([i]), stream, seed)[0][0])
        other = (word * i) >> 32
        rows[i - 1], rows[other] = rows[other], rows[i - 1]
    return rows


def iris(seed=42):
    """The engine's training part: four fifths of each class, scaled by their own mean and deviation."""
    with open(ROOT / "iris" / "iris.csv", newline="") as file:
        rows = [row for row in csv.reader(file) if row and row[0][:1].isdigit()]
    names = sorted({row[-1] for row in rows})
    x = np.array([[float(v) for v in row[:4]] for row in rows], dtype=F)
    y = np.array([names.index(row[-1]) for row in rows], dtype=np.int64)
    stream, train = 0x73686675, []
    for number in range(len(names)):
        group = shuffled(np.flatnonzero(y == number), seed, stream + 1 + number)
        train += group[round(0.2 * len(group)):]
    train = shuffled(train, seed, stream)
    x, y = x[train].astype(np.float64), y[train]
    return ((x - x.mean(0)) / x.std(0)).astype(F), y


def line(points, seed=42):
    """y = 2x + 1 + noise, the engine's points."""
    words = philox(np.arange(points), 0x706F696E74, seed)
    unit = [(w >> 8).astype(np.float64) * 2.0 ** -24 for w in words]
    x = (2 * unit[0] - 1).astype(F)
    radius = np.sqrt(-2 * np.log(unit[1] + 2.0 ** -24))
    return x, (2 * x + 1 + 0.1 * radius * np.cos(2 * np.pi * unit[2])).astype(F)
