#!/usr/bin/env bash
# What people type: --on, attach, stats and list of another machine, which here is another folder behind a pipe.
leave_run=$(realpath "$(dirname "$0")/../../support/leave_run.py")
source "$(dirname "$0")/cli_checks.sh"
there="pipe:exec $program serve --folder $folder/there"
short=(--set exec.device=cpu --set train.epochs=30)
long=(--set exec.device=cpu --set train.epochs=100000000 --set train.eval_every=0)
# What a check that fails leaves running there.
trap 'for o in "$folder"/there/.jobs/*/.owner; do [[ -e "$o" ]] && kill "$(sed -n "3s/ .*//p" "$o")"; done; rm -rf "$folder"' EXIT
job_of() { sed -n 's/^.* as \(2[0-9a-z-]*\)$/\1/p' "$1"; }

"$program" train iris "${short[@]}" --out local >local.txt 2>&1
"$program" train iris "${short[@]}" --trace steps --on "$there" --out here >out.txt 2>err.txt; code=$?
job=$(job_of out.txt)
check "a training there ends with 0" '[[ $code == 0 && -n "$job" ]]'
check "with the same lines as here" '[[ $(grep -c "^epoch 30/30 .*test accuracy" out.txt) == 1 && $(grep -c "^finished: 240 steps" out.txt) == 1 ]]'
check "its file is here, byte for byte" 'cmp -s "here/$job.wsrun" "there/$job.wsrun"'
check "and the losses are the losses of a training here" 'diff <(cut -d, -f1,2,4- local/metrics.csv) <(cut -d, -f1,2,4- here/metrics.csv) >/dev/null'
check "and its checkpoint goes on here" '"$program" train --resume --out here --set train.epochs=31 >/dev/null 2>&1'

"$program" stats "$there" >/dev/null 2>err.txt; check "a run there must be named" '[[ $? == 2 ]]'
"$program" list --on "$there" >list.txt 2>&1; check "list names it" 'grep -q "$job.wsrun · .* · finished · 240 steps" list.txt'
"$program" list --json --on "$there" | python3 -c 'import json,sys; there = json.load(sys.stdin); assert there["runs"][0]["steps"] == 240' 2>err.txt; check "also as JSON" '[[ $? == 0 ]]'

# The same over a stand-in for ssh, which runs the command here.
mkdir bin; printf '#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n' >bin/ssh; chmod +x bin/ssh
over_ssh() { PATH="$folder/bin:$PATH" "$@"; }
"$program" stats "there/$job.wsrun" >local_stats.txt
WARPSIGHT_REMOTE_PROGRAM="$program" over_ssh "$program" stats "ssh://me@host$folder/there/$job.wsrun" >stats.txt 2>err.txt
check "stats of a run that lies there" '[[ $? == 0 && -s stats.txt ]] && diff stats.txt local_stats.txt >/dev/null'
mkdir home; HOME="$folder/home" over_ssh "$program" list --on ssh://host >/dev/null 2>err.txt
check "a machine without the program: what to do" '[[ $? == 1 ]] && grep -q "warpsight install --on ssh://host" err.txt'
HOME="$folder/home" over_ssh "$program" install --on ssh://host </dev/null >/dev/null 2>err.txt
check "nothing is copied unasked" '[[ $? == 2 && ! -e home/.local/share/warpsight/server ]]'
HOME="$folder/home" over_ssh "$program" install --on ssh://host --yes >out.txt 2>err.txt && HOME="$folder/home" over_ssh "$program" list --on ssh://host >list.txt 2>&1
check "no notice for a machine without a GPU" '[[ ! -s err.txt ]]'
check "a copy of it serves" '[[ $? == 0 ]] && grep -q installed out.txt'
printf '#!/bin/sh\necho 12.0\n' >bin/nvidia-smi; chmod +x bin/nvidia-smi
HOME="$folder/home" over_ssh "$program" install --on ssh://host --yes >out.txt 2>err.txt; code=$?; rm bin/nvidia-smi
check "a GPU that the build has no machine code for is named" '[[ $code == 0 ]] && { ! ldd "$program" | grep -q cudart || grep -q "no machine code for the GPU there (compute capability 12.0)" err.txt; } && ! grep -q build_package err.txt'
printf '#!/bin/sh\necho 8.6\n' >bin/nvidia-smi; chmod +x bin/nvidia-smi
HOME="$folder/home" over_ssh "$program" install --on ssh://host --yes >out.txt 2>err.txt; code=$?; rm bin/nvidia-smi
check "and how the packages' program, which has it, gets there" '[[ $code == 0 ]] && { [[ ! -s err.txt ]] || grep -q "build/package/app/warpsight install --on ssh://host" err.txt; }'

