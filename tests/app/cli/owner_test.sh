#!/usr/bin/env bash
# Two programs and one output: the second learns of the first, and neither loses what the other wrote.
source "$(dirname "$0")/cli_checks.sh"
long=(train iris --set exec.device=cpu --set train.epochs=100000000 --set train.eval_every=0)
short=(train iris --set exec.device=cpu --set train.epochs=10)
wait_for() { until_true "[[ -e '$1' ]]"; }
has_steps() { until_true "\"$program\" stats $1 2>/dev/null | grep -Eq '^steps +[1-9]'"; }
end() { kill "-$1" "$2" 2>/dev/null; wait "$2" 2>/dev/null; }

# One run file.
"$program" "${long[@]}" --no-output --run k.wsrun >/dev/null 2>&1 & first=$!
wait_for k.wsrun
echo mine >k.wsrun.new
"$program" "${short[@]}" --no-output --run k.wsrun >/dev/null 2>err.txt; code=$?
check "a second training into one run file ends with 1" '[[ $code == 1 ]]'
check "and names the first" 'grep -q "being written by process $first (warpsight)" err.txt && [[ $(wc -l <err.txt) == 1 ]]'
ln -s k.wsrun link.wsrun
"$program" "${short[@]}" --no-output --run link.wsrun >/dev/null 2>err.txt; check "also by another name" '[[ $? == 1 ]] && grep -q "process $first" err.txt'
"$program" "${short[@]}" --no-output --run other.wsrun >/dev/null 2>&1
"$program" convert other.wsrun k.wsrun 2>err.txt; check "nor is it replaced by a conversion" '[[ $? == 1 ]] && grep -q "process $first" err.txt'
check "a file with the name of an unfinished one is left alone" '[[ $(<k.wsrun.new) == mine ]]'
has_steps k.wsrun; end KILL $first
"$program" stats k.wsrun >stats.txt 2>err.txt; check "the first lost nothing by that" '[[ $? == 0 && ! -s err.txt ]] && grep -Eq "^steps +[1-9]" stats.txt'
"$program" "${short[@]}" --no-output --run k.wsrun >/dev/null 2>err.txt; check "the claim of a killed program has ended with it" '[[ $? == 0 ]]'
check "and no lock is left" '[[ -z "$(find . -name "*.owner")" ]]'

# Its file is replaced by something else: the log of that belongs to that.
"$program" "${long[@]}" --no-output --run m.wsrun >/dev/null 2>m.txt & first=$!
wait_for m.wsrun; has_steps m.wsrun
mv m.wsrun moved.wsrun; cp other.wsrun m.wsrun; rm m.wsrun-wal; echo another log >m.wsrun-wal
sleep 1; end INT $first
check "a log beside a foreign file is not deleted" '[[ "$(<m.wsrun-wal)" == "another log" ]]'
rm m.wsrun-wal
"$program" stats m.wsrun >/dev/null 2>&1; check "the foreign file is whole" '[[ $? == 0 ]]'
"$program" stats moved.wsrun >stats.txt 2>&1; check "what was trained before is in the moved file" '[[ $? == 0 ]] && grep -Eq "^steps +[1-9]" stats.txt'

# Two starts in one second, without a name.
"$program" "${short[@]}" >a.txt 2>&1 & "$program" "${short[@]}" >b.txt 2>&1 & "$program" "${short[@]}" >c.txt 2>&1 & wait
check "three starts make three folders" '[[ $(ls out | wc -l) == 3 && $(ls out/*/summary.json | wc -l) == 3 ]]'

# One output folder.
"$program" "${long[@]}" --out o >/dev/null 2>&1 & first=$!
wait_for o/.owner
"$program" "${short[@]}" --out o >/dev/null 2>err.txt; check "a second training into one folder: 1 and the first" '[[ $? == 1 ]] && grep -q "process $first" err.txt'
wait_for o/checkpoint.wsck
"$program" train --resume --out o >/dev/null 2>err.txt; check "nor is it resumed beside it" '[[ $? == 1 ]] && grep -q "process $first" err.txt'
end KILL $first
"$program" train --resume --out o --set train.time_limit_s=0.1 >/dev/null 2>&1; check "after a kill it is" '[[ $? == 0 ]]'

# A new start into an old folder, killed before it has a checkpoint: nothing to go on from.
"$program" "${short[@]}" --out p >/dev/null 2>&1; cp -r p before
"$program" train mnist --set exec.device=cpu --set train.epochs=1000000 --out p >/dev/null 2>&1 & first=$!
until_true '! cmp -s p/metrics.csv before/metrics.csv'
end KILL $first
rows_of_both() { [[ -e p/checkpoint.wsck ]] && ! awk -F, 'NR > 1 && $1 != NR - 2 { bad = 1 } END { exit bad }' p/metrics.csv; }
check "the checkpoint of the earlier run is gone with its rows" '[[ ! -e p/checkpoint.wsck ]] || ! cmp -s p/checkpoint.wsck before/checkpoint.wsck'
"$program" train --resume --out p --set train.time_limit_s=0.1 >/dev/null 2>&1
check "no rows of two runs in one table" '! rows_of_both'

# One experiment.
cat >e.json <<'JSON'
{"name": "../../e", "text": "t", "expect": "e", "repeats": 3,
 "spec": {"data": {"name": "iris"}, "train": {"epochs": 2000, "batch": 16, "eval_every": 0}, "exec": {"device": "cpu"}},
 "axes": {"exec.allocator": ["direct", "arena"], "exec.fusion": ["off", "pointwise"]}}
JSON
"$program" experiment e.json --out e >/dev/null 2>&1 & first=$!
wait_for e/.owner
"$program" experiment e.json --out e >/dev/null 2>err.txt; check "a second start of one experiment: 1 and the first" '[[ $? == 1 ]] && grep -q "process $first" err.txt'
wait $first
check "twelve trials are twelve rows" '[[ $(wc -l <e/results.jsonl) == 12 ]]'

# One experiment whose trainings run on another machine.
there="pipe:exec $program serve --folder $folder/there"
sed 's/"repeats": 3/"repeats": 1000/' e.json >long.json
"$program" experiment long.json --on "$there" --out r >/dev/null 2>&1 & first=$!
wait_for r/.owner
"$program" experiment long.json --on "$there" --out r >/dev/null 2>err.txt; check "a second start there: 1 and the first" '[[ $? == 1 ]] && grep -q "process $first" err.txt'
"$program" experiment e.json --out r >/dev/null 2>err.txt; check "nor are trainings here added to it" '[[ $? == 1 ]] && grep -q "process $first" err.txt'
until_true 'grep -rqs . --include=results.jsonl there'
end INT $first
check "its results came and its claim has ended" '[[ -s r/results.jsonl && ! -e r/.owner ]]'

# Names are data.
echo '{"name": "../../../outside", "data": {"name": "iris"}, "train": {"epochs": 1}, "exec": {"device": "cpu"}}' >names.json
mkdir -p deep/er/still; (cd deep/er/still && "$program" train ../../../names.json >/dev/null 2>&1)
check "a name with a path in it stays in out/" '[[ -z "$(find . -maxdepth 2 -name "outside*")" && $(ls deep/er/still/out | wc -l) == 1 ]]'

exit $((failures > 0))
