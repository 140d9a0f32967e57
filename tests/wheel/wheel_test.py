#!/usr/bin/env python3
"""Builds the wheel, installs it into a fresh environment, records a small program, and removes it again.
wheel_test.py SOURCE BUILD; skips itself (77) where an environment or the wheel cannot be made"""
import glob
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time

SOURCE, BUILD = sys.argv[1], sys.argv[2]
PROGRAM = """import time
def hot(count):
    return sum(i * i for i in range(count))
end = time.time() + 1
while time.time() < end:
    hot(20000)
"""
OF_EACH_LINUX = {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2"}


def run(*command, fails=False, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **more)
    assert fails or done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout + (done.stderr if fails else "")


def elf_files(folder):
    for at, _, names in os.walk(folder):
        for path in (os.path.join(at, name) for name in names):
            if open(path, "rb").read(4) == b"\x7fELF":
                yield path


def symbols_keep_the_promise(files, wheel):
    promised = tuple(map(int, re.search(r"manylinux_(\d+)_(\d+)_", wheel).groups()))
    here = {os.path.basename(path) for path in elf_files(files)}
    assert {"warpsight", "libwarpsight_inject.so", "warpsight-writer"} <= here, here
    assert not any(name.startswith(("libcupti", "libQt", "libcublas")) for name in here if name not in os.listdir(files + "/lib/warpsight/without_cuda")), here
    for path in elf_files(files):
        versions = run("readelf", "--version-info", path)
        newest = max([(0, 0)] + [tuple(map(int, one.split(".")[:2])) for one in re.findall(r"\bGLIBC_(\d+\.\d+)", versions)])
        assert newest <= promised, (path, newest, promised)
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", path)):
            assert name in OF_EACH_LINUX | here, f"{path} needs {name}, which nobody brings"


def environment(folder):
    return {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": folder + "/home", "LC_ALL": "C.UTF-8"}


def records_a_program(folder):
    where = environment(folder)
    with open(folder + "/program.py", "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    run("warpsight", "record", "--run", "small.wsrun", "--", "python3", "program.py", cwd=folder, env=where)
    text = run("warpsight", "stats", "small.wsrun", cwd=folder, env=where)
    assert "hot (program.py:3)" in text, text
    assert "hot" in run("warpsight", "sql", "small.wsrun", "select name from spans where name like '%hot%' limit 1", cwd=folder, env=where)
    run("warpsight", "report", "--interactive", "small.wsrun", "--out", "page.html", cwd=folder, env=where)
    run("warpsight", "train", "iris", "--set", "train.epochs=1", "--set", "exec.device=cpu", "--no-output", cwd=folder, env=where)


def works_without_cuda(folder):
    """Like a machine without a toolkit: /usr/local is empty there."""
    hidden = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none /usr/local && exec "$@"', "sh"]
    if subprocess.run([*hidden, "true"], capture_output=True).returncode != 0:
        return print("name spaces are not allowed here: CUDA was not hidden")
    text = run(*hidden, "warpsight", "train", "iris", "--set", "train.epochs=1", "--no-output", cwd=folder, env=environment(folder))
    assert "test accuracy" in text, text


def read_only(folder):
    for at, _, names in os.walk(folder):
        for path in [at, *(os.path.join(at, name) for name in names)]:
            if not os.path.islink(path):
                os.chmod(path, os.stat(path).st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))


def writable(folder):
    run("chmod", "-R", "u+w", folder)


def main():
    missing = [tool for tool in ("cmake", "patchelf", "readelf", "cc") if not shutil.which(tool)]
    if missing:
        print(f"{', '.join(missing)} is not installed: no wheel was made")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        wheel = run(SOURCE + "/cmake/wheel", "--build", BUILD, "--out", folder).strip()
        if subprocess.run([sys.executable, "-m", "venv", folder + "/venv"], capture_output=True).returncode != 0:
            print("python3 -m venv does not work here: the wheel was not installed")
            return 77
        place = folder + "/venv"
        before = set(glob.glob(place + "/**", recursive=True))
        begin = time.monotonic()
        run(place + "/bin/pip", "install", "--no-index", wheel)
        site = glob.glob(place + "/lib/python3*/site-packages")[0]
        symbols_keep_the_promise(site + "/warpsight/files", wheel)
        read_only(site + "/warpsight")
        records_a_program(place)
        print(f"installed, recorded and shown in {time.monotonic() - begin:.1f} s")
        works_without_cuda(place)
        writable(site + "/warpsight")
        run(place + "/bin/pip", "uninstall", "--yes", "warpsight")
        left = {path for path in set(glob.glob(place + "/**", recursive=True)) - before if "__pycache__" not in path}
        made = {"home", "program.py", "small.wsrun", "page.html"}
        assert {os.path.relpath(path, place).split("/")[0] for path in left} <= made, left
        os.chmod(folder, 0o755)
    return 0


if __name__ == "__main__":
    sys.exit(main())
