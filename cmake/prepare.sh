# Shared by app/run and tests/run: installs packages, configures and builds, and says in one line what is left out.
# Sourced, not run. The caller has set `root`.

readonly tools=(g++ cmake ninja-build ccache pkg-config)
readonly libraries=(libfmt-dev nlohmann-json3-dev libcli11-dev libsqlite3-dev libzstd-dev zlib1g-dev libpng-dev libturbojpeg0-dev)
readonly window_libraries=(qt6-base-dev libqcustomplot-dev libqscintilla2-qt6-dev fonts-inter)
readonly test_libraries=(libgtest-dev libgmock-dev libbenchmark-dev xvfb xauth poppler-utils)

say() { printf '%s\n' "$*" >&2; }
fail() { say "$(basename "$(dirname "$0")")/${0##*/}: $*"; exit 1; }

is_installed() { [[ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null)" == ii* ]]; }

as_root() {
  if ((EUID == 0)); then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "these packages are missing and neither root nor sudo is at hand: $missing_text"
  fi
}

# The package of Qt's SVG headers: older releases have another name for it.
svg_package() {
  local name
  for name in qt6-svg-dev libqt6svg6-dev; do
    if is_installed "$name" || apt-cache show "$name" >/dev/null 2>&1; then echo "$name"; return; fi
  done
  echo qt6-svg-dev
}

# The browser that opens exported pages in a test. Empty if one is installed, or if the distribution has no package of one:
# then the test says so.
browser_package() {
  local name
  for name in chromium chromium-browser chromium-headless-shell google-chrome chrome; do
    if command -v "$name" >/dev/null; then return; fi
  done
  if apt-cache show chromium-headless-shell >/dev/null 2>&1; then echo chromium-headless-shell; fi
}

# install_missing PACKAGE...: sets `installed_something`.
install_missing() {
  installed_something=0
  if ! command -v dpkg-query >/dev/null; then
    say "Not a Debian or Ubuntu system: the libraries named in the README must be there already."
    return
  fi
  local missing=() package
  for package in "$@"; do is_installed "$package" || missing+=("$package"); done
  ((${#missing[@]})) || return 0
  missing_text="${missing[*]}"
  say "Installing: $missing_text"
  local log
  log="$(mktemp)"
  local get=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}")
  if ! as_root "${get[@]}" >"$log" 2>&1; then
    as_root apt-get update -qq >>"$log" 2>&1
    as_root "${get[@]}" >>"$log" 2>&1 || fail "these packages could not be installed: $missing_text ($(grep -m1 '^E:' "$log" || tail -n1 "$log"))"
  fi
  rm -f "$log"
  installed_something=1
}

find_cuda() {
  local folder
  if ! command -v nvcc >/dev/null; then
    for folder in "${CUDA_HOME:-}" /usr/local/cuda; do
      if [[ -n "$folder" && -x "$folder/bin/nvcc" ]]; then PATH="$folder/bin:$PATH"; break; fi
    done
  fi
  command -v nvcc >/dev/null || say "No CUDA toolkit (nvcc): building without the GPU executors; training runs on the CPU."
}

has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; }
# GPU code for the GPU of this machine. Without a GPU nothing runs it here: PTX is the quickest to make.
gpu_options() { has_gpu && echo -DCMAKE_CUDA_ARCHITECTURES=native || echo -DCMAKE_CUDA_ARCHITECTURES=90-virtual; }
# Without a GPU, the tests that need one are not built.
test_options() { echo -DWARPSIGHT_TESTS=ON; has_gpu && echo -DWARPSIGHT_GPU_TESTS=ON || echo -DWARPSIGHT_GPU_TESTS=OFF; }
has_display() { [[ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]]; }

# Number of compilers that cores and memory allow: the heaviest file takes about 1.5 GB.
jobs() {
  local cores free_kib
  cores="$(nproc)"
  free_kib="$(awk '/^MemAvailable/ {print $2}' /proc/meminfo)"
  local fit=$((free_kib / 1500000))
  ((fit < 1)) && fit=1
  echo $((cores < fit ? cores : fit))
}

# configure PRESET CMAKE_ARGUMENTS...: only if the arguments changed; ninja runs CMake again when a CMakeLists.txt changes.
configure() {
  local preset="$1" folder="$root/build/$1"
  shift
  local wanted="$*"
  if [[ -f "$folder/build.ninja" && "$installed_something" == 0 && "$(cat "$folder/.configured" 2>/dev/null)" == "$wanted" ]]; then return; fi
  mkdir -p "$folder"
  (cd "$root" && cmake --preset "$preset" "$@") >"$folder/configure.log" 2>&1 ||
    { grep -A4 -m1 'CMake Error' "$folder/configure.log" >&2; fail "could not be configured; see $folder/configure.log"; }
  printf '%s' "$wanted" >"$folder/.configured"
}

# build PRESET TARGETS...
build() {
  local folder="$root/build/$1" log="$root/build/$1/build.log"
  shift
  if ! ninja -C "$folder" -n "$@" 2>/dev/null | grep -q 'no work to do'; then say "Building ..."; fi
  if ! ninja -C "$folder" -j "$(jobs)" "$@" >"$log" 2>&1; then
    grep -E -m10 'error:|fatal|Error|ld: ' "$log" >&2
    fail "could not be built; see $log"
  fi
}
