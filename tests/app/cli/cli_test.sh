#!/usr/bin/env bash
# The command-line program from outside: exit codes, the output folder, Ctrl+C, resume.
source "$(dirname "$0")/cli_checks.sh"
cpu=(--set exec.device=cpu)

"$program" list presets >list.txt; check "list names the presets" '[[ $? == 0 ]] && grep -q "^  mnist " list.txt'
"$program" plan iris >plan.txt; check "plan prints both tables" 'grep -q "As built: " plan.txt && grep -q "As it runs: " plan.txt'
"$program" train iris "${cpu[@]}" --out a --json >out.txt 2>err.txt; check "training ends with 0" '[[ $? == 0 ]]'
check "the last line is the summary" 'tail -n1 out.txt | grep -q "^{.*\"status\":\"finished\""'
check "the folder is whole" '[[ -s a/metrics.csv && -s a/summary.json && -s a/checkpoint.wsck ]]'
cp -r a before
"$program" train iris "${cpu[@]}" --set exec.launch=graph --out a >/dev/null 2>&1; check "a refused run: 1" '[[ $? == 1 ]]'
"$program" train iris "${cpu[@]}" --set model.hidden="$(printf '65536,%.0s' {1..300})65536" --out a >/dev/null 2>err.txt
check "a model that cannot fit: 1 and a sentence" '[[ $? == 1 && $(wc -l <err.txt) == 1 ]] && grep -q "GiB" err.txt'
"$program" train mnist --resume --out a >/dev/null 2>err.txt; check "another data set is not resumed" '[[ $? == 2 ]] && grep -q "holds a training of iris, not of mnist" err.txt'
"$program" train iris --run a.txt --no-output >/dev/null 2>err.txt; check "a run file has its ending" '[[ $? == 2 && ! -e a.txt ]] && grep -q "written as .wsrun" err.txt'
"$program" train --resume --out a >/dev/null 2>&1; check "nothing is left to train" '[[ $? == 0 ]]'
check "the earlier run in the same folder is as it was" 'diff -r before a'
"$program" train iris "${cpu[@]}" --set exec.launch=graph --out n >/dev/null 2>&1; check "a refused run leaves no folder" '[[ ! -e n ]]'
"$program" train iris "${cpu[@]}" --no-output --run old.wsrun >/dev/null 2>&1; cp old.wsrun same.wsrun
"$program" train iris "${cpu[@]}" --set exec.launch=graph --no-output --run old.wsrun >/dev/null 2>&1
check "a refused run leaves the older run file" '[[ $? == 1 ]] && cmp old.wsrun same.wsrun'

losses() { "$program" sql "$1" 'select step, "of", loss, accuracy from losses order by 1, 2' --format csv; }
line="$("$program" sql old.wsrun 'select spec from runs' --format csv | tail -n1 | tr -d '"')"
"$program" train --spec "$line" --no-output --run again.wsrun >/dev/null 2>&1; check "a line of settings trains" '[[ $? == 0 && "$line" == ws1:name=iris* ]]'
check "and gives the same losses, bit by bit" '[[ "$(losses old.wsrun | wc -l)" -gt 10 && "$(losses old.wsrun)" == "$(losses again.wsrun)" ]]'
"$program" train --spec 'ws1:exec.allocator' --no-output >/dev/null 2>err.txt; check "a line that was cut off: a sentence" '[[ $? == 1 || $? == 2 ]] && grep -q "cut off" err.txt'

"$program" train iris "${cpu[@]}" --set train.epochs=100000000 --set train.eval_every=0 --out b >b.txt 2>&1 &
pid=$!
until_true '[[ -s b/metrics.csv ]]'; kill -INT $pid; wait $pid
check "Ctrl+C ends with 0" '[[ $? == 0 ]]'
check "and keeps what was trained" 'grep -q "\"status\": \"stopped\"" b/summary.json && [[ -s b/checkpoint.wsck ]]'
steps="$(sed -n 's/.*"steps": \([0-9]*\).*/\1/p' b/summary.json)"
"$program" train --resume --out b --set train.time_limit_s=1000 --set train.epochs=$((steps / 8 + 3)) >/dev/null 2>&1; check "a resumed run ends with 0" '[[ $? == 0 ]]'
check "its steps go on without a gap" "awk -F, 'NR > 1 && \$1 != NR - 2 { bad = 1 } END { exit bad }' b/metrics.csv"

