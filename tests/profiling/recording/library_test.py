#!/usr/bin/env python3
"""The library in a recorded program brings in only what it needs there: no database, no packer, no engine, no further library, few bytes.
usage: library_test.py LIBWARPSIGHT_INJECT.SO"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

LIBRARY = sys.argv[1]
OF_THE_SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}
NOT_NEEDED = re.compile(r"(sqlite3_|ZSTD_|inflate|deflate|gz(open|read|write|close)|_ZN2ws3cpu)")
MOST_BYTES = 3_000_000  # without debugging symbols


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    missing = [tool for tool in ("readelf", "nm", "strip") if not shutil.which(tool)]
    if missing:
        print(f"{', '.join(missing)} is not installed")
        return 77
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", LIBRARY)))
    assert needed and needed <= OF_THE_SYSTEM, f"it needs {needed - OF_THE_SYSTEM}"
    names = [line.split()[-1] for line in run("nm", LIBRARY).splitlines()]
    foreign = sorted({name for name in names if NOT_NEEDED.match(name)})
    assert len(names) > 1000 and not foreign, f"it has {foreign}"
    with tempfile.TemporaryDirectory() as folder:
        run("strip", "-o", folder + "/stripped", LIBRARY)
        size = os.path.getsize(folder + "/stripped")
    print(f"{size:,} bytes")
    assert size < MOST_BYTES, f"{size:,} bytes, at most {MOST_BYTES:,}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
