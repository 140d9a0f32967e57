#!/usr/bin/env python3
"""Trains a network on pictures that one loader process decodes in plain Python. The GPU waits for them: at which line?

usage: slow_loader.py [STEPS]    A capture range holds the last STEPS steps (warpsight record --capture-range)."""

import sys

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 40
WARM_UP, BATCH, SIDE = 5, 32, 32
device = "cuda" if torch.cuda.is_available() else "cpu"


class PackedPictures(Dataset):
    """Pictures as runs of equal bytes, as old file formats keep them."""

    def __init__(self, count):
        source = torch.Generator().manual_seed(1)
        self.packed = [torch.randint(1, 9, (SIDE * SIDE, 2), generator=source).tolist() for _ in range(16)]
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        runs = self.packed[i % 16]
        pixels = [value / 8 for length, value in runs for _ in range(length)]
        return torch.tensor(pixels[:SIDE * SIDE]).view(1, SIDE, SIDE), i % 16


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.head = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 32, 3), nn.Linear(32, 16)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        return self.head(x.mean((2, 3)))


def step(net, criterion, optimizer, pictures, classes):
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(net(pictures.to(device)), classes.to(device))
    loss.backward()
    optimizer.step()
    return loss


def main():
    torch.manual_seed(1)
    net = Network().to(device)
    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for _ in range(WARM_UP):
        step(net, criterion, optimizer, torch.rand(BATCH, 1, SIDE, SIDE), torch.randint(0, 16, (BATCH,)))
    if device == "cuda":
        torch.cuda.profiler.start()
    loader = DataLoader(PackedPictures(STEPS * BATCH), batch_size=BATCH, num_workers=1)
    for i, (pictures, classes) in enumerate(loader):
        loss = step(net, criterion, optimizer, pictures, classes)
        if i % 10 == 9:
            print(f"step {i + 1}: loss {loss.item():.4f}", flush=True)
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


if __name__ == "__main__":
    main()
