#!/usr/bin/env bash
# What the program writes, where, and what it says when that fails.
source "$(dirname "$0")/cli_checks.sh"
short=(train iris --set exec.device=cpu --set train.epochs=10)
"$program" "${short[@]}" --no-output --run r.wsrun --trace full >/dev/null 2>&1

# Failing output is a failure.
for words in "stats r.wsrun" "stats r.wsrun --json" "diff r.wsrun r.wsrun" "list" "list --json" "plan iris" "lab --list" "--help" "--version" "experiment --list" "train iris --set exec.device=cpu --set train.epochs=2 --no-output --json"; do
  "$program" $words >/dev/full 2>err.txt; check "$words > /dev/full: 1 and one line" '[[ $? == 1 ]] && grep -q "No space left" err.txt'
done
"$program" list | head -1 >/dev/null; codes=(${PIPESTATUS[@]}); check "a reader that leaves is no crash" '(( codes[0] <= 1 ))'
"$program" report --interactive r.wsrun --out /dev/full 2>err.txt; check "a page on a full disk: 1 and one line" '[[ $? == 1 ]] && grep -q "No space left" err.txt && (( $(wc -l <err.txt) == 1 ))'

# A run that is still being written: what it has so far, and one line.
"$program" train iris --set exec.device=cpu --set train.epochs=100000000 --set train.eval_every=0 --no-output --run live.wsrun >/dev/null 2>&1 & writer=$!
until_true '"$program" sql live.wsrun "select count(*) from losses" --format csv 2>err.txt | grep -qx "[1-9][0-9]*"'
check "sql of a growing run" 'grep -q "live.wsrun: still being written by process $writer " err.txt && (( $(wc -l <err.txt) == 1 ))'
"$program" stats live.wsrun >/dev/null 2>err.txt; check "stats of a growing run" '[[ $? == 0 ]] && grep -q "still being written" err.txt'
"$program" report --interactive live.wsrun --out live.html >/dev/null 2>err.txt; check "a page of a growing run" '[[ $? == 0 && -s live.html ]] && grep -q "still being written" err.txt'
kill -INT $writer; wait $writer
"$program" sql live.wsrun "select count(*) from losses" >/dev/null 2>err.txt; check "no line once it has ended" '[[ $? == 0 && ! -s err.txt ]]'

# A query that never ends.
timeout 60 "$program" sql r.wsrun --seconds 0.5 "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n" >out.txt 2>err.txt
check "a query that never ends: 1 and one line" '[[ $? == 1 && ! -s out.txt && $(wc -l <err.txt) == 1 ]] && grep -q "took longer than 0.5 s and was stopped" err.txt'

# Special files are never replaced.
mkfifo pipe.wsrun
"$program" "${short[@]}" --no-output --run pipe.wsrun >/dev/null 2>err.txt; check "a pipe is no run file" '[[ $? == 1 && -p pipe.wsrun ]] && grep -q "a pipe" err.txt'
"$program" "${short[@]}" --no-output --run /dev/null >/dev/null 2>err.txt; check "nor is a device" '[[ $? == 1 && -c /dev/null ]] && grep -q "a device" err.txt'
"$program" convert r.wsrun pipe.wsrun 2>err.txt; check "also for convert" '[[ $? == 1 && -p pipe.wsrun ]]'
: >target.wsrun; ln -s target.wsrun link.wsrun
"$program" "${short[@]}" --no-output --run link.wsrun >/dev/null 2>&1; check "a link is followed" '[[ $? == 0 && -L link.wsrun && -s target.wsrun ]]'
mkdir f
for name in metrics.csv summary.json checkpoint.wsck; do
  mkfifo f/$name
  timeout 120 "$program" "${short[@]}" --out f >/dev/null 2>err.txt; code=$?
  check "a pipe as $name is refused" '[[ $code == 1 && -p f/$name ]] && grep -q "$name: .*a pipe" err.txt'
  timeout 120 "$program" train --resume --out f >/dev/null 2>err.txt; check "also when resumed beside $name" '[[ $? == 1 ]]'
  rm f/$name
