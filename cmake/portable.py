"""What the wheel, the folder that runs from anywhere and the Debian package have in common: installed programs with the libraries that not each Linux has."""
import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OF_EACH_LINUX = re.compile(r"^(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|ld-linux-x86-64|linux-vdso)\.so")
OF_CUDA = re.compile(r"^lib(cudart)\.so\.(\d+)$")  # cuBLASLt, NVRTC and CUPTI are loaded when they are used
LINKED_IN = ("libpng-dev", "libturbojpeg0-dev")  # as static libraries
MOST_STDCXX = (3, 4, 30)  # of GCC 12
SYSTEM_FOLDERS = ["/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"]
TEXT_OF = {"cudaGetErrorString": "there is no CUDA library", "cudaGetErrorName": "cudaErrorInsufficientDriver"}
FAILED = {"cudart": 35}  # insufficient driver


def fail(sentence):
    sys.exit(f"cmake/{os.path.basename(sys.argv[0])}: {sentence}")


def one_sentence(main):
    """Runs a packer. What it cannot do, as on a full disk, is one sentence."""
    try:
        main()
    except subprocess.CalledProcessError as failed:
        fail(f"{failed.cmd[0]} failed with status {failed.returncode}. Nothing was packed.")
    except OSError as failed:
        fail(f"{failed.filename or 'the package'}: {failed.strerror}. Nothing was packed.")


@contextlib.contextmanager
def whole(path):
    """The package at `path` is complete or not there."""
    try:
        yield path + ".part"
        os.replace(path + ".part", path)
    finally:
        if os.path.exists(path + ".part"):
            os.remove(path + ".part")


