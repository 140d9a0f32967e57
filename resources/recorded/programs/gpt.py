#!/usr/bin/env python3
"""Trains a small GPT on sums such as "12+7=19" with two ranks. The texts are sorted by length before they are split between
the ranks, so that one rank always gets the long ones. Which rank waits, and how long?

usage: torchrun --nproc-per-node 2 gpt.py [STEPS]    A capture range holds the last STEPS steps."""

import os
import random
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 16
WARM_UP, BATCH, WIDTH, HEADS, LAYERS = 10, 64, 256, 4, 3
LETTERS = "0123456789+=; "
device = "cuda" if torch.cuda.is_available() else "cpu"


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        texts, letters, _ = x.shape
        q, k, v = (each.view(texts, letters, HEADS, -1).transpose(1, 2) for each in self.qkv(x).chunk(3, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(texts, letters, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, longest):
        super().__init__()
        self.letters, self.places = nn.Embedding(len(LETTERS), WIDTH), nn.Embedding(longest, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(LETTERS))

    def forward(self, x):
        x = self.letters(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def sums(count):
    """Texts of one to forty sums each."""
    source = random.Random(7)

    def text():
        parts = []
        for _ in range(source.randint(1, 40)):
            a, b = source.randint(0, 99), source.randint(0, 99)
            parts.append(f"{a}+{b}={a + b};")
        return "".join(parts)

    return [text() for _ in range(count)]


def batches(texts):
    for first in range(0, len(texts) - BATCH + 1, BATCH):
        part = texts[first:first + BATCH]
        longest = max(map(len, part))
        yield torch.tensor([[LETTERS.index(letter) for letter in text.ljust(longest)] for text in part], device=device)


def main():
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    torch.manual_seed(1)
    texts = sorted(sums(4096), key=len)
    half = len(texts) // 2
    mine = texts[dist.get_rank() * half:(dist.get_rank() + 1) * half]  # the second rank gets the long texts
    net = nn.parallel.DistributedDataParallel(Gpt(max(map(len, texts))).to(device), bucket_cap_mb=4, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=device == "cuda")
    prepared = list(batches(mine))
    for i in range(WARM_UP + STEPS):
        if i == WARM_UP and device == "cuda":
            torch.cuda.profiler.start()
        x = prepared[i % len(prepared)]
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        print(f"rank {dist.get_rank()} step {i + 1}: loss {loss.item():.4f}", flush=True)
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