# Resident memory at most, in MB. cuBLASLt alone would take 150 MB, NVRTC 30.
if ! grep -qE "lib[at]san" <(ldd "$program"); then
  memory_of() { python3 -c 'import os, sys; os.execv(sys.argv[1], sys.argv[1:]) if os.fork() == 0 else print(os.wait3(0)[2].ru_maxrss // 1024)' "$@" 2>/dev/null | tail -n1; }
  for command in --version "list presets" "plan iris" "stats old.wsrun" "convert old.wsrun old.json" "train iris --no-output --set exec.device=cpu"; do
    check "$command takes less than 40 MB" '(($(memory_of "$program" $command) < 40))'
  done
  check "no start loads what it does not use" '! ldd "$program" | grep -qE "cublas|nvrtc|cupti"'
fi

"$program" train iris "${cpu[@]}" --out p --run p.wsrun --set train.epochs=3 >/dev/null 2>&1; cp p.wsrun first.wsrun
check "weights are kept beside the run file" '[[ -s p.wsrun.wsck ]]'
"$program" train --resume --out p --run p.wsrun --set train.epochs=5 >/dev/null 2>err.txt
check "a resumed run keeps the run file of its first part" '[[ $? == 0 ]] && cmp p.wsrun first.wsrun && grep -q "p.wsrun keeps the first part" err.txt'
check "and both have their losses" '[[ "$(losses p.part2.wsrun | tail -n +2 | wc -l)" -gt 5 && "$(losses p.part2.wsrun | sed -n 2p | cut -d, -f1)" -gt "$(losses p.wsrun | sed -n 2p | cut -d, -f1)" ]]'
"$program" train iris "${cpu[@]}" --out n1 --run n1.wsrun --set train.epochs=3 >/dev/null 2>&1
csv_steps="$(tail -n +2 n1/metrics.csv | cut -d, -f1 | tr '\n' ' ')"
run_steps="$("$program" sql n1.wsrun "select step from losses where \"of\" = 'train' order by 1" --format csv | tail -n +2 | tr '\n' ' ')"
check "metrics.csv and the losses of the run count steps alike" '[[ -n "$csv_steps" && "$csv_steps" == "$run_steps" ]]'

echo 'print("hello")' >mine.py; cp mine.py kept.py
for command in "train iris --no-output --run mine.py" "record --run mine.py -- true" "lab add --sizes 8 --run mine.py" "lab add --sizes 8 --csv mine.py"; do
  "$program" $command >out.txt 2>err.txt
  check "$command: a file that is no run is not replaced" '[[ $? != 0 && ! -s out.txt && $(wc -l <err.txt) == 1 ]] && cmp mine.py kept.py'
done
RANK=1 "$program" train iris "${cpu[@]}" --no-output >/dev/null 2>err.txt; check "a rank without their number trains alone, and says so" '[[ $? == 0 ]] && grep -q "RANK=1, WORLD_SIZE is not set" err.txt'
RANK=0 "$program" train iris "${cpu[@]}" --no-output >/dev/null 2>err.txt; check "the only rank says nothing" '[[ $? == 0 ]] && ! grep -q WORLD_SIZE err.txt'

