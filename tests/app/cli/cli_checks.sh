# For tests of the command-line program, which is their first argument: a folder of their own, and what has to hold.
set -u
program="$1"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
failures=0
check() { if ! eval "$2"; then echo "does not hold: $1"; failures=$((failures + 1)); fi; }  # $? is of what came before
until_true() { local i; for ((i = 0; i < 2400; ++i)); do eval "$1" && return; sleep 0.05; done; }  # for two minutes at most
