#!/usr/bin/env python3
"""Trains a network on pictures that one loader process decodes in plain Python. The GPU waits for them: at which line?

usage: slow_loader.py [STEPS]"""

import sys

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
BATCH, SIDE = 32, 32


class PackedPictures(Dataset):
    """Pictures as runs of equal bytes, as old file formats keep them."""

    def __init__(self, count):
        source = torch.Generator().manual_seed(1)
        self.packed = [[(int(n), int(v)) for n, v in torch.randint(1, 9, (SIDE * SIDE, 2), generator=source)] for _ in range(16)]
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        pixels = []
        for length, value in self.packed[i % 16]:
            for _ in range(length):
                pixels.append(value / 8)
        return torch.tensor(pixels[:SIDE * SIDE]).view(1, SIDE, SIDE), i % 16


def main():
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 28 * 28, 16)).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    loader = DataLoader(PackedPictures(STEPS * BATCH), batch_size=BATCH, num_workers=1)
    for i, (pictures, classes) in enumerate(loader):
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(net(pictures.to(device)), classes.to(device))
        loss.backward()
        optimizer.step()
        if i % 5 == 4:
            print(f"step {i + 1}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
