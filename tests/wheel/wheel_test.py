#!/usr/bin/env python3
"""Builds the wheel, installs it into a fresh environment, records a small program, and removes it again.
wheel_test.py SOURCE BUILD [pythons]; pythons: in every Python of this machine, for a user, and in a prefix as conda's.
Skips itself (77) where an environment or the wheel cannot be made."""
import glob
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time

from audit import audit

SOURCE, BUILD = sys.argv[1], sys.argv[2]
PROGRAM = """import time
def hot(count):
    return sum(i * i for i in range(count))
end = time.time() + 1
while time.time() < end:
    hot(20000)
"""


def run(*command, fails=False, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **more)
    assert fails or done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout + (done.stderr if fails else "")


def symbols_keep_the_promise(files, wheel):
    here = audit(files, tuple(map(int, re.search(r"manylinux_(\d+)_(\d+)_", wheel).groups())))
    assert {"warpsight", "libwarpsight_inject.so", "warpsight-writer"} <= here, here
    assert not any(name.startswith(("libcupti", "libQt", "libcublas")) for name in here if name not in os.listdir(files + "/lib/warpsight/without_cuda")), here


def environment(folder):
    return {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": folder + "/home", "LC_ALL": "C.UTF-8"}


def records_a_program(folder, **more):
    where = {**environment(folder), **more}
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


def a_full_disk_is_one_sentence(folder):
    out = folder + "/full"
    os.mkdir(out)
    small = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=1m none "$0" || exit 77; "$@"; echo "status $?"; ls "$0"', out]
    done = subprocess.run([*small, SOURCE + "/cmake/wheel", "--build", BUILD, "--out", out], capture_output=True, text=True, timeout=600)
    if "status" not in done.stdout:
        return print("name spaces are not allowed here: no full disk was made")
    assert done.stdout == "status 1\n", done
    assert re.fullmatch(r"cmake/wheel: .*: No space left on device\. Nothing was packed\.\n", done.stderr), done


def read_only(folder):
    for at, _, names in os.walk(folder):
        for path in [at, *(os.path.join(at, name) for name in names)]:
            if not os.path.islink(path):
                os.chmod(path, os.stat(path).st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))


def writable(folder):
    run("chmod", "-R", "u+w", folder)


def what_is_in(place):
    return {os.path.relpath(path, place) for path in glob.glob(place + "/**", recursive=True) if "__pycache__" not in path}


MADE = {"home", "program.py", "small.wsrun", "page.html"}  # by records_a_program()


def nothing_is_left(place, before):
    left = {path for path in what_is_in(place) - before if path.split("/")[0] not in MADE}
    assert not left, left


def only_fitting_systems_take_it(pip, wheel):
    """pip refuses a system that does not fit, in one sentence."""
    links = ["download", "--no-index", "--no-deps", "--only-binary", ":all:", "--find-links", os.path.dirname(wheel), "--dest", os.path.dirname(wheel) + "/taken", "warpsight"]
    promised = int(re.search(r"manylinux_2_(\d+)_", wheel).group(1))
    run(pip, *links, "--platform", f"manylinux_2_{promised}_x86_64")
    for platform in (f"manylinux_2_{promised - 1}_x86_64", f"manylinux_2_{promised}_aarch64", "musllinux_1_2_x86_64", "macosx_14_0_x86_64", "win_amd64"):
        text = run(pip, *links, "--platform", platform, fails=True)
        assert "No matching distribution found for warpsight" in text, (platform, text)


def other_systems_get_a_sentence(python):
    for confstr, words in (("'glibc 2.17'", "this system has 2.17"), ("int(name)", "this system has another one")):  # musl: ValueError
        text = run(python, "-c", f"import os, warpsight.program as p\nos.confstr = lambda name: {confstr}\np.main()", fails=True)
        assert words in text and text.count("\n") == 1 and "Traceback" not in text, text
    with tempfile.NamedTemporaryFile(delete=False) as program:  # a program for another processor
        program.write(b"\x7fELF\x02\x01\x01" + bytes(9) + bytes([2, 0, 183, 0]) + bytes(44))
    os.chmod(program.name, 0o755)
    text = run(python, "-c", f"import warpsight.program as p\np.path = lambda: {program.name!r}\np.main()", fails=True)
    os.remove(program.name)
    assert "cannot be started: Exec format error. The wheel is for Linux on x86-64" in text and text.count("\n") == 1, text


