#!/usr/bin/env bash
# Each rank of a training is a process, started with the variables that torchrun, mpirun and srun set.
source "$(dirname "$0")/cli_checks.sh"
set +m
cpu=(--set exec.device=cpu)
export MASTER_PORT=$((20000 + $$ * 2 % 12000))  # and the one after it

# launch N COMMAND...: starts the ranks, the last one first; their output is in rank.R and rank.R.err
launch() {
  local n=$1 r
  shift
  pids=()
  for ((r = n - 1; r >= 0; --r)); do
    RANK=$r WORLD_SIZE=$n LOCAL_RANK=$r LOCAL_WORLD_SIZE=$n MASTER_ADDR=127.0.0.1 "$@" >rank.$r 2>rank.$r.err &
    pids[r]=$!
  done
}
codes() { local r; for ((r = 0; r < ${#pids[@]}; ++r)); do wait "${pids[r]}" 2>/dev/null; printf '%s ' $?; done; }
ranks() { launch "$@"; codes >codes; }
losses() { cut -d, -f1,2,4- "$1/metrics.csv"; }
all_say() { local f; for f in "$@"; do [[ $(wc -l <"$f") == 1 ]] || return 1; done; }
until_there() { until_true "[[ -s $1 ]]"; }

for n in 2 3 4; do
  "$program" train iris "${cpu[@]}" --set exec.gpus=$n --out threads$n >/dev/null 2>&1
  ranks $n "$program" train iris "${cpu[@]}" --out processes$n --run r$n.wsrun --trace full
  check "$n processes: all end with 0" '[[ $(cat codes) =~ ^(0 )+$ ]]'
  check "$n processes train what $n threads train, bit for bit" '[[ -s processes$n/metrics.csv ]] && diff <(losses threads$n) <(losses processes$n) >/dev/null'
  check "only rank 0 prints" '[[ -s rank.0 && ! -s rank.1 && ! -s rank.1.err ]]'
  check "only rank 0 keeps a folder" '[[ $(ls -d processes$n* out 2>/dev/null) == processes$n ]]'
  check "one run remains of all ranks" '[[ $(echo r$n*) == "r$n.wsrun r$n.wsrun.wsck" ]]'
  "$program" stats r$n.wsrun >stats.txt; check "it has the steps once" 'grep -Eq "^steps +800$" stats.txt'
  "$program" stats r$n.wsrun --by rank --json >ranks.json
  # Steps after a pause of all ranks do not count, and a busy machine makes such pauses.
  check "it has the transfers of $n ranks" "python3 -c \"import json; r = json.load(open('ranks.json')); exit(len(r['ranks']) != $n or not 100 <= len(r['steps']) <= 800)\""
done

# mpirun on one host needs no address; srun as well
launch_mpi() {
  pids=()
  for r in 1 0; do
    env OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=$r OMPI_COMM_WORLD_LOCAL_SIZE=2 \
      "$program" train iris "${cpu[@]}" --out mpi >/dev/null 2>&1 &
    pids[r]=$!
  done
}
launch_slurm() {
  pids=()
  for r in 1 0; do
    env SLURM_PROCID=$r SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=$r SLURM_STEP_TASKS_PER_NODE=2 \
      "$program" train iris "${cpu[@]}" --out slurm >/dev/null 2>&1 &
    pids[r]=$!
  done
}
for launcher in mpi slurm; do
  launch_$launcher; codes >codes
  check "ranks of $launcher" '[[ $(cat codes) == "0 0 " ]] && diff <(losses threads2) <(losses $launcher) >/dev/null'
done

# Two hosts share no folder: the trace of rank 1 stays there until somebody joins the files.
mkdir host0 host1
pids=()
for r in 1 0; do
  (cd host$r && exec env RANK=$r WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.2 \
    "$program" train iris "${cpu[@]}" --out o --run h.wsrun --trace full >rank 2>err.txt) &
  pids[r]=$!
done
codes >codes
check "ranks of two hosts" '[[ $(cat codes) == "0 0 " ]] && diff <(losses threads2) <(losses host0/o) >/dev/null && [[ ! -e host1/o ]]'
check "it is said which trace is missing" 'grep -q "The trace of rank 1 is not here.* h.rank1.wsrun" host0/err.txt && [[ -s host1/h.rank1.wsrun ]]'
"$program" convert host0/h.wsrun host1/h.rank1.wsrun h.wsrun >/dev/null && "$program" stats h.wsrun --by rank >stats.txt
check "the files of two hosts are joined" 'grep -q "^2 ranks · 800 steps" stats.txt'

# A checkpoint goes on with any number of ranks.
"$program" train iris "${cpu[@]}" --out one >/dev/null 2>&1
ranks 2 "$program" train iris "${cpu[@]}" --set train.epochs=30 --out some
ranks 4 "$program" train --resume --out some --set train.epochs=60
check "resumed by 4 ranks" '[[ $(cat codes) == "0 0 0 0 " ]]'
"$program" train --resume --out some --set train.epochs=100 --set exec.gpus=1 >/dev/null 2>&1
check "2, 4 and 1 ranks train what one trains" "paste -d, one/metrics.csv some/metrics.csv | awk -F, 'NR > 1 { d = \$4 - \$11; if (d < 0) d = -d; if (d > 1e-5 || \$1 != \$8) bad = 1 } END { exit bad || NR != 801 }'"

# Ctrl+C reaches every process.
launch 3 "$program" train iris "${cpu[@]}" --set train.epochs=100000000 --set train.eval_every=0 --out stopped
until_there stopped/metrics.csv; kill -INT "${pids[@]}"; codes >codes
check "Ctrl+C ends every rank with 0" '[[ $(cat codes) == "0 0 0 " ]] && grep -q "\"status\": \"stopped\"" stopped/summary.json'

# Killed in mid-step: the other ranks end and name it, and nothing is lost.
launch 3 "$program" train iris "${cpu[@]}" --set train.epochs=100000000 --set train.eval_every=0 --out killed --run k.wsrun --trace full
until_there killed/checkpoint.wsck; cp killed/checkpoint.wsck before.wsck; kill -9 "${pids[2]}"; SECONDS=0; codes >codes
check "the other ranks end soon" '(( SECONDS < 30 )) && [[ $(cat codes) == "1 1 137 " ]]'
check "each says who was killed" 'all_say rank.0.err rank.1.err && grep -q "Rank 2 (process ${pids[2]} on .*) ended" rank.0.err && grep -q "Rank 2 (process ${pids[2]}" rank.1.err'
check "the run has all ranks until then" '"$program" stats k.wsrun --by rank | grep -q "^3 ranks" && [[ $(echo k*) == "k.wsrun killed" || $(echo k*) == "k.wsrun k.wsrun.wsck killed" ]]'
ranks 2 "$program" train --resume --out killed --set train.time_limit_s=1
check "the last checkpoint goes on" '[[ -s before.wsck && $(cat codes) == "0 0 " ]]'

# torchrun starts all ranks anew: the training goes on, and both run files stay.
again=(train iris "${cpu[@]}" --set train.epochs=100000000 --set train.eval_every=0 --out again --run again.wsrun --trace full)
launch 2 "$program" "${again[@]}"
until_there again/checkpoint.wsck; kill -9 "${pids[1]}"; codes >codes
launch 2 env TORCHELASTIC_RESTART_COUNT=1 "$program" "${again[@]}"
before=$(wc -l <again/metrics.csv); until_there again.restart1.wsrun; until_true '(( $(wc -l <again/metrics.csv) > before + 100 ))'
kill -INT "${pids[@]}"; codes >codes
check "ranks that were started anew go on" '[[ $(cat codes) == "0 0 " ]] && grep -q "goes on" rank.0.err && ! grep -q "is replaced" rank.0.err && (( $(tail -n 1 again/metrics.csv | cut -d, -f1) > 100 ))'
check "each attempt has a run file" '"$program" stats again.wsrun --by rank | grep -q "^2 ranks" && "$program" stats again.restart1.wsrun --by rank | grep -q "^2 ranks"'
ranks 2 env TORCHELASTIC_RESTART_COUNT=1 "$program" train iris "${cpu[@]}" --set train.batch=8 --set train.epochs=1 --out again
check "with other choices they begin anew" 'grep -q "is replaced" rank.0.err'

launch 2 "$program" train iris "${cpu[@]}" --set train.epochs=100000000 --set train.eval_every=0 --out first
until_there first/metrics.csv; kill -9 "${pids[0]}"; codes >codes
check "without rank 0 all ranks end" '[[ $(cat codes) == "137 1 " ]] && all_say rank.1.err && grep -q "Rank 0 (at 127.0.0.1:.*) ended" rank.1.err'

# A rank that hangs: its threads do not run, or it does not finish a step.
export WARPSIGHT_RANK_TIMEOUT=8  # within it the ranks must meet, too
launch 3 "$program" train iris "${cpu[@]}" --set train.epochs=100000000 --set train.eval_every=0 --out hangs
until_there hangs/metrics.csv; kill -STOP "${pids[1]}"; SECONDS=0; wait "${pids[0]}"; check "a rank hangs: 1" '[[ $? == 1 ]]'; wait "${pids[2]}"
check "the other ranks do not wait for ever and name it" '(( SECONDS < 30 )) && all_say rank.0.err rank.2.err && grep -q "Rank 1 .*for 8.0 s" rank.0.err && grep -q "Rank 1 " rank.2.err'
kill -9 "${pids[1]}"; wait 2>/dev/null

# A cluster suspends all ranks for longer than that and lets them go on.
export WARPSIGHT_RANK_TIMEOUT=5
launch 3 "$program" train iris "${cpu[@]}" --set train.epochs=100000000 --set train.eval_every=0 --out suspended
until_there suspended/metrics.csv; kill -STOP "${pids[@]}"; before=$(wc -l <suspended/metrics.csv); sleep 6; kill -CONT "${pids[@]}"
until_true '(( $(wc -l <suspended/metrics.csv) > before ))'; kill -INT "${pids[@]}"; codes >codes
check "suspended ranks go on" '[[ $(cat codes) == "0 0 0 " ]] && grep -q "\"status\": \"stopped\"" suspended/summary.json'
unset WARPSIGHT_RANK_TIMEOUT

# refused SENTENCE COMMAND...: 2 ranks end with 1 and this sentence
refused() {
  local sentence=$1
  shift
  ranks 2 "$@"
  check "$sentence" '[[ $(cat codes) == "1 1 " ]] && all_say rank.0.err rank.1.err && grep -q "$sentence" rank.0.err && grep -q "$sentence" rank.1.err'
}
differ() { if [[ $RANK == 1 ]]; then "$@" --set train.batch=7; else "$@"; fi; }
refused "was started with train.batch = 7, and rank 0 with 16" differ "$program" train iris "${cpu[@]}" --no-output
refused "has started 2 ranks, one process each: leave exec.gpus out" "$program" train iris "${cpu[@]}" --set exec.gpus=2 --no-output
refused "cannot be shared by so many ranks" "$program" train iris "${cpu[@]}" --set train.batch=1 --no-output
refused "/proc/none" "$program" train iris "${cpu[@]}" --out /proc/none
refused "has 1 row, fewer than the 2 ranks" "$program" train iris "${cpu[@]}" --set train.batch=7 --no-output
printf 'a,b,y\n%s\n' "$(seq 40 | awk '{ print $1 "," $1 * 2 "," $1 % 2 }')" >0.csv
sed 's/^3,6,/3,7,/' 0.csv >1.csv
other_data() { ln -sf "$PWD/$RANK.csv" "$RANK/data.csv"; cd "$RANK" && "$@"; }
mkdir 0 1
refused "Rank 1: its data set .* is not the one of rank 0" other_data "$program" train iris "${cpu[@]}" --set data.name=csv --set data.path=data.csv --set data.label_column=y --no-output
rm 1.csv
refused "data.csv: cannot be opened" other_data "$program" train iris "${cpu[@]}" --set data.name=csv --set data.path=data.csv --set data.label_column=y --no-output

alone() { env "$@" "$program" train iris "${cpu[@]}" --no-output >/dev/null 2>err.txt; }
alone RANK=0 WORLD_SIZE=2; check "no address: 1 and a sentence" '[[ $? == 1 ]] && all_say err.txt && grep -q "MASTER_ADDR is not set" err.txt'
alone RANK=5 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1; check "no such rank: 1 and a sentence" '[[ $? == 1 ]] && all_say err.txt && grep -q "rank 5 of 2" err.txt'
alone RANK=1 WORLD_SIZE=2 MASTER_ADDR=no.such.host.invalid; check "no such host: 1 and a sentence" '[[ $? == 1 ]] && all_say err.txt && grep -q "no.such.host.invalid.*was not found" err.txt'
export WARPSIGHT_RANK_TIMEOUT=0.5
alone RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1; check "rank 0 is not there: 1 and a sentence" '[[ $? == 1 ]] && all_say err.txt && grep -q "Rank 0 does not answer" err.txt'
alone RANK=0 WORLD_SIZE=3 MASTER_ADDR=127.0.0.1; check "the other ranks are not there: 1 and a sentence" '[[ $? == 1 ]] && all_say err.txt && grep -q "No sign of rank 1, 2 " err.txt'
alone RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=70000; check "no such port: 1 and a sentence" '[[ $? == 1 ]] && grep -q "MASTER_PORT is 70000" err.txt'
python3 -c "
import socket, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('127.0.0.1', $((MASTER_PORT + 1)))), s.listen(), open('listens', 'w').write('yes'), time.sleep(60)" &
other=$!
until_there listens
alone RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1; check "the port is in use: 1 and a sentence" '[[ $? == 1 ]] && all_say err.txt && grep -q "Port $((MASTER_PORT + 1)).* is in use" err.txt'
kill $other; wait $other 2>/dev/null
env RANK=0 WORLD_SIZE=2 "$program" train iris --on somewhere 2>err.txt >/dev/null; check "remote and ranks: 2" '[[ $? == 2 ]] && grep -q "leave out torchrun" err.txt'
exit $((failures > 0))