"$program" attach "$there" >/dev/null 2>err.txt; check "no job named: 2, and where their names are" '[[ $? == 2 && $(<err.txt) == *"list --on "*" shows the jobs there"* ]]'
"$program" attach "$there" --job none >/dev/null 2>err.txt; check "a job that is none: 1 and a sentence" '[[ $? == 1 && $(<err.txt) == "warpsight: There is no job none there." ]]'

# Killed here, it runs on there, and who attaches sees all of it.
"$program" train iris "${long[@]}" --on "$there" --no-output >out.txt 2>&1 & client=$!
until_true '[[ -n $(job_of out.txt) ]]'; job=$(job_of out.txt)
until_true 'grep -qs ^epoch out.txt'
kill -KILL $client; wait $client 2>/dev/null
for ms in 3 1 7 2 5; do  # and so are others that attach to it
  "$program" attach "$there" --job "$job" >killed.txt 2>&1 & client=$!
  sleep "0.$ms"; kill -KILL $client; wait $client 2>/dev/null
done
until_true '"$program" list --on "$there" >list.txt; grep -q "$job · train · iris · runs now" list.txt'
check "list names it as one that runs" 'grep -q "$job · train · iris · runs now" list.txt'
check "it runs on" '[[ -e "there/.jobs/$job/.owner" ]]'
"$program" attach "$there" --job "$job" --at-interrupt leave >attached.txt 2>&1 & client=$!
until_true 'grep -qs ^epoch attached.txt'; kill -INT $client; wait $client; code=$?
check "left, it runs on, and we hear how to come back" '[[ $code == 0 && -e "there/.jobs/$job/.owner" ]] && grep -q "attach .* --job $job" attached.txt'
"$program" attach "$there" --job "$job" --run back.wsrun >back.txt 2>&1 & client=$!
until_true 'grep -qs ^epoch back.txt'; kill -INT $client; wait $client; code=$?
check "without a terminal an interrupt stops it there" '[[ $code == 0 && ! -e "there/.jobs/$job/.owner" ]]'
check "and the file comes" 'cmp -s back.wsrun "there/$job.wsrun"'

"$program" train iris "${short[@]}" --on "$there" --no-output --run nowhere/a.wsrun >out.txt 2>err.txt; code=$?
check "a copy that cannot be written is said before anything starts" '[[ $code == 1 && ! -s out.txt ]] && grep -q "nowhere/a.wsrun: .*No such file" err.txt'

# A closed terminal, or a lost login, leaves it running.
env --default-signal=HUP "$program" train iris "${long[@]}" --on "$there" --no-output >hup.txt 2>&1 & client=$!
until_true 'grep -qs ^epoch hup.txt'; job=$(job_of hup.txt)
kill -HUP $client; wait $client; code=$?
check "a closed terminal leaves it running" '[[ $code == 0 && -e "there/.jobs/$job/.owner" ]] && grep -q "attach .* --job $job" hup.txt'
"$program" attach "$there" --job "$job" --at-interrupt stop >stop.txt 2>&1 & client=$!
until_true 'grep -qs ^epoch stop.txt'; kill -INT $client; wait $client; code=$?
check "attach says how it ended, as train does" '[[ $code == 0 ]] && grep -q "^stopped: .* steps in" stop.txt'
head -c 50000 "there/$job.wsrun" >there/damaged.wsrun
WARPSIGHT_REMOTE_PROGRAM="$program" over_ssh "$program" stats --json "ssh://me@host$folder/there/damaged.wsrun" >stats.txt 2>err.txt; code=$?
check "of a damaged run there: JSON, and what is lost on stderr" '[[ $code == 0 ]] && python3 -m json.tool stats.txt >/dev/null && grep -q "The file ends after" err.txt'