def run(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", path))


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def found_library(program, name):
    for line in run("ldd", program).splitlines():
        if line.strip().startswith(name + " => /"):
            return line.split()[2]
    return fail(f"{name} of {program} was not found.")


def build_folder(asked, window):
    """The build to pack. Without one, it is made: build/package, with machine code for every GPU that the packages name."""
    if asked:
        return asked
    done = subprocess.run([ROOT + "/cmake/build_package", *([] if window else ["--headless"])])
    if done.returncode != 0:
        sys.exit(done.returncode)
    return ROOT + "/build/package"


def must_have(build, name, tools):
    if os.uname().machine != "x86_64":
        fail("this is made for x86-64 only.")
    for tool in ("cmake", "patchelf", "readelf", "strip", "cc", *tools):
        if not shutil.which(tool):
            fail(f"{tool} is not installed: apt install cmake patchelf binutils gcc xz-utils")
    program = os.path.join(build, "app", name)
    if not os.path.exists(program):
        fail(f"{program} is missing: build it first, for example with app/run --headless list")


def asked(doc, program, tools):
    """The build to pack and the folder for the package, from the command line."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--build", help="a build folder; app/run makes build/release")
    parser.add_argument("--out", default=ROOT + "/dist")
    options = parser.parse_args()
    build = build_folder(options.build, window=program == "warpsight-window")
    must_have(build, program, tools)
    return build, options.out


def stage(build, folder, leave_out=()):
    """What `cmake --install` gives."""
    run("cmake", "--install", build, "--prefix", folder, "--strip")
    for path in (os.path.join(folder, one) for one in leave_out):
        shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)


def programs(folder):
    return [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names
            if not os.path.islink(os.path.join(at, name)) and is_elf(os.path.join(at, name))]


def keep_notice(folder, package):
    """The notice that Debian ships with a library goes along with it."""
    notice = f"/usr/share/doc/{package}/copyright"
    if package and os.path.exists(notice):
        os.makedirs(os.path.join(folder, "share/doc/warpsight/libraries"), exist_ok=True)
        shutil.copy(notice, os.path.join(folder, "share/doc/warpsight/libraries", package))


def keep_licence(folder, library):
    owner = subprocess.run(["dpkg", "-S", os.path.realpath(library)], capture_output=True, text=True) if shutil.which("dpkg") else None
    keep_notice(folder, owner.stdout.split(":")[0] if owner and owner.returncode == 0 else "")


def pack_libraries(folder, of_system, may_be_packed):
    """Copies what the system need not have beside the collector, and what that needs in turn."""
    home, todo, packed = os.path.join(folder, "lib/warpsight"), programs(folder), {}
    for package in LINKED_IN:
        keep_notice(folder, package)
    while todo:
        program = todo.pop()
        for name in needed(program):
            if of_system.match(name) or OF_CUDA.match(name) or name in packed or os.path.exists(os.path.join(home, name)):
                continue
            if not may_be_packed.match(name):
                fail(f"{os.path.basename(program)} needs {name}, which is neither part of the system nor may be packed.")
            keep_licence(folder, found_library(program, name))
            packed[name] = shutil.copy(os.path.realpath(found_library(program, name)), os.path.join(home, name))
            os.chmod(packed[name], 0o755)
            run("strip", "--strip-unneeded", packed[name])
            todo.append(packed[name])


def make_stand_ins(folder):
    """Libraries with the names of CUDA's, for machines without them. Each call fails as without a driver."""
    program, home = os.path.join(folder, "bin/warpsight"), os.path.join(folder, "lib/warpsight/without_cuda")
    symbols = re.findall(r"UND\s+(\w+)@(lib(\w+)\.so\.\d+)", run("readelf", "--dyn-syms", "-W", program))
    for library, kind in sorted({(library, kind) for _, library, kind in symbols}):
        os.makedirs(home, exist_ok=True)
        source = ""
        for name in sorted({name for name, of, _ in symbols if of == library}):
            if name in TEXT_OF:
                source += f'const char* {name}(void) {{ return "{TEXT_OF[name]}"; }}\n'
            elif name == "__cudaRegisterFatBinary":
                source += f"void** {name}(void) {{ static void* none; return &none; }}\n"
            else:
                source += f"int {name}(void) {{ return {FAILED[kind]}; }}\n"
        with tempfile.TemporaryDirectory() as work:
            with open(work + "/names.map", "w", encoding="utf-8") as file:
                file.write(f"{library} {{ global: *; }};\n")
            run("cc", "-shared", "-fPIC", "-Os", "-s", "-xc", "-", f"-Wl,-soname,{library}", f"-Wl,--version-script,{work}/names.map", "-o", os.path.join(home, library), input=source)


def set_paths(folder, cuda_folders):
    """Where each program looks for libraries. `cuda_folders`: before the system's folders; a path that does not begin with / counts from the folder."""
    for program in programs(folder):
        to_root = os.path.relpath(folder, os.path.dirname(program))
        beside = ["$ORIGIN/" + os.path.normpath(os.path.join(to_root, one)) for one in ["lib/warpsight", *cuda_folders]]
        paths = beside + SYSTEM_FOLDERS
        run("patchelf", "--set-rpath", ":".join(paths + ["$ORIGIN/" + to_root + "/lib/warpsight/without_cuda"]), program)


# The display's own libraries belong to its driver and its server, so the system's libraries are used.
OF_DISPLAY = r"lib(GL|GLX|EGL|GLdispatch|OpenGL|GLESv2|gbm|drm|X11|X11-xcb|xcb|Xau|Xdmcp|wayland-client|wayland-egl|wayland-cursor|fontconfig|freetype)\.so"
OF_SYSTEM = re.compile(OF_EACH_LINUX.pattern + "|^" + OF_DISPLAY)
PLUGINS = ["platforms/libqxcb.so", "platforms/libqwayland-egl.so", "platforms/libqwayland-generic.so", "platforms/libqoffscreen.so", "imageformats/libqsvg.so",
           "iconengines/libqsvgicon.so", "xcbglintegrations/libqxcb-glx-integration.so", "xcbglintegrations/libqxcb-egl-integration.so",
           "wayland-shell-integration/libxdg-shell.so", "wayland-graphics-integration-client/libqt-plugin-wayland-egl.so",
           "wayland-decoration-client/libbradient.so"]


def add_plugins(folder):
    """Qt's parts that are loaded by name. The first one must be there; a system may lack those for Wayland."""
    for qmake in ("qmake6", "qtpaths6", "/usr/lib/qt6/bin/qmake"):
        if shutil.which(qmake):
            home = run(qmake, *(["-query"] if "qmake" in qmake else ["--query"]), "QT_INSTALL_PLUGINS").strip()
            break
    else:
        home = "/usr/lib/x86_64-linux-gnu/qt6/plugins"
    for plugin in PLUGINS:
        source, target = os.path.join(home, plugin), os.path.join(folder, "lib/warpsight/plugins", plugin)
        if plugin == PLUGINS[0] or os.path.exists(source):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)
    with open(os.path.join(folder, "bin/qt.conf"), "w", encoding="utf-8") as file:
        file.write("[Paths]\nPrefix=..\nPlugins=lib/warpsight/plugins\n")


def make_window_folder(build, folder):
    """The programs with their window and Qt, which run from wherever the folder is."""
    stage(build, folder)
    add_plugins(folder)
    pack_libraries(folder, OF_SYSTEM, re.compile(r"^lib.*\.so"))  # Debian's packages: all of them free
    make_stand_ins(folder)
    set_paths(folder, [])


def newest(folder, prefix):
    versions = {(0,)}
    for program in programs(folder):
        versions |= {tuple(map(int, one.split("."))) for one in re.findall(rf"\b{prefix}_(\d+(?:\.\d+)+)\b", run("readelf", "--version-info", program))}
    return max(versions)
