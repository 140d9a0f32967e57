#!/usr/bin/env bash
# The laboratory from the command line: a recorded sweep, the trace of one of its points, refusals, Ctrl+C.
source "$(dirname "$0")/cli_checks.sh"
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

slow=(matmul --ways cpu-loops,cpu --seconds 2 --sizes 64,128,256,512,768)
"$program" lab "${slow[@]}" --run left.wsrun >left.txt 2>&1 &
pid=$!
until_true '(($("$program" lab left.wsrun 2>/dev/null | grep -c "CPU, ") >= 3))'; kill -9 $pid; wait $pid 2>/dev/null
kept="$("$program" lab left.wsrun | grep -c "CPU, ")"
"$program" lab left.wsrun | grep "CPU, " >first.txt
"$program" lab "${slow[@]}" --run left.wsrun >rest.txt 2>err.txt
check "a killed sweep goes on" '[[ $? == 0 && $kept -ge 2 && $kept -lt 10 ]] && grep -q "Its $kept points are kept" err.txt'
check "what it had measured is not measured again" 'diff first.txt <(grep "CPU, " rest.txt | head -n "$kept")'
check "and the whole has all points once" '[[ $("$program" lab left.wsrun | grep "CPU, " | sort | uniq -c | grep -c " 1 ") == 10 ]]'
for point in cpu-loops:64 cpu:768; do
  "$program" lab left.wsrun --point $point >point.txt; check "the timeline of $point is there" '[[ $? == 0 && $(grep -c "matmul ${point#*:}$" point.txt) == 3 ]]'
done
"$program" lab add "${cpu[@]}" --sizes 100 --run left.wsrun >/dev/null 2>err.txt; check "another sweep begins anew" '[[ $? == 0 ]] && ! grep -q "goes on" err.txt'

"$program" lab add "${cpu[@]}" --sizes 100 --cold-cache --seed 7 --json 2>/dev/null | grep -q '"cold_cache":true.*"seed":7'; check "cold caches and a seed" '[[ $? == 0 ]]'
"$program" lab add "${cpu[@]}" --sizes 100,200 --csv /no/x.csv --json >none.json 2>err.txt
check "a CSV that cannot be written is said before anything is measured" '[[ $? == 1 && ! -s none.json && $(wc -l <err.txt) == 1 ]] && grep -q "/no/x.csv: cannot be written" err.txt'
"$program" lab add "${cpu[@]}" --sizes 100 --csv /dev/full --json >kept.json 2>err.txt
check "a disk that is full costs the CSV, not the JSON" '[[ $? == 1 ]] && grep -q "^{.*\"points\":" kept.json'
if "$program" list | grep -q "^No GPU"; then
  "$program" lab matmul --ways gpu --sizes 64 >none.txt 2>err.txt
  check "only variants that cannot run: 1 and why" '[[ $? == 1 && ! -s none.txt && $(wc -l <err.txt) == 1 ]] && grep -q "None of these variants" err.txt'
  WARPSIGHT_LAB_COLD='{"operation":"add","sizes":[64]}' "$program" >cold.txt 2>/dev/null
  check "a first call that fails hands its reason back" 'grep -q "^failed: " cold.txt || grep -q "no CUDA support" err.txt'
fi

"$program" lab add --torch --python /no/such/python3 >none.txt 2>err.txt
check "no python: 1 and a sentence" '[[ $? == 1 && ! -s none.txt && $(wc -l <err.txt) == 1 ]] && grep -q "is not installed" err.txt'
if python3 -c pass 2>/dev/null; then
  cat >peer.py <<'PY'
import argparse, json
p = argparse.ArgumentParser()
for name in ("operation", "depth", "repeats", "warm-up", "seed", "seconds", "sizes", "ways", "out"):
    p.add_argument("--" + name)
a = p.parse_args()
points = [{"way": w, "size": int(n), "median_s": 1e-6 * int(n)} for n in a.sizes.split(",") for w in a.ways.split(",")]
json.dump({"framework": "PyTorch 2.0", "device": "a GPU", "operation": a.operation, "points": points}, open(a.out, "w"))
PY
  "$program" lab add --torch --script peer.py --ways gpu,gpu-pinned --sizes 1000,2000 --json >peer.json 2>/dev/null
  check "the same in PyTorch becomes a result like ours" '[[ $? == 0 ]] && grep -q "\"size\":2000" peer.json && grep -q "gpu-pinned" peer.json'

  # The shipped script itself, over a PyTorch that writes down what it is asked for.
  mkdir fake && cat >fake/torch.py <<'PY'
