#!/usr/bin/env python3
"""The laboratory's sweep in PyTorch: the shipped script, started from here as ever. See its --help."""
import pathlib
import runpy

runpy.run_path(str(pathlib.Path(__file__).resolve().parents[2] / "resources/torch/lab.py"), run_name="__main__")
