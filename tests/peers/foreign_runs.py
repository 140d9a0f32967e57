"""How foreign_planted, foreign_frameworks and foreign_programs record the programs that they hold, and give what was found."""

import argparse
import json
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)


def write(folder, name, text):
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def line_of(mark, text):
    return next(i for i, row in enumerate(text.split("\n"), 1) if mark in row)


def record(given, folder, level, command, kept_name, window=()):
    """What the recorded program printed, and what is wrong when it did not end well. Its run file is r.wsrun."""
    done = run([given.cli, "record", "--no-live", "--level", level, *window, "--run", "r.wsrun", "--", given.python, *command], folder)
    path = os.path.join(folder, "r.wsrun")
    if given.keep and os.path.exists(path):
        shutil.copy(path, os.path.join(given.keep, kept_name + ".wsrun"))
    return done.stdout, [f"ended with {done.returncode}: {done.stderr[-1500:]}"] if done.returncode != 0 else []


def check_each(about, names, check):
    """Ends with 0 when check(options, name) has found no problem of any name."""
    options = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cli", default=os.path.join(ROOT, "build/release/app/warpsight"))
    options.add_argument("--python", default=sys.executable)
    options.add_argument("--json")
    options.add_argument("--keep", help="a folder for the run files")
    options.add_argument("names", nargs="*", default=[], choices=[*names, []])
    given = options.parse_args()
    given.cli = os.path.abspath(given.cli)
    found = []
    for name in given.names or names:
        try:
            found.append({"name": name, **check(given, name)})
        except Exception as failure:
            found.append({"name": name, "problems": [repr(failure)]})
        print(json.dumps(found[-1], ensure_ascii=False), flush=True)
        if given.json:
            with open(given.json, "w") as file:
                json.dump(found, file, indent=1)
    sys.exit(1 if any(one.get("problems") for one in found) else 0)