"$program" train >/dev/null 2>&1; check "no preset: 2" '[[ $? == 2 ]]'
"$program" train frobnicate >/dev/null 2>err.txt; check "a preset that is not known: 2, and which there are" '[[ $? == 2 && $(wc -l <err.txt) == 1 ]] && grep -q "iris, mnist" err.txt'
"$program" record --level frob -- true 2>err.txt; check "a level that is not known: 2" '[[ $? == 2 ]] && grep -q "choose off, .* or lines" err.txt'
"$program" lab --variants frob 2>err.txt; check "a variant that is not known: 2, in the words of the option" '[[ $? == 2 ]] && grep -q -- "--variants: choose .* or .*, not frob" err.txt'
"$program" stats --limit 0 none.wsrun 2>err.txt; check "a number out of its range: 2, in plain digits" '[[ $? == 2 ]] && grep -q "from 0.1 to 100000, not 0" err.txt'
"$program" frobnicate >/dev/null 2>err.txt; check "no such command: 2, and which there are" '[[ $? == 2 && $(wc -l <err.txt) == 1 ]] && grep -q "train, plan" err.txt'
check "and only those that a person may start" '! grep -qE "follow|job" err.txt'
"$program" train iris --frob >/dev/null 2>err.txt; check "no such option: 2, and where to look" '[[ $? == 2 ]] && grep -q "warpsight train --help" err.txt'
for what in experiment lab; do
  "$program" $what frobnicate >/dev/null 2>err.txt; check "$what of nothing that is known: 2 and a sentence" '[[ $? == 2 && $(wc -l <err.txt) == 1 ]]'
done
mkdir alone; cp "$program" alone/warpsight
alone/warpsight >/dev/null 2>err.txt; check "without a window: 1, and how to get it" '[[ $? == 1 && $(wc -l <err.txt) == 1 ]] && grep -q "The window is not installed here.*warpsight --help" err.txt'
printf '#!/bin/sh\necho "window: $*"\n' >alone/warpsight-window; chmod +x alone/warpsight-window
check "no words open the window" '[[ $(alone/warpsight) == "window: " ]]'
check "a run file opens in the window" '[[ $(alone/warpsight old.wsrun ./same.wsrun) == "window: old.wsrun ./same.wsrun" ]]'
check "and so does a machine" '[[ $(alone/warpsight ssh://me@gpu7) == "window: ssh://me@gpu7" ]]'
"$program" none.wsrun 2>err.txt; check "a file that does not exist: 2" '[[ $? == 2 ]] && grep -q "there is no file none.wsrun" err.txt'
for command in train plan list experiment lab report convert diff stats record torch; do
  "$program" $command --help >help.txt; check "help of $command fits a terminal" '[[ $? == 0 ]] && (( $(LC_ALL=C.UTF-8 wc -L <help.txt) <= 100 ))'
done
for command in train plan experiment lab torch stats report convert diff; do
  "$program" $command --help >help.txt; check "$command has a limit of memory" 'grep -q -- "--limit GIB " help.txt'
done
# One option means one thing: --run a run file, --out what else is written.
for command in train experiment record torch lab report; do
  "$program" $command --help >help.txt
  check "$command: --run is a file" '! grep -q -- "--run " help.txt || grep -q -- "--run FILE " help.txt'
  check "$command: --out says what it is" '! grep -q -- "--out " help.txt || grep -qE -- "--out (FILE|FOLDER) " help.txt'
done
for command in train experiment; do
  "$program" $command --help >help.txt; check "$command writes a folder" 'grep -q -- "--out FOLDER " help.txt'
done
for command in train record torch lab; do
  "$program" $command --help >help.txt; check "$command writes a run file" 'grep -q -- "--run FILE " help.txt'