done
"$program" report r.wsrun --out /dev/stdout >page.txt 2>/dev/null; check "a page goes through a device" 'grep -q "</html>" page.txt'
cp r.wsrun kept.wsrun
"$program" report r.wsrun --out kept.wsrun >/dev/null 2>err.txt
check "a report never replaces a run file: 2 and a sentence" '[[ $? == 2 && $(wc -l <err.txt) == 1 ]] && cmp r.wsrun kept.wsrun && grep -q "written as .html, .htm or .pdf" err.txt'
"$program" report r.wsrun --out page.html --figures new/figures >/dev/null 2>&1
check "the folder of the figures is made" '[[ $? == 0 && -s page.html ]] && ls new/figures/*.svg >/dev/null'
"$program" "${short[@]}" --no-output --trace steps >/dev/null 2>err.txt
check "a trace that no file keeps is named" '[[ $? == 0 ]] && grep -q "not kept: name a run file with --run FILE" err.txt'
"$program" "${short[@]}" --no-output --run k.wsrun --trace steps >/dev/null 2>err.txt
check "and only then" '! grep -q "not kept" err.txt'

# A disk that takes no more, a limit, no folder for temporary files.
(ulimit -f 200; "$program" train mnist --set exec.device=cpu --set train.epochs=1 --set data.limit=640 --out u >out.txt 2>err.txt); code=$?
check "ulimit -f: 1, a sentence and no signal" '[[ $code == 1 ]] && grep -q "The model is not saved: .*File too large" err.txt'
(ulimit -f 10; "$program" convert r.wsrun u.json 2>err.txt); code=$?
check "ulimit -f while converting" '[[ $code == 1 && ! -e u.json ]]'
TMPDIR=/no/such "$program" lab add --sizes 16 --ways cpu --seconds 0.01 --run l.wsrun >/dev/null 2>err.txt
check "no folder for temporary files: a sentence" '[[ $? == 1 ]] && grep -q "^warpsight: /no/such: there is no such folder; set TMPDIR" err.txt'

TMPDIR=/no/such "$program" "${short[@]}" --trace full --out t >/dev/null 2>err.txt; check "a training needs none" '[[ $? == 0 && -s t/summary.json ]]'
echo '{"axes": {"exec.fusion": ["off", "pointwise"]}, "repeats": 1, "spec": {"data": {"name": "iris"}, "train": {"epochs": 2}, "exec": {"device": "cpu"}}}' >quick.json
TMPDIR=/no/such "$program" experiment quick.json --out x >/dev/null 2>&1; check "nor does an experiment" '[[ $? == 0 && $(wc -l <x/results.jsonl) == 2 ]]'
if [[ -e "$(dirname "$program")/libwarpsight_inject.so" ]]; then  # what records other programs is built with CUDA only
  TMPDIR=/no/such "$program" record --out t.wsrun -- touch ran 2>err.txt
  check "no folder to record through: a sentence, and nothing runs" '[[ $? == 1 && ! -e ran ]] && grep -q "^warpsight: /no/such: there is no such folder; set TMPDIR" err.txt'
fi

# A terminal that is closed is an interrupt, unless the program was started to outlive it, as this test may be (nohup).
takes_hangups=(env --default-signal=HUP)
"${takes_hangups[@]}" "$program" train iris --set exec.device=cpu --set train.epochs=100000000 --set train.eval_every=0 --out h >/dev/null 2>&1 &
pid=$!
until_true '[[ -s h/metrics.csv ]]'; kill -HUP $pid; wait $pid; code=$?
check "SIGHUP leaves what SIGINT leaves" '[[ $code == 0 && -s h/checkpoint.wsck ]] && grep -q "\"status\": \"stopped\"" h/summary.json'

cat >long.json <<'JSON'
{"name": "long", "text": "t", "expect": "e", "repeats": 1000, "axes": {"exec.fusion": ["off", "pointwise"]},
 "spec": {"data": {"name": "iris"}, "train": {"epochs": 200, "eval_every": 0}, "exec": {"device": "cpu"}}}
