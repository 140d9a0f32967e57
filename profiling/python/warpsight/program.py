"""Starts the program `warpsight` of the wheel, which is in the folder `files` beside this file."""

import os
import sys

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")


def path():
    """The program of this wheel; without one, the system's program."""
    program = os.path.join(FILES, "bin", "warpsight")
    return program if os.path.exists(program) else "warpsight"


def main():
    try:
        os.execvp(path(), ["warpsight", *sys.argv[1:]])
    except OSError as problem:
        sys.exit(f"warpsight: {path()} cannot be started: {problem.strerror}. The wheel is for Linux on x86-64 with glibc; see install.md.")
