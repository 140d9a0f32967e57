#!/usr/bin/env python3
"""Trains a small convolutional network on stripes. One line makes the GPU wait fourteen times per step: which one?

usage: cnn.py [STEPS]    A capture range holds the last STEPS steps (warpsight record --capture-range)."""

import sys

import torch
import torch.nn as nn

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 40
WARM_UP, BATCH = 20, 64
device = "cuda" if torch.cuda.is_available() else "cpu"


class SmallCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32)
        self.conv2, self.norm2 = nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64)
        self.conv3, self.norm3 = nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64)
        self.pool, self.head = nn.MaxPool2d(2), nn.Linear(64, 4)

    def forward(self, x):
        x = self.pool(torch.relu(self.norm1(self.conv1(x))))
        x = self.pool(torch.relu(self.norm2(self.conv2(x))))
        x = torch.relu(self.norm3(self.conv3(x)))
        return self.head(x.mean((2, 3)))


def stripes(count):
    """Noisy pictures with stripes in one of four directions, which is the class."""
    y = torch.randint(0, 4, (count,), device=device)
    angle = (y * torch.pi / 4).view(-1, 1, 1)
    rows = torch.arange(28, device=device).view(1, -1, 1)
    columns = torch.arange(28, device=device).view(1, 1, -1)
    wave = torch.sin(rows * torch.sin(angle) + columns * torch.cos(angle) + torch.rand(count, 1, 1, device=device) * 6)
    return (wave + torch.randn(count, 28, 28, device=device)).unsqueeze(1), y


def gradient_norm(net):
    return sum(p.grad.norm().item() ** 2 for p in net.parameters()) ** 0.5  # one wait for each parameter


def step(net, criterion, optimizer, x, y):
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(net(x), y)
    loss.backward()
    norm = gradient_norm(net)
    if norm < 100:
        optimizer.step()
    return loss


def main():
    torch.manual_seed(1)
    net = SmallCnn().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, fused=device == "cuda")
    pictures, classes = stripes(64 * BATCH)
    for i in range(WARM_UP + STEPS):
        if i == WARM_UP and device == "cuda":
            torch.cuda.profiler.start()
        first = i % 64 * BATCH
        loss = step(net, criterion, optimizer, pictures[first:first + BATCH], classes[first:first + BATCH])
        if i % 10 == 9:
            print(f"step {i + 1}: loss {loss.item():.4f}", flush=True)
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


if __name__ == "__main__":
    main()