JSON
"${takes_hangups[@]}" "$program" experiment long.json --out long >long.txt 2>&1 & pid=$!
until_true '[[ -s long/results.jsonl ]]'
kill -HUP $pid; wait $pid; code=$?
check "also an experiment" '[[ $code == 0 && -s long/results.jsonl && -s long/table.csv ]] && grep -q "start it again to go on" long.txt'
"${takes_hangups[@]}" "$program" lab sine --ways cpu-loops --sizes "1000,$(seq -s, 1000000 1000040)" --seconds 30 --run long.wsrun >long.txt 2>&1 & pid=$!
until_true 'grep -qs "plain loops" long.txt'; kill -HUP $pid; wait $pid; code=$?
check "a sweep" '[[ $code == 0 ]] && grep -q "points kept" long.txt && "$program" lab long.wsrun | grep -q "CPU, plain loops"'
if [[ -e "$(dirname "$program")/libwarpsight_inject.so" ]]; then
  as_a_driver='import ctypes, os, time; ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection(); time.sleep(2)'
  "${takes_hangups[@]}" "$program" record --out hung.wsrun -- python3 -c "$as_a_driver" >hung.txt 2>&1 & pid=$!
  until_true '[[ -s hung.wsrun ]]'; sleep 0.3; kill -HUP $pid; wait $pid; code=$?
  check "and a recording, which ends with its program" '[[ $code == 0 ]] && grep -q "recorded in hung.wsrun" hung.txt && "$program" stats hung.wsrun >/dev/null'
fi

# JSON of others.
deep="$(printf '[%.0s' {1..300000})"
echo "$deep" >deep.json
for words in "train deep.json --no-output" "experiment deep.json" "lab deep.json" "plan deep.json" "stats deep.json"; do
  "$program" $words >/dev/null 2>err.txt; check "$words: 1 and one line" '[[ $? == 1 && $(wc -l <err.txt) == 1 ]] && grep -q "deep" err.txt'
done
refused() { echo "$2" >wrong.json; "$program" $1 wrong.json >/dev/null 2>err.txt; local code=$?; check "$1 of $2 names $3" "[[ $code == 1 ]] && grep -q '$3' err.txt"; }
axes='"axes": {"exec.fusion": ["off", "pointwise"]}'
refused experiment "{$axes, \"seed\": -1}" "experiment.seed: expected a whole number from 0"
refused experiment "{$axes, \"repeats\": 1e300}" "experiment.repeats: expected a whole number from 1 to 1000"
refused experiment "{$axes, \"title\": 3}" "experiment.title: expected text, got 3"
refused experiment '{"ladder": [3]}' "experiment.ladder\[0\]: expected an object"
refused experiment '{"axes": []}' "experiment.axes: expected an object"
refused experiment '[]' "experiment: expected an object"
refused lab '{"operation": "sine", "seed": -1}' "lab.seed: expected a whole number from 0"
refused lab '{"operation": "sine", "sizes": [1e300]}' "lab.sizes\[0\]: expected a whole number"
hundred="$(seq -s, 1 100)"
# Sanitizers need the address space.
limited() { ldd "$program" | grep -qE "lib(a|t)san" || ulimit -v 4000000; }
(limited; refused experiment "{\"axes\": {\"train.seed\": [$hundred], \"data.seed\": [$hundred], \"train.batch\": [$hundred], \"train.epochs\": [$hundred], \"data.points\": [$hundred], \"train.step_epochs\": [$hundred]}}" "1e+12 combinations"; exit $failures) || failures=$((failures + 1))

