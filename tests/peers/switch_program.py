#!/usr/bin/env python3
"""Small trainings that a switch of `warpsight prove` makes faster, one for each thing that slows a program down.

usage: switch_program.py NAME [STEPS]    NAME: one of PROGRAMS"""

import sys

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

device = "cuda" if torch.cuda.is_available() else "cpu"


class Decoded(Dataset):
    """Pictures that plain Python decodes, or that lie ready in memory."""

    def __init__(self, count, channels, side, slow):
        self.count, self.channels, self.side, self.slow = count, channels, side, slow
        self.ready = torch.rand(16, channels, side, side)
        self.runs = [(i % 7 + 1, i % 9) for i in range(side * side)]

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if not self.slow:
            return self.ready[i % 16], i % 10
        pixels = [value / 9 for length, value in self.runs for _ in range(length)]
        return torch.tensor(pixels[: self.side * self.side]).view(1, self.side, self.side), i % 10


def convolutional(channels, width):
    return nn.Sequential(nn.Conv2d(channels, width, 3), nn.ReLU(), nn.Conv2d(width, width, 3, stride=2), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(width * 16, 10))


# network, channels, side and batch of the pictures, what the loader and the copies do
PROGRAMS = {
    "slow-loader": dict(net=lambda: convolutional(1, 32), channels=1, side=32, batch=16, slow=True),
    "pageable": dict(net=lambda: convolutional(3, 16), channels=3, side=128, batch=128, workers=8),
    "blocking": dict(net=lambda: convolutional(3, 16), channels=3, side=128, batch=128, workers=8, pin=True),
}


def batches(p, steps):
    data = Decoded(steps * p["batch"], p["channels"], p["side"], p.get("slow", False))
    return DataLoader(data, batch_size=p["batch"], num_workers=p.get("workers", 0), pin_memory=p.get("pin", False))


def main():
    p = PROGRAMS[sys.argv[1]]
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 150
    torch.manual_seed(1)
    net = p["net"]().to(device)
    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.01)
    for pictures, classes in batches(p, steps):
        optimizer.zero_grad()
        loss = criterion(net(pictures.to(device)), classes.to(device))
        loss.backward()
        optimizer.step()
    print(f"{steps} steps, loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