import os, types
__version__ = "2.0"
float32, float16, uint8 = "float32", "float16", "uint8"
def note(text):
    open(os.environ["FAKE_LOG"], "a").write(text + "\n")
class Tensor:
    shape = (1,)
    def __getattr__(self, name):
        def answer(*_, **__):
            if name == "zero_":
                note("cool")
            return self
        return answer
    def __mul__(self, _): return self
    def __sub__(self, _): return self
class Generator:
    def manual_seed(self, seed):
        note(f"seed {seed}")
        return self
class Event:
    def __init__(self, **_): pass
    def record(self): pass
    def synchronize(self): pass
    def elapsed_time(self, _): return 2.0
def rand(shape, generator): return Tensor()
def empty(*_, **__): return Tensor()
def add(a, b, out): note("call")
cuda = types.SimpleNamespace(is_available=lambda: True, get_device_name=lambda: "a GPU", synchronize=lambda: None, Event=Event)
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=types.SimpleNamespace()))
PY
  shipped="$(dirname "$0")/../../../resources/torch/lab.py"
  [[ $shipped == /* ]] || shipped="$OLDPWD/$shipped"
  in_torch() { rm -f log; FAKE_LOG="$folder/log" PYTHONPATH="$folder/fake" "$program" lab add --torch --script "$shipped" --sizes 64 --repeats 4 --seconds 5 "$@" >torch.txt 2>torch.err; }
  in_torch --ways cpu,gpu --warm-up 7 --seed 11 --cold-cache
  check "PyTorch's inputs are out of the caches before each call, after the warm-up, from the seed" \
    '[[ $(tr "\n" " " <log) == "seed 11 $(printf "call %.0s" {1..7})$(printf "cool call %.0s" {1..14})" ]]'
  check "and what it has not is said" 'grep -q "sweep has no cpu\." torch.txt'
  in_torch --ways gpu
  check "or stay in them" '[[ $(grep -c call log) == 19 && $(head -n1 log) == "seed 42" ]] && ! grep -q cool log && ! grep -q "has no" torch.txt'
fi

"$program" lab --list >list.txt; check "the presets are listed" '[[ $(wc -l <list.txt) == 5 ]] && grep -q "^  the-timer-that-lies  *The timer that lies$" list.txt'
"$program" lab --list --json | grep -q '"name":"hiding-the-copies".*"text":"The same work four times'; check "and as JSON with their pages" '[[ $? == 0 ]]'
"$program" lab matmul-where-the-gpu-wins "${cpu[@]}" --sizes 2^3,16 >named.txt; check "one runs by its name, with other sizes" '[[ $? == 0 && $(grep -c "^ .*CPU, " named.txt) == 4 ]]'
check "its page is printed first" '[[ $(head -n1 named.txt) == "Matrix product: where the GPU wins" ]] && grep -q "What to expect" named.txt && grep -q "^Measured on an NVIDIA H200" named.txt'
"$program" lab the-first-call --ways cpu --sizes 64 --warm-up 0 --json 2>page.txt | grep -q '"seconds_per_point":0.2.*"warm_up":0'; check "what it says of the measurement holds, --warm-up stands above it" '[[ $? == 0 ]] && grep -q "^The first call$" page.txt'
"$program" lab add --ways cpu --seconds 0.02 --sizes 2^10,2k,1M --json 2>/dev/null | grep -q '"sizes":\[1024,2048,1048576\]'; check "sizes as in the window" '[[ $? == 0 ]]'
for wrong in 2^99 64G ten; do
  "$program" lab add --sizes "1,$wrong" >/dev/null 2>err.txt; check "no size: 2 and a sentence: $wrong" '[[ $? == 2 && $(wc -l <err.txt) == 1 ]]'
done

"$program" lab sine --new-kernel my.cu >new.txt; check "a first version of a kernel is written" '[[ $? == 0 ]] && grep -q "^// For sine(z) -> h$" my.cu && grep -q "warpsight lab sine --kernel my.cu" new.txt'
"$program" lab sine --new-kernel my.cu >/dev/null 2>err.txt; check "and never over a file" '[[ $? == 1 && $(wc -l <err.txt) == 1 ]] && grep -q "exists already" err.txt'
"$program" lab sine "${cpu[@]}" --kernel none.cu --sizes 8 >/dev/null 2>err.txt; check "no such kernel: 1 and a sentence" '[[ $? == 1 && $(wc -l <err.txt) == 1 ]] && grep -q "none.cu: this kernel cannot be read" err.txt'
if "$program" list | grep -q "^No GPU" && "$program" kernel new iris fc1 first.cu >/dev/null && "$program" kernel compile iris fc1 first.cu >/dev/null 2>&1; then
  "$program" lab sine "${cpu[@]}" --kernel my.cu --sizes 64,128 --run own.wsrun >own.txt
  check "without a GPU a kernel is compiled, beside the CPU" '[[ $? == 0 && $(grep -c "CPU, " own.txt) == 4 ]] && grep -q "my.cu compiles for sm_90: .*; it is not measured" own.txt'
  rm my.cu; "$program" lab own.wsrun --json 2>/dev/null | grep -q "For sine(z)"; check "the run file keeps its text" '[[ $? == 0 ]]'
  "$program" lab own.wsrun --json 2>/dev/null | python3 -c 'import json, sys; open("wrong.cu", "w").write(json.load(sys.stdin)["spec"]["kernels"][0]["text"] + "int wrong = undeclared;")'
  "$program" lab sine "${cpu[@]}" --kernel wrong.cu --sizes 64 >none.txt 2>err.txt; check "one that does not compile: 1, with its line" '[[ $? == 1 && ! -s none.txt && $(wc -l <err.txt) == 1 ]] && grep -q "wrong.cu does not compile: line " err.txt'
fi
echo '{"operation": "expression", "expression": "sin(sin(x))", "sizes": [8], "ways": ["cpu"]}' >old.json
"$program" lab old.json --json 2>/dev/null | grep -q '"depth":2.*"operation":"sine"'; check "an old nested sine is the operation" '[[ $? == 0 ]]'
sed 's/sin(sin(x))/sin(x)*2+y/' old.json >older.json; "$program" lab older.json >/dev/null 2>err.txt
check "another old expression is one sentence" '[[ $? == 1 && $(wc -l <err.txt) == 1 ]] && grep -q "write it as a kernel of your own" err.txt'
"$program" lab add "${cpu[@]}" --sizes 1000000000000 >big.txt; check "what does not fit is said, with what does" 'grep -q "the largest that fits is" big.txt'
"$program" lab nothing >/dev/null 2>err.txt; check "no such operation: 2" '[[ $? == 2 ]]'
"$program" lab list >/dev/null 2>err.txt; "$program" lab "$folder/none.wsrun" >/dev/null 2>err.txt; check "no such file: 1" '[[ $? == 1 && $(wc -l <err.txt) == 1 ]]'

"$program" lab sine --ways cpu-loops --sizes "1000,$(seq -s, 1000000 1000040)" --seconds 30 --run c.wsrun >c.txt 2>&1 &
pid=$!
until_true 'grep -qs "plain loops" c.txt'; kill -INT $pid; wait $pid
check "Ctrl+C ends with 0 and says what is kept" '[[ $? == 0 ]] && grep -q "points kept" c.txt'
"$program" lab c.wsrun >kept.txt; check "the kept points can be opened" '[[ $? == 0 ]] && grep -q "CPU, plain loops" kept.txt'

"$program" lab sine --ways cpu-loops --sizes "1000,$(seq -s, 1000000 1000040)" --seconds 30 --run m.wsrun >m.txt 2>&1 &
pid=$!
until_true 'grep -qs "plain loops" m.txt'
mv m.wsrun moved.wsrun; kill -INT $pid; wait $pid
check "a run file that went away: 1 and a sentence" '[[ $? == 1 ]] && grep -q "^warpsight: The run file is incomplete: m.wsrun was moved" m.txt'
exit $((failures > 0))
