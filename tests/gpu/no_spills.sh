#!/usr/bin/env bash
# Fails when a kernel of the library uses local memory: a register array that spilled or was indexed at run time.
#   no_spills.sh LIBRARY...      77 when the toolkit has no cuobjdump
set -euo pipefail
command -v cuobjdump >/dev/null || { echo "cuobjdump is not installed"; exit 77; }
bad=0
for library in "$@"; do
  usage=$(cuobjdump -res-usage "$library" 2>&1)
  kernels=$(grep -c "REG:" <<<"$usage")
  spilled=$(grep -B1 -E "STACK:[1-9]|LOCAL:[1-9]" <<<"$usage" | grep "Function" || true)
  echo "$library: $kernels kernels"
  [ "$kernels" -gt 0 ] || { echo "no kernel found"; bad=1; }
  if [ -n "$spilled" ]; then echo "in local memory:"; echo "$spilled"; bad=1; fi
done
exit $bad
