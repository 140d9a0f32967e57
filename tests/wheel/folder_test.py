#!/usr/bin/env python3
"""The folder with the window runs from anywhere, with the Qt that is inside.  folder_test.py SOURCE BUILD"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from audit import audit

SOURCE, BUILD = sys.argv[1], sys.argv[2]
OF_DISPLAY = re.compile(r"lib(GL|GLX|EGL|GLdispatch|OpenGL|GLESv2|gbm|drm|X11|X11-xcb|xcb|Xau|Xdmcp|wayland-client|wayland-egl|wayland-cursor|fontconfig|freetype)\.so\.\d+$")
FOREIGN = re.compile(r"lib(Qt6|QCustomPlot|qscintilla|sqlite3|zstd|icu|harfbuzz|png)")


def reports_where_it_does_not_run(programs, work):
    """Stand-ins for an older C library, for musl, which has no such name, and for another processor."""
    for tool, answers, words in (("getconf", "echo glibc 2.17", "this system has 2.17"), ("getconf", "exit 1", "this system has another one"), ("uname", "echo aarch64", "this machine is aarch64")):
        with open(f"{work}/{tool}", "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{answers}\n")
        os.chmod(f"{work}/{tool}", 0o755)
        done = subprocess.run([programs + "warpsight", "--version"], capture_output=True, text=True, env={"PATH": f"{work}:/usr/bin:/bin"})
        os.remove(f"{work}/{tool}")
        assert done.returncode == 1 and words in done.stderr and done.stderr.count("\n") == 1, done


def main():
    missing = [tool for tool in ("cmake", "patchelf", "readelf", "cc", "xz") if not shutil.which(tool)]
    if missing:
        print(f"{', '.join(missing)} is not installed: no folder was made")
        return 77
    with tempfile.TemporaryDirectory() as work:
        packed = subprocess.run([SOURCE + "/cmake/folder", "--build", BUILD, "--out", work], check=True, capture_output=True, text=True, env={**os.environ, "XZ_OPT": "-0"}).stdout.strip()
        place = os.path.join(work, "a place with spaces")
        os.mkdir(place)
        subprocess.run(["tar", "-xf", packed, "-C", place], check=True)
        programs, picture = place + "/warpsight/", work + "/window.png"
        where = {"HOME": work, "PATH": "/usr/bin:/bin", "QT_QPA_PLATFORM": "offscreen", "LD_DEBUG": "libs"}
        done = subprocess.run([programs + "warpsight-window", "--screenshot", picture], capture_output=True, text=True, errors="replace", env=where, timeout=300)
        assert done.returncode == 0 and os.path.getsize(picture) > 10_000, done.stderr[-2000:]
        loaded = set(re.findall(r"calling init: (\S+)", done.stderr.replace("a place with spaces", "a_place")))
        outside = [path for path in loaded if FOREIGN.search(os.path.basename(path)) and "/a_place/" not in path]
        assert loaded and not outside, outside
        assert any("/plugins/platforms/libqoffscreen.so" in path for path in loaded), "the plugin of the folder"
        text = subprocess.run([programs + "warpsight", "train", "iris", "--set", "train.epochs=1", "--set", "exec.device=cpu", "--no-output"], capture_output=True, text=True,
                              env={**where, "LD_DEBUG": ""}, check=True).stdout
        assert "test accuracy" in text, text
        with open(programs + "warpsight", encoding="utf-8") as starter:
            promised = tuple(map(int, re.search(r"glibc (\d+)\.(\d+) or newer", starter.read()).groups()))
        assert {"warpsight", "warpsight-window", "libwarpsight_inject.so", "libqxcb.so"} <= audit(programs, promised, OF_DISPLAY)
        reports_where_it_does_not_run(programs, work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