def in_one_environment(folder, wheel):
    place, begin = folder + "/venv", time.monotonic()
    before = what_is_in(place)
    run(place + "/bin/pip", "install", "--no-index", wheel)
    site = glob.glob(place + "/lib/python3*/site-packages")[0]
    symbols_keep_the_promise(site + "/warpsight/files", wheel)
    read_only(site + "/warpsight")
    records_a_program(place)
    took = time.monotonic() - begin
    print(f"installed, recorded and shown in {took:.1f} s")
    assert took < 30 * (1 if float(os.environ.get("WARPSIGHT_QUIET", "0")) else 10), took
    works_without_cuda(place)
    other_systems_get_a_sentence(place + "/bin/python3")
    writable(site + "/warpsight")
    run(place + "/bin/pip", "uninstall", "--yes", "warpsight")
    nothing_is_left(place, before)
    only_fitting_systems_take_it(place + "/bin/pip", wheel)


def pythons():
    """Each version that this machine has, from 3.9 on."""
    found = {}
    for path in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")) + ["/usr/bin/python3"] + [f"/usr/bin/python3.{minor}" for minor in range(9, 20)]):
        if os.path.exists(path):
            version = run(path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
            if int(version.split(".")[1]) >= 9 and subprocess.run([path, "-c", "import ensurepip"], capture_output=True).returncode == 0:
                found.setdefault(version, path)
    return found


def in_every_python(folder, wheel):
    for version, python in pythons().items():
        place = f"{folder}/python{version}"
        run(python, "-m", "venv", place)
        before = what_is_in(place)
        run(place + "/bin/pip", "install", "--no-index", wheel)
        records_a_program(place)
        run(place + "/bin/pip", "uninstall", "--yes", "warpsight")
        nothing_is_left(place, before)
        print(f"Python {version}: installed, recorded, removed")


def for_one_user(folder, wheel, python):
    """pip install --user: beside the system's Python, in the home folder."""
    place = folder + "/user"
    of_user = {"PYTHONUSERBASE": place, "PATH": f"{place}/bin:{os.path.dirname(python)}:/usr/bin:/bin"}
    where = {**environment(place), **of_user, "PIP_BREAK_SYSTEM_PACKAGES": "1"}
    os.makedirs(place + "/home")
    before = what_is_in(place)
    run(python, "-m", "pip", "install", "--user", "--no-index", wheel, env=where)
    assert os.path.exists(place + "/bin/warpsight")
    records_a_program(place, **of_user)
    run(python, "-m", "pip", "uninstall", "--yes", "warpsight", env=where)
    left = {path for path in what_is_in(place) - before if os.path.isfile(os.path.join(place, path)) and path.split("/")[0] not in MADE}
    assert not left, left
    print("for one user: installed, recorded, removed")


def in_a_prefix(folder, wheel, python):
    """A Python in a prefix of its own without pyvenv.cfg, as conda makes it: files are links, site-packages is its own."""
    home = run(python, "-c", "import sys; print(sys.base_prefix)").strip()
    place = folder + "/conda"
    os.makedirs(place + "/bin")
    shutil.copy(os.path.realpath(home + "/bin/python3"), place + "/bin/python3")
    shutil.copytree(home + "/lib", place + "/lib", copy_function=lambda source, target: os.symlink(os.path.realpath(source), target),
                    ignore=shutil.ignore_patterns("site-packages", "test", "__pycache__"))
    site = glob.glob(place + "/lib/python3.*")[0] + "/site-packages"
    os.makedirs(site, exist_ok=True)
    run(place + "/bin/python3", "-m", "ensurepip")
    os.makedirs(place + "/home")
    before = what_is_in(place)
    run(place + "/bin/python3", "-m", "pip", "install", "--no-index", wheel)
    assert os.path.isdir(site + "/warpsight"), "the prefix has its own site-packages"
    records_a_program(place)
    run(place + "/bin/python3", "-m", "pip", "uninstall", "--yes", "warpsight")
    nothing_is_left(place, before)
    print("in a prefix: installed, recorded, removed")


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
        if sys.argv[3:] == ["pythons"]:
            own = [python for python in pythons().values() if "/.pyenv/" in python]
            for_one_user(folder, wheel, own[-1] if own else "/usr/bin/python3")
            if own:
                in_a_prefix(folder, wheel, own[-1])
            in_every_python(folder, wheel)
            first = subprocess.run([SOURCE + "/tests/wheel/first_kernel", wheel, "/usr/bin/python3"], capture_output=True, text=True)
            print(first.stdout.strip().split("\n")[-1])
            assert first.returncode in (0, 77), first
        else:
            in_one_environment(folder, wheel)
            a_full_disk_is_one_sentence(folder)
        os.chmod(folder, 0o755)
    return 0


if __name__ == "__main__":
    sys.exit(main())
