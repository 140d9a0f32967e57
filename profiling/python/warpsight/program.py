"""Starts the program `warpsight` of the wheel, which is in the folder `files` beside this file."""

import os
import sys

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")


def path():
    """The program of this wheel; without one, the system's program."""
    program = os.path.join(FILES, "bin", "warpsight")
    return program if os.path.exists(program) else "warpsight"


def why_not_here():
    """Why this system cannot start the program of the wheel; empty if it can. pip refuses such a system; a copied folder does not."""
    try:
        with open(os.path.join(FILES, "glibc"), encoding="ascii") as file:
            needed = file.read().strip()
    except OSError:
        return ""
    try:
        have = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")[2]
    except (AttributeError, OSError, ValueError):
        have = ""
    if have and [int(part) for part in have.split(".")[:2]] >= [int(part) for part in needed.split(".")[:2]]:
        return ""
    return f"the C library glibc {needed} or newer is needed, and this system has {have or 'another one'}. Use a newer system, or build Warpsight here; see install.md."


def main():
    problem = why_not_here()
    if problem:
        sys.exit(f"warpsight: {problem}")
    try:
        os.execvp(path(), ["warpsight", *sys.argv[1:]])
    except OSError as problem:
        sys.exit(f"warpsight: {path()} cannot be started: {problem.strerror}. The wheel is for Linux on x86-64 with glibc; see install.md.")
