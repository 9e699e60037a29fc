#!/bin/sh
# zellige predict from a terminal's side: what it prints, draws, leaves behind and refuses.
set -u
: "${ZLG_SRCDIR:?}" "${ZLG_BUILDDIR:?}" "${ZLG_TEST_DIR:?}"
zellige=$ZLG_BUILDDIR/tools/zellige
machine=$ZLG_SRCDIR/perfmodels/machines/a100-nvlink.machine
. "$ZLG_SRCDIR/tests/tool/expect.sh"
cd "$ZLG_TEST_DIR" || exit 1
sizes="-m 1e5 -n 2e6 -d 50"
run="$zellige predict --machine $machine $sizes"

# shellcheck disable=SC2086 # words of a command
{
expect 0 'speed-up' $run --gpus 2 -w 8 --plot gantt.svg
grep -q 'against 1 GPU and 8 CPU workers' out || fail "no comparison with one GPU: $(cat out)"
grep -q '8 CPU workers alone' out || fail "no comparison with the cores: $(cat out)"
grep -q 'counts and described rates' out || fail "where the models come from is not said: $(cat out)"
grep -q 'GPU 1 ' out || fail "no line for the second GPU: $(cat out)"
if command -v gnuplot > /dev/null; then
  grep -q 'products' gantt.svg && grep -q 'GPU 1' gantt.svg || fail "the picture names no work or no card"
  [ "$(grep -c '<polygon\|<rect\|<path' gantt.svg)" -gt 10 ] || fail "the picture shows no tasks"
fi
expect 0 '"cpu_only": null' $run --alone --json --gpus 1
[ -z "$(command -v python3)" ] || python3 -c 'import json, sys
r = json.load(open("out"))
s = r["simulation"]
assert abs(sum(w["share"] for w in s["workers"]) - 1) < 1e-9, "shares do not add up"
assert all(abs(w["busy"] + w["idle"] - s["seconds"]) < 1e-9 for w in s["workers"]), "busy and idle do not add up"
assert sum(w["tasks"] for w in s["workers"]) == s["tasks"], "tasks do not add up"
assert any(l["bytes"] > 0 for l in s["links"]), "nothing was moved"
assert s["seconds"] >= s["limits"]["links"]' || fail "the object of --json does not add up"
expect 0 'points in files' $run --alone --from disk
expect 0 'f64' $run --alone --type f64 -k matern52
expect 0 'scheduler lws' $run --alone --sched lws -w 0
expect 1 'is no scheduler' $run --sched nonesuch
expect 2 'expected --machine' "$zellige" predict $sizes
expect 2 'expected --rows' "$zellige" predict --machine $machine
expect 2 'has 8' $run --gpus 9
expect 2 'has 64 cores' $run -w 65
expect 2 'whole number' $run -n 1.5
expect 2 'memory or disk' $run --from tape
expect 2 'FILE.svg' $run --plot x.gif
expect 1 'none.machine: No such file' "$zellige" predict --machine none.machine $sizes
sed 's/^cores = .*/cores = many/' "$machine" > bad.machine
expect 1 'bad.machine, line [0-9]*: cores = .many.; expected a whole number' "$zellige" predict --machine bad.machine $sizes
sed '/^disk/d' "$machine" > bad.machine
expect 2 'describes no disk' "$zellige" predict --machine bad.machine $sizes --from disk
expect 1 'no machine is described' "$zellige" info
}

# An interrupt ends the simulation too, and takes its files away; the command dies of the signal.
"$ZLG_BUILDDIR/libtool" --mode=execute sh -c 'exec "$@"' sh "$zellige" predict --machine "$machine" -m 1e5 -n 1e9 -d 50 > out 2> err &
command=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
  [ -z "$(find "$TMPDIR" -name 'zellige-predict-*')" ] || break
  sleep 1
done
kill -s TERM "$command"
wait "$command"
status=$?
[ "$status" = 143 ] || fail "after SIGTERM: exit $status, expected 143; $(cat err)"
left=$(find "$TMPDIR" -name 'zellige-*' | head -n 3)
[ -z "$left" ] || fail "left behind: $left"
exit $failed