done
"$program" diff a b c --frob x >/dev/null 2>err.txt; check "unknown words are named in their order" '[[ $? == 2 ]] && grep -q -- "c --frob x" err.txt'
"$program" train iris --set train.lr=fast >/dev/null 2>err.txt; check "a wrong value: 2" '[[ $? == 2 ]] && grep -q "train.lr: expected a number" err.txt'
echo '{"train": {"lr": NaN}}' >nan.json
"$program" train nan.json >/dev/null 2>err.txt; check "NaN in JSON: 1 and one line" '[[ $? == 1 && $(wc -l <err.txt) == 1 ]]'
"$program" train "$folder" >/dev/null 2>err.txt; check "a folder instead of a file: 1 and one line" '[[ $? == 1 && $(wc -l <err.txt) == 1 ]]'
"$program" train iris "${cpu[@]}" --out /proc/none >/dev/null 2>err.txt; check "an impossible folder: 1 and one line" '[[ $? == 1 && $(wc -l <err.txt) == 1 ]]'
if "$program" list | grep -q "^No GPU"; then
  "$program" train iris --set exec.device=cuda --no-output >/dev/null 2>err.txt
  check "cuda without a GPU: 1 and the reason" '[[ $? == 1 ]] && grep -q "no NVIDIA GPU can be used here" err.txt'
