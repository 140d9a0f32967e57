#!/usr/bin/env python3
"""Trainings that a switch of `warpsight prove` makes faster, one for each thing that slows a program down.

usage: switch_program.py NAME [STEPS]    NAME: one of PROGRAMS"""

import sys

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

device = "cuda" if torch.cuda.is_available() else "cpu"


class Pictures(Dataset):
    """Pictures that plain Python decodes, that PyTorch's ops change, or that lie ready in memory."""

    def __init__(self, count, channels, side, work="ready"):
        self.count, self.channels, self.side, self.work = count, channels, side, work
        self.ready = torch.rand(16, channels, side, side)
        self.runs = [(i % 7 + 1, i % 9) for i in range(side * side)]

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        picture = self.ready[i % 16]
        if self.work == "decoded":
            pixels = [value / 9 for length, value in self.runs for _ in range(length)]
            picture = torch.tensor(pixels[: self.side * self.side]).view(1, self.side, self.side)
        if self.work == "changed":
            turned = nn.functional.interpolate(picture.flip(-1)[None], scale_factor=1.25, mode="bilinear")[0, :, i % 9 :, i % 5 :]
            picture = (turned[:, : self.side, : self.side] * (0.8 + i % 5 / 10)).clamp(0, 1).sub(0.45).div(0.22)
        return picture, i % 10


class Words(Dataset):
    """Windows of a text whose words become numbers in plain Python."""

    def __init__(self, count, length):
        self.count, self.length = count, length
        self.text = " ".join(f"word{i * i % 997}" for i in range(20000))

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        begin = 37 * i % (len(self.text) - 20 * self.length)
        numbers = [sum(k * ord(letter) for k, letter in enumerate(word)) % 512 for word in self.text[begin : begin + 20 * self.length].split()]
        return torch.tensor(numbers[: self.length]), i % 10


def convolutional(channels, width, depth):
    layers = [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(width * 16, 10))


def reader():
    blocks = [nn.TransformerEncoderLayer(512, 8, 2048, dropout=0, batch_first=True) for _ in range(3)]
    return nn.Sequential(nn.Embedding(512, 512), *blocks, nn.Flatten(), nn.Linear(512 * 256, 10))


def listener():
    """A network for sound: eight channels of 16,384 samples, which come as pictures."""
    layers = [nn.Flatten(2), nn.Conv1d(8, 128, 9, stride=2), nn.ReLU()]
    for _ in range(3):
        layers += [nn.Conv1d(128, 128, 9, padding=4), nn.BatchNorm1d(128), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(8), nn.Flatten(), nn.Linear(1024, 10))


# network, data, batch, what the loader has
PROGRAMS = {
    "slow-loader": dict(net=lambda: convolutional(1, 256, 6), data=lambda n: Pictures(n, 1, 32, "decoded"), batch=64),
    "augmented": dict(net=lambda: convolutional(3, 128, 3), data=lambda n: Pictures(n, 3, 64, "changed"), batch=64),
    "words": dict(net=reader, data=lambda n: Words(n, 256), batch=64),
    "pageable": dict(net=lambda: convolutional(3, 64, 2), data=lambda n: Pictures(n, 3, 128), batch=128, workers=8),
    "blocking": dict(net=lambda: convolutional(3, 64, 2), data=lambda n: Pictures(n, 3, 128), batch=128, workers=8, pin=True),
    "sound": dict(net=listener, data=lambda n: Pictures(n, 8, 128), batch=48, workers=6),
}


def main():
    p = PROGRAMS[sys.argv[1]]
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 80
    torch.manual_seed(1)
    net = p["net"]().to(device)
    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.01)
    data = p["data"](steps * p["batch"])
    for rows, classes in DataLoader(data, batch_size=p["batch"], num_workers=p.get("workers", 0), pin_memory=p.get("pin", False)):
        optimizer.zero_grad()
        loss = criterion(net(rows.to(device)), classes.to(device))
        loss.backward()
        optimizer.step()
    print(f"{steps} steps, loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