# Names from files neither command the terminal nor a spreadsheet.
printf '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "\\u001b]0;owned\\u0007", "ts": 1, "dur": 2, "pid": 0, "tid": 7}, {"ph": "X", "cat": "kernel", "name": "=1+1", "ts": 4, "dur": 2, "pid": 0, "tid": 7}]}' >names.json
"$program" stats names.json >stats.txt 2>&1; check "no escape sequence is printed" 'grep -q "owned" stats.txt && ! grep -q $'"'\\x1b'"' stats.txt'
sed 's/"title": *"[^"]*"/"title": "\\u001b]0;owned\\u0007"/; s/"name": *"[^"]*"/"name": "\\u001b]0;owned\\u0007"/' >named.json <<'JSON'
{"name": "x", "data": {"name": "iris"}, "exec": {"device": "cpu"}}
JSON
"$program" experiment named.json --vary exec.fusion=off --measure steps --repeats 1 --out named >bench.txt 2>&1; check "nor by a name of choices" 'grep -q "owned" bench.txt && ! grep -q $'"'\x1b'"' bench.txt'
cat >peer.py <<'PY'
import argparse, json
p = argparse.ArgumentParser()
p.add_argument("--out")
a, _ = p.parse_known_args()
json.dump({"framework": "PyTorch", "device": "a GPU", "operation": "add", "points": [{"way": "gpu", "size": 8, "median_s": 1e-6, "note": "\x1b]0;owned\x07"}]}, open(a.out, "w"))
PY
"$program" lab add --torch --script peer.py --ways gpu --sizes 8 >note.txt 2>&1; check "nor by the note of a point" 'grep -q "owned" note.txt && ! grep -q $'"'\x1b'"' note.txt'
mkdir -p own/experiments && printf '{"title": "\\u001b]0;owned\\u0007"}' >own/experiments/named.json && echo '{' >own/experiments/broken.json
WARPSIGHT_RESOURCES="$folder/own" "$program" experiment --list >list.txt 2>&1
check "nor by a title; a broken file is named with its problem" '[[ $? == 0 ]] && grep -q "named .*owned" list.txt && ! grep -q $'"'\x1b'"' list.txt && grep -q "broken .*not valid JSON" list.txt'
"$program" sql names.json "select name from kernels" --format csv >names.csv; check "no cell is a formula" 'grep -q "^\"'"'"'=1+1\"" names.csv && ! grep -q "^=" names.csv'

# A damaged run says so in the page, too.
cp r.wsrun damaged.wsrun; size=$(stat -c %s r.wsrun); truncate -s $((size - 8192)) damaged.wsrun
"$program" report damaged.wsrun --out damaged.html >/dev/null 2>err.txt
check "a report of a damaged run says so" 'grep -q "the file is damaged" damaged.html && grep -q "^damaged.wsrun: " err.txt'
"$program" report damaged.wsrun --out damaged.pdf >/dev/null 2>err.txt
check "also one for the printer, once" '[[ $(grep -c "^damaged.wsrun: " err.txt) == 1 ]] || grep -q "not installed beside" err.txt'

# Failed rows: not complete, 1, and tried again.
cat >e.json <<'JSON'
{"name": "e", "text": "t", "expect": "e", "repeats": 1, "axes": {"data.path": ["x.csv", "y.csv"]},
 "spec": {"data": {"name": "csv", "label_column": "y"}, "model": {"hidden": [4], "loss": "mean-squared"}, "train": {"epochs": 2, "batch": 8}, "exec": {"device": "cpu"}}}
JSON
table() { echo "x,y"; for i in {1..40}; do echo "$i,$((2 * i)).5"; done; }
table >x.csv
"$program" experiment e.json --out e >out.txt 2>err.txt; check "an experiment with a failed row ends with 1" '[[ $? == 1 ]] && grep -q "Not complete" out.txt && grep -q "1 trainings failed" err.txt'
table >y.csv
"$program" experiment e.json --out e >out.txt 2>err.txt; check "started again it tries that row" '[[ $? == 0 ]] && ! grep -q "Not complete" out.txt && [[ $(grep -c "y.csv, repeat" err.txt) == 1 && $(grep -c "x.csv, repeat" err.txt) == 0 ]]'

exit $((failures > 0))