fi
"$program" train iris "${cpu[@]}" --no-output --run r.wsrun --trace full >/dev/null && "$program" stats r.wsrun >stats.txt
check "a run file has its steps" 'grep -Eq "^steps +800" stats.txt'
check "and what the CPU did in them" 'grep -Eq "^ *[0-9.]+ +[0-9.]+ +[0-9]+ .* fc1$" stats.txt'
"$program" stats r.wsrun --json >stats.json; check "in JSON too" 'grep -q "\"name\": \"fc1\"" stats.json'
"$program" stats r.wsrun --by phase >stats.txt; check "by phase too" '[[ $? == 0 ]] && grep -Eq " update$" stats.txt'
"$program" stats r.wsrun --by colour 2>err.txt; check "by nothing else: 2" '[[ $? == 2 ]]'
"$program" stats r.wsrun --by rank >stats.txt; check "one rank has nothing to compare" '[[ $? == 0 ]] && grep -q "fewer than two ranks" stats.txt'
"$program" stats r.wsrun --by multiprocessor >stats.txt; check "without lanes inside kernels, it says how to get them" '[[ $? == 0 ]] && grep -q "exec.launch=persistent" stats.txt'
"$program" train iris "${cpu[@]}" --set exec.gpus=4 --no-output --run ranks.wsrun --trace full >/dev/null && "$program" stats ranks.wsrun --by rank >stats.txt
# Steps around pauses do not count, and a busy machine makes many pauses.
check "ranks of a training: a row each" '[[ $? == 0 ]] && grep -Eq "^4 ranks · [1-8][0-9]{2} steps" stats.txt && grep -Eq "^ +3 +[0-9.]+ .* [1-8][0-9]{2} " stats.txt && grep -q "all-reduce" stats.txt'
"$program" stats ranks.wsrun --by rank --json >stats.json; check "in JSON too" 'python3 -c "import json; r = json.load(open(\"stats.json\")); exit(len(r[\"ranks\"]) != 4 or len(r[\"steps\"]) < 100)"'
"$program" stats r.wsrun ranks.wsrun 2>err.txt; check "several files are the ranks of one program, or refused" '[[ $? == 1 ]] && grep -q "does not say which rank" err.txt'
"$program" convert r.wsrun r.json >out.txt; check "one file is still converted, and it is said where" '[[ $? == 0 && -s r.json ]] && grep -Eq "^trace: /.*/r\.json \([0-9.]+ [KMG]iB\)$" out.txt'
CLICOLOR_FORCE=1 "$program" diff r.wsrun r.wsrun >colours.txt; NO_COLOR=1 CLICOLOR_FORCE=1 "$program" diff r.wsrun r.wsrun >plain.txt
check "verdicts have colours, unless NO_COLOR is set" 'grep -q $(printf "\033") colours.txt && ! grep -q $(printf "\033") plain.txt && "$program" diff r.wsrun r.wsrun | cmp - plain.txt'
"$program" diff r.wsrun r.wsrun >diff.txt; check "a run does not differ from itself" '[[ $? == 0 ]] && grep -Eq "step time.* [+-]?0\.000$" diff.txt'
"$program" diff --fail-above 1000% r.wsrun r.wsrun >/dev/null 2>&1; check "and passes a limit" '[[ $? == 0 ]]'
"$program" diff --fail-above much r.wsrun r.wsrun >/dev/null 2>err.txt; check "which is a percentage: 2" '[[ $? == 2 ]] && grep -q "such as 2%, not much" err.txt'
recorded=$(dirname "$0")/../../../resources/recorded
"$program" diff --fail-above 10% "$recorded/pytorch-cnn.wsrun" "$recorded/pytorch-slow-loader.wsrun" >/dev/null 2>err.txt
check "it says what was judged, and that the programs differ" '[[ $? == 1 ]] && grep -q "^Judged: step time, median, A .* different programs, cnn.py and slow_loader.py" err.txt'
"$program" stats r.wsrun --by critical >stats.txt; check "the critical path has the ops" '[[ $? == 0 ]] && grep -Eq " fc1$" stats.txt && grep -q "on the path" stats.txt'
"$program" whatif r.wsrun "op fc1 /2; op fc2 gone" >what.txt; check "edits are predicted" '[[ $? == 0 ]] && grep -q "^A step would take .* less" what.txt && grep -q "op fc2 gone" what.txt'
"$program" whatif r.wsrun "fc1 /2" --json | python3 -m json.tool >/dev/null; check "in JSON too" '[[ $? == 0 ]]'
"$program" whatif r.wsrun "fc9 /2" 2>err.txt; check "an edit that selects nothing names what there is" '[[ $? == 1 && $(wc -l <err.txt) == 1 ]] && grep -q "is called fc9. There are" err.txt'
"$program" gate --json -- /no/such/program -- true >gate.json; check "a program that cannot be started is a failed gate, in JSON too" '[[ $? == 1 ]] && grep -q "\"failure\": \"A: /no/such/program cannot be started" gate.json'
"$program" whatif r.wsrun "no sync; make it so" 2>err.txt; check "and a wrong one says its place" '[[ $? == 1 ]] && grep -q "Edit 2" err.txt'
"$program" check r.wsrun "median step < 1 s" "steps == 800" >check.txt; check "true claims: 0" '[[ $? == 0 && $(grep -c ^true check.txt) == 2 ]]'
"$program" check r.wsrun "median step > 1 s" "steps == 800" >check.txt; check "a false claim: 1" '[[ $? == 1 ]]'
"$program" check r.wsrun "rank wait > 1 s" >check.txt; check "one that cannot be decided: 3" '[[ $? == 3 ]]'
"$program" check r.wsrun "median step > 1 parsec" 2>err.txt; check "and one that is none: 2" '[[ $? == 2 ]] && grep -q "character 17: there is no such unit" err.txt'
"$program" gate r.wsrun r.wsrun >gate.txt; check "two run files are too few for a gate: 3" '[[ $? == 3 ]] && grep -q "cannot tell" gate.txt'
"$program" train iris "${cpu[@]}" --set exec.fusion=off --no-output --trace full --run f.wsrun >/dev/null; "$program" gate r.wsrun f.wsrun --markdown gate.md >gate.txt
check "different work is said without a verdict, in the table for a pull request too" '[[ $? == 3 ]] && grep -q "^only in B .*softmax" gate.txt && grep -q "^| only in B | | .*softmax" gate.md'
"$program" gate --at-most 500% --pairs 9 --json -- iris "${cpu[@]}" --set train.epochs=1 --set exec.fusion=off -- iris "${cpu[@]}" --set train.epochs=1 >gate.json
check "of settings that are trained too" 'python3 -c "import json; gate = json.load(open(\"gate.json\")); assert \"cross-entropy\" in gate[\"only_in_a\"], gate"'
"$program" gate -- true -- sh -c "echo it broke; exit 4" >gate.txt; check "a gate whose program fails: 1" '[[ $? == 1 ]] && grep -q "B: it ended with status 4: it broke" gate.txt'
"$program" gate --lock-clocks r.wsrun r.wsrun 2>err.txt; check "clocks are locked for programs only: 2" '[[ $? == 2 ]] && grep -q "run files are measured already" err.txt'
"$program" gate true 2>err.txt; check "a gate of one side: 2" '[[ $? == 2 ]]'
"$program" prove iris "${cpu[@]}" --edits "fc1 /2" 2>err.txt; check "what is no setting cannot be proved" '[[ $? == 1 ]] && grep -q "is no setting" err.txt'
"$program" train iris "${cpu[@]}" --set data.name=blobs --set model.hidden=8,8 --no-output --run m.wsrun >/dev/null && "$program" diff r.wsrun m.wsrun >diff.txt
check "a difference of unlike runs says what is unlike, and splits nothing" 'grep -q "models differ" diff.txt && grep -q "data sets differ" diff.txt && grep -q "not traced" diff.txt && ! grep -q "sum = step" diff.txt'
"$program" train iris "${cpu[@]}" --no-output --run w.wsrun --trace-window 5/50 --counters >/dev/null 2>err.txt; check "counters that cannot be had say why" '[[ $? == 0 ]] && grep -q "^No hardware counters: \|^Samples hardware" err.txt'
"$program" convert w.wsrun w.json && "$program" convert r.wsrun r.json
check "a window of steps takes a tenth of the records of ops" '(( $(grep -o "\"name\": \"fc1\"" w.json | wc -l) * 5 < $(grep -o "\"name\": \"fc1\"" r.json | wc -l) ))'
"$program" train iris --no-output --trace-window 50/5 >/dev/null 2>err.txt; check "an impossible window: 2" '[[ $? == 2 ]] && grep -q "expected N/M" err.txt'
"$program" train iris --no-output --trace full --trace-window 5/50 >/dev/null 2>err.txt; check "a window at another level: 2" '[[ $? == 2 ]]'
"$program" record --trace-window 5s/200ms -- true 2>err.txt; check "an impossible window of time: 2" '[[ $? == 2 ]] && grep -q "200ms/5s" err.txt'
"$program" record --trace steps --trace-window 200ms/5s -- true 2>err.txt; check "a window without kernels: 2" '[[ $? == 2 ]] && grep -q "records no kernels" err.txt'
if [[ -e "$(dirname "$program")/libwarpsight_inject.so" ]]; then  # what records other programs is built with CUDA only
  as_a_driver='import ctypes, os, time; ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection(); time.sleep(0.6)'
  "$program" record --out i.wsrun --trace-window 50ms/200ms -- python3 -c "$as_a_driver" 2>err.txt
  check "a recorded program is said to hold no steps" '[[ $? == 0 ]] && grep -q "recorded in i.wsrun: no steps" err.txt'
  if "$program" list | grep -q "^No GPU"; then  # where there is one, the windows wait for its first work
    "$program" stats i.wsrun >stats.txt; check "what was not traced is said" 'grep -q "^traced " stats.txt'
  fi
  cp r.wsrun before.wsrun; "$program" record --out before.wsrun -- true 2>err.txt
  check "an earlier recording outlives a program that records nothing" '[[ $? == 0 ]] && cmp r.wsrun before.wsrun && [[ ! -e before.wsrun.before ]] && grep -q "did not start CUDA" err.txt'
  "$program" record --out before.wsrun -- sh -c ': >"$WARPSIGHT_RECORD_FILE"' >/dev/null 2>&1
  check "and one that ends before anything is written" '[[ $? == 0 ]] && cmp r.wsrun before.wsrun'
  "$program" record --out none.wsrun -- sh -c 'exit 7' 2>err.txt; check "the exit status is the program's, also where nothing was recorded" '[[ $? == 7 ]]'
  mkdir "a folder"; "$program" record --folder "a folder" --out ../x.wsrun -- touch here >/dev/null 2>&1; check "a program starts in the folder that is named" '[[ -e "a folder/here" ]]'
  "$program" record --folder none --out x.wsrun -- touch ran 2>err.txt; check "a folder that is not there" '[[ $? == 1 && ! -e ran ]] && grep -q "there is no folder none" err.txt'
  "$program" record --out /no/x.wsrun -- touch ran 2>err.txt; check "a file that cannot be written is said before the program runs" '[[ $? == 1 && ! -e ran ]] && grep -q "Cannot record into /no" err.txt'
  mkdir -p moved/bin moved/share/warpsight/python; cp "$program" "$(dirname "$program")/libwarpsight_inject.so" moved/bin
  moved/bin/warpsight record --level ops -- touch ran 2>err.txt; check "and so are ops without the part that knows Python" '[[ $? == 1 && ! -e ran ]] && grep -q "^warpsight: Cannot record ops: .*/hook is not there" err.txt'