# A program that "records" itself: it leaves a run file where the collector would.
cat >program.sh <<'SH'
"$2" "$1" "$WARPSIGHT_RECORD_FILE"; "$2" "$1" "${WARPSIGHT_RECORD_FILE%.wsrun}.77.wsrun"; echo said by the program; exit 3
SH
"$program" record --on "$there" --library /no/library --run rec.wsrun -- sh "$folder/program.sh" "$folder/back.wsrun" "$leave_run" >out.txt 2>err.txt; code=$?
check "record gives the program's exit status and its words" '[[ $code == 3 ]] && grep -q "said by the program" out.txt'
check "and the files of all its processes" 'cmp -s rec.wsrun "there/$(job_of err.txt).wsrun" && cmp -s rec.77.wsrun "there/$(job_of err.txt).77.wsrun"'
"$program" record --on "$there" --library /no/library --folder "$folder/there" -- sh -c 'echo it is in $(pwd)' >out.txt 2>err.txt; check "and starts it in the folder that is named" 'grep -q "it is in $(realpath "$folder/there")" out.txt'
"$program" record --on "$there" --library /no/library -- sh -c 'exit 7' >out.txt 2>err.txt; check "one that starts no CUDA is no recording, and ends as it does" '[[ $? == 7 ]] && grep -q "did not start CUDA" err.txt'

# A recording that others come to and leave again.
cat >long.sh <<'SH'
"$3" "$1" "$WARPSIGHT_RECORD_FILE"; i=0; until [ -e "$2" ]; do i=$((i + 1)); echo "line $i"; sleep 0.1; done; exit 4
SH
export WARPSIGHT_RUNS="$folder/served"
"$program" record --serve --library /no/library --run served.wsrun -- sh "$folder/long.sh" "$folder/back.wsrun" "$folder/enough" "$leave_run" --api-key topsecret7 >served.txt 2>served.err & client=$!
until_true 'grep -qs "recorded as" served.err'; job=$(sed -n 's/.*--job \(2[0-9a-z.-]*\)$/\1/p' served.err)
"$program" attach "pipe:exec $program serve" --job "$job" >one.txt 2>&1 & one=$!
"$program" attach "pipe:exec $program serve" --job "$job" --at-interrupt leave >two.txt 2>&1 & two=$!
until_true 'grep -qs "line 1" one.txt && grep -qs "line 1" two.txt'; kill -INT $two; wait $two; code=$?
check "one comes and leaves" '[[ $code == 0 && -e "served/.jobs/$job/.owner" ]]'
until_true '"$program" list --on "pipe:exec $program serve" | grep -q -- "--api-key •••"'
check "a list of jobs shows no key, and none stays on the disk" '[[ -s "served/.jobs/$job/job.json" ]] && ! grep -rq topsecret7 served'
touch enough; wait $one; code=$?; wait $client; own=$?
check "to the other watchers, and to the program, nothing happened" '[[ $code == 4 && $own == 4 ]] && grep -q "^line 1$" one.txt && diff <(grep "^line" one.txt) <(grep "^line" served.txt) >/dev/null'
check "its file is here" 'cmp -s served.wsrun "served/$job.wsrun"'

echo mine >mine.wsrun
"$program" record --serve --library /no/library --run mine.wsrun -- true >out.txt 2>err.txt
check "a file that is no run is not replaced" '[[ $? == 1 && $(<mine.wsrun) == mine && $(ls served/.jobs | wc -l) == 1 ]] && grep -q "mine.wsrun: cannot be written: a file that is no run" err.txt'

