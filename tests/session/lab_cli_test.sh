#!/usr/bin/env bash
# The laboratory from the command line: a recorded sweep, the trace of one of its points, refusals, Ctrl+C.
set -u
program="$1"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
failures=0
check() { if ! eval "$2"; then echo "does not hold: $1"; failures=$((failures + 1)); fi; }
cpu=(--ways cpu-loops,cpu --seconds 0.02)

"$program" lab matmul "${cpu[@]}" --sizes 8,16,32 --run a.wsrun --csv a.csv >a.txt; check "a sweep ends with 0" '[[ $? == 0 ]]'
check "every point is printed and in the CSV" '[[ $(grep -c "CPU, " a.txt) == 6 && $(wc -l <a.csv) == 7 ]]'
"$program" lab a.wsrun >again.txt; check "a recorded sweep prints its points again" 'diff <(grep "CPU, " a.txt) <(grep "CPU, " again.txt)'
"$program" lab a.wsrun --point cpu:16 >point.txt; check "a point opens as its trace" '[[ $? == 0 && $(grep -c "matmul 16$" point.txt) == 3 ]]'
"$program" stats a.wsrun >stats.txt; check "the run file is one for every tool" 'grep -Eq "^steps +18" stats.txt'
"$program" lab a.wsrun --json | tail -n1 >a.json; check "and one JSON object" 'grep -q "^{.*\"recorded\":" a.json'
"$program" lab a.wsrun --point gpu:16 >/dev/null 2>err.txt; check "a point that is not there: 1" '[[ $? == 1 ]] && grep -q "no point gpu:16" err.txt'
"$program" lab a.wsrun --point here >/dev/null 2>err.txt; check "no point at all: 2" '[[ $? == 2 ]]'
"$program" lab matmul "${cpu[@]}" --sizes 5 --m 7 --k 3 --json 2>/dev/null | grep -q '"flops":210,'; check "m x k x n" '[[ $? == 0 ]]'

"$program" lab add "${cpu[@]}" --sizes 100 --cold-cache --seed 7 --json 2>/dev/null | grep -q '"cold_cache":true.*"seed":7'; check "cold caches and a seed" '[[ $? == 0 ]]'
"$program" lab add "${cpu[@]}" --sizes 100,200 --csv /no/x.csv --json >none.json 2>err.txt
check "a CSV that cannot be written is said before anything is measured" '[[ $? == 1 && ! -s none.json && $(wc -l <err.txt) == 1 ]] && grep -q "/no/x.csv: cannot be written" err.txt'
"$program" lab add "${cpu[@]}" --sizes 100 --csv /dev/full --json >kept.json 2>err.txt
check "a disk that is full costs the CSV, not the JSON" '[[ $? == 1 ]] && grep -q "^{.*\"points\":" kept.json'
if "$program" list | grep -q "^No GPU"; then
  "$program" lab matmul --ways gpu --sizes 64 >none.txt 2>err.txt
  check "only ways that cannot run: 1 and why" '[[ $? == 1 && ! -s none.txt && $(wc -l <err.txt) == 1 ]] && grep -q "None of these ways" err.txt'
  WARPSCOPE_LAB_COLD='{"operation":"add","sizes":[64]}' "$program" >cold.txt 2>/dev/null
  check "a first call that fails hands its reason back" 'grep -q "^failed: " cold.txt || grep -q "no CUDA support" err.txt'
fi

"$program" lab add --torch --python /no/such/python3 >none.txt 2>err.txt
check "no python: 1 and a sentence" '[[ $? == 1 && ! -s none.txt && $(wc -l <err.txt) == 1 ]] && grep -q "is not installed" err.txt'
"$program" lab --expression 'sin(x)+y' --torch >/dev/null 2>err.txt; check "an operation that the script has not: 1" '[[ $? == 1 ]] && grep -q "knows no expressions" err.txt'
if python3 -c pass 2>/dev/null; then
  cat >peer.py <<'PY'
import argparse, json
p = argparse.ArgumentParser()
for name in ("operation", "depth", "repeats", "seconds", "sizes", "ways", "out"):
    p.add_argument("--" + name)
a = p.parse_args()
points = [{"way": w, "size": int(n), "median_s": 1e-6 * int(n)} for n in a.sizes.split(",") for w in a.ways.split(",")]
json.dump({"framework": "PyTorch 2.0", "device": "a GPU", "operation": a.operation, "points": points}, open(a.out, "w"))
PY
  "$program" lab add --torch --script peer.py --ways gpu,gpu-pinned --sizes 1000,2000 --json >peer.json 2>/dev/null
  check "the same in PyTorch becomes a result like ours" '[[ $? == 0 ]] && grep -q "\"size\":2000" peer.json && grep -q "gpu-pinned" peer.json'
fi

"$program" lab --expression 'sin(sin(x))' --source >source.cu; check "the source is shown" 'grep -q short_sine source.cu'
for wrong in 'exec(x)' 'x+' '1e40*x' "$(printf 'sin(%.0s' {1..100})x"; do
  "$program" lab --expression "$wrong" "${cpu[@]}" --sizes 8 >/dev/null 2>err.txt
  check "refused in one line: ${wrong:0:20}" '[[ $? == 1 && $(wc -l <err.txt) == 1 ]]'
done
"$program" lab add "${cpu[@]}" --sizes 1000000000000 >big.txt; check "what does not fit is said, with what does" 'grep -q "the largest that fits is" big.txt'
"$program" lab nothing >/dev/null 2>err.txt; check "no such operation: 2" '[[ $? == 2 ]]'
"$program" lab list >/dev/null 2>err.txt; "$program" lab "$folder/none.wsrun" >/dev/null 2>err.txt; check "no such file: 1" '[[ $? == 1 && $(wc -l <err.txt) == 1 ]]'

"$program" lab sine --ways cpu-loops --sizes "1000,$(seq -s, 1000000 1000040)" --seconds 30 --run c.wsrun >c.txt 2>&1 &
pid=$!
sleep 1; kill -INT $pid; wait $pid
check "Ctrl+C ends with 0 and says what is kept" '[[ $? == 0 ]] && grep -q "points kept" c.txt'
"$program" lab c.wsrun >kept.txt; check "the kept points can be opened" '[[ $? == 0 ]] && grep -q "CPU, plain loops" kept.txt'
exit $((failures > 0))
