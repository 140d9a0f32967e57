"""What auditwheel asks of a wheel, for any packed folder: no symbol is newer than promised, and no library is missing."""
import os
import re
import subprocess

OF_EACH_LINUX = {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2"}


def elf_files(folder):
    for at, _, names in os.walk(folder):
        for path in (os.path.join(at, name) for name in names):
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def readelf(*words):
    return subprocess.run(["readelf", *words], check=True, capture_output=True, text=True).stdout


def audit(folder, promised, of_display=None):
    """`promised`: the oldest C library, as (2, 36). `of_display`: a pattern of libraries that the system's display brings. Returns the names of what is inside."""
    inside = {os.path.basename(path) for path in elf_files(folder)}
    for path in elf_files(folder):
        newest = max([(0, 0)] + [tuple(map(int, one.split("."))) for one in re.findall(r"\bGLIBC_(\d+\.\d+)", readelf("--version-info", path))])
        assert newest <= promised, f"{path} needs glibc {newest}, and {promised} is promised"
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path)):
            known = name in OF_EACH_LINUX | inside or (of_display and of_display.match(name))
            assert known, f"{path} needs {name}, which nobody brings"
    return inside