# Programs that a person starts in a shell of their own: each is a job, and its children are in it. One ends before it is one.
if [[ -e "$(dirname "$program")/libwarpsight_inject.so" ]]; then
cat >train.py <<'PY'
import os, subprocess, sys, time
end = time.time() + 100
while time.time() < end and not os.environ["WARPSIGHT_RECORD_FILE"]: time.sleep(0.01)  # it becomes a job while it runs
if len(sys.argv) < 2: sys.exit(subprocess.run([sys.executable, __file__, "child"], env=os.environ.copy()).returncode)
while time.time() < end and not os.path.exists("seen"): sum(range(10000))
time.sleep(0.5)
sys.exit(5)
PY
(
  eval "$("$program" record --environment --level lines)"
  python3 -c 'print("short")' >short.txt 2>&1
  python3 train.py >program.txt 2>&1 & own=$!
  "$program" list >/dev/null; echo $? >listed.txt  # our own programs are none
  wait $own; echo $? >own.txt
) & shell=$!
here="pipe:exec $program serve"
running() { "$program" list --on "$here" | sed -n 's/^ *\([^ ]*-train\.py-[^ ]*\) · record .*train\.py · runs now$/\1/p'; }
until_true '[[ -n $(running) ]]'; job=$(running)
check "a program of a shell with the environment is a job" '[[ -n "$job" && $(wc -w <<<"$job") == 1 ]]'
touch seen
"$program" attach "$here" --job "$job" --run shell.wsrun >out.txt 2>err.txt; code=$?; wait $shell
check "who attaches gets its status, its file and its child's file" '[[ $code == 5 ]] && cmp -s shell.wsrun "served/$job.wsrun" && [[ $(ls shell*.wsrun | wc -l) == 2 ]]'
check "the program notices nothing of it" '[[ $(<own.txt) == 5 && ! -s program.txt && $(<listed.txt) == 0 && $(<short.txt) == short ]]'
check "nothing else became a job" '[[ $(ls served/.jobs | grep -vc "^$job$") == 1 && $(ls served/.jobs | grep -c train.py) == 1 ]]'
"$program" record --environment >env.txt; (. ./env.txt; env | grep -q "^CUDA_INJECTION64_PATH=/.*libwarpsight_inject.so$"); check "and the environment is for any shell" '[[ $? == 0 ]]'
fi

cat >e.json <<'JSON'
{"name": "small", "title": "Small", "text": "t", "expect": "e", "repeats": 2,
 "spec": {"data": {"name": "iris"}, "train": {"epochs": 3}, "exec": {"device": "cpu"}}, "axes": {"exec.fusion": ["off", "pointwise"]}}
JSON
"$program" experiment e.json --on "$there" --out exp >out.txt 2>err.txt; code=$?
check "an experiment there ends with 0 and says the same" '[[ $code == 0 ]] && grep -q "4 of 4: " err.txt'
check "and its results are here" '[[ $(wc -l <exp/results.jsonl) == 4 && -e exp/table.csv && -e exp/chart.svg ]]'

check "the table of the results is printed here" 'grep -q "^pointwise .*×" out.txt && ! grep -q "^pointwise" err.txt'
job=$(job_of err.txt)
"$program" attach "$there" --job "$job" --out exp2 >out.txt 2>err.txt; code=$?
check "who comes back gets the same" '[[ $code == 0 ]] && grep -q "4 of 4: " err.txt && grep -q "^pointwise .*×" out.txt && diff -r exp exp2 >/dev/null'

"$program" lab add --sizes 1024,4096 --variants cpu --repeats 3 --on "$there" >lab.txt 2>err.txt; code=$?; job=$(job_of err.txt)
check "a sweep there prints its points, and nothing else beside its name" '[[ $code == 0 && $(grep -c "CPU, library" lab.txt) == 2 && $(wc -l <err.txt) == 1 ]]'
"$program" attach "$there" --job "$job" --run lab.wsrun >attached.txt 2>err.txt; code=$?
check "who attaches to a sweep sees the same" '[[ $code == 0 ]] && diff lab.txt attached.txt >/dev/null'

"$program" train iris --on ssh://-x >/dev/null 2>err.txt; check "an address that is none: 2 and a sentence" '[[ $? == 2 && $(wc -l <err.txt) == 1 ]]'
"$program" train iris --on "pipe:exec /nowhere/warpsight" --no-output >/dev/null 2>err.txt; check "a missing program: 1 and a sentence" '[[ $? == 1 ]] && grep -q "there is no program" err.txt'
exit $((failures > 0))