fi
"$program" convert r.wsrun r.json.gz && gzip -t r.json.gz; check "convert writes a trace" '[[ $? == 0 ]]'
"$program" stats nan.json >/dev/null 2>err.txt; check "stats of what is no trace: 1" '[[ $? == 1 ]]'
"$program" report r.wsrun r.wsrun --out r.html >out.txt && grep -q "</html>" r.html; check "report writes a page, and says where" '[[ $? == 0 ]] && grep -Eq "^report of 2 runs: /.*/r\.html \(" out.txt'
"$program" diff r.wsrun r.wsrun | tail -n +3 >self.txt; "$program" diff r.wsrun r.json | tail -n +3 >trace.txt
check "a run and its own trace differ in nothing" '[[ -s self.txt ]] && cmp self.txt trace.txt'
grep -v "^\"warpsight\": " r.json >other.json
"$program" report r.wsrun other.json --out j.html >/dev/null; check "another program's trace is a run of a report" '[[ $? == 0 ]] && grep -q "trained by another program" j.html && grep -q "From A to B" j.html'
"$program" report r.wsrun --out r.pdf >/dev/null 2>err.txt; code=$?
check "a page for the printer, or why not" '[[ $code == 0 ]] && head -c 4 r.pdf | grep -q "%PDF" || { [[ $code == 1 && ! -e r.pdf ]] && grep -q "not installed beside" err.txt; }'
"$program" torch iris --python /no/such/python3 --out t.wsrun >/dev/null 2>err.txt
check "no python: 1, a sentence, no file" '[[ $? == 1 && $(wc -l <err.txt) == 1 && ! -e t.wsrun ]] && grep -q "is not installed" err.txt'
"$program" experiment iris --set exec.device=cpu --vary exec.fusion=off,epilogue --measure steps --repeats 2 --out steps --json >steps.json 2>/dev/null
check "an experiment times steps" '[[ $? == 0 ]] && python3 -c "import json; t = json.load(open(\"steps.json\"))[\"trials\"]; assert len(t) == 2 and all(len(x[\"runs\"]) == 2 and x[\"us_per_step\"] > 0 for x in t)"'
"$program" experiment iris --set exec.device=cpu --measure steps --repeats 1 >steps.txt 2>/dev/null; check "also of one run description, and leaves nothing behind" '[[ $? == 0 && ! -e experiment-iris ]] && grep -q "^iris " steps.txt'
"$program" experiment iris --vary train.batch >/dev/null 2>err.txt; check "a setting without a list of values: 2, and how to name some" '[[ $? == 2 ]] && grep -q "train.batch=VALUE" err.txt'
"$program" experiment first-weights --out e --repeats 1 >e.txt 2>/dev/null &
pid=$!; until_true '[[ -s e/results.jsonl ]]'; kill -INT $pid; wait $pid
check "a stopped experiment says how to go on" '[[ $? == 0 ]] && grep -Eq "start it again to go on|Measured" e.txt && [[ -s e/table.csv && -s e/chart.svg ]]'
exit $((failures > 0))
