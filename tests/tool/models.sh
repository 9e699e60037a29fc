#!/bin/sh
# zellige calibrate and zellige models from a terminal's side: what they print, draw and refuse.
set -u
: "${ZLG_SRCDIR:?}" "${ZLG_BUILDDIR:?}" "${ZLG_TEST_DIR:?}"
zellige=$ZLG_BUILDDIR/tools/zellige
. "$ZLG_SRCDIR/tests/tool/expect.sh"
cd "$ZLG_TEST_DIR" || exit 1
models="$zellige models --directory here"
run="$zellige calibrate -w 1 --opencl 0 --directory here"

# shellcheck disable=SC2086 # words of a command
{
expect 1 'here: No such file' $models
mkdir here
expect 0 "'zellige calibrate' makes them" $models
expect 1 'no models to plot' $models plot x.svg
expect 2 'expected 25 to 800' $run --samples 24
expect 2 'no argument expected' $run x
expect 1 'matches no codelet' $run --only nothing
expect 0 'median error' $run --short --progress always
grep -q '100%' err || fail "no progress to the end: $(cat err)"
expect 0 '0 points measured' $run --short
expect 0 '"points_kept": 0' $run --short --fresh --json --only 'accumulate/*'
expect 0 'kernel_product/gaussian-f32-d3-r1' $models
expect 0 '"skipped": \[\]' $models list --json
expect 0 'no models of that name' $models --only 'x*'
expect 0 '1.00' $models compare here
expect 2 'expected FILE.svg' $models plot x.gif
expect 2 'expected list, plot or compare' $models draw
expect 2 'expected a directory' $models compare
if command -v gnuplot > /dev/null; then
  "$zellige" models --directory here plot x.svg || fail "plot failed"
  grep -q 'gaussian-f32-d3-r1' x.svg || fail "the plot does not name its model"
fi
"$ZLG_BUILDDIR/libtool" --mode=execute env PATH=/nonexistent "$zellige" models --directory here plot y.svg 2> err &&
  fail "plotted without gnuplot"
grep -q 'gnuplot is not installed' err || fail "no word of gnuplot: $(cat err)"
if command -v starpu_perfmodel_display > /dev/null; then
  STARPU_PERF_MODEL_DIR=$PWD/here starpu_perfmodel_display -s zlg_kernel_product-gaussian-f32-d3-r1 > shown 2>&1 ||
    fail "StarPU cannot read it: $(cat shown)"
  grep -q 'cpu0_impl0' shown || fail "StarPU shows no CPU: $(cat shown)"
fi
# Interrupted in the middle: it ends by the signal and says how to go on; what was measured is not measured again.
mkdir partly
$zellige calibrate -w 1 --opencl 0 --directory partly --only 'kernel_product/gaussian*' > out 2> err &
pid=$!
waited=0
until ls partly/codelets/45/zlg_kernel_product-gaussian-f32-d3-r1.* > /dev/null 2>&1 || [ $waited -ge 600 ]; do
  sleep 0.1
  waited=$((waited + 1))
done
kill -s TERM $pid
wait $pid
[ $? = $((128 + 15)) ] || fail "interrupted: not ended by the signal: $(cat err)"
grep -q 'cancelled after [1-9][0-9]* of 64 points' err || fail "interrupted: no word of it: $(cat err)"
grep -q 'the same command goes on from there' err || fail "interrupted: no word of what is kept: $(cat err)"
expect 0 ' 0 points measured, 8 kept' $zellige calibrate -w 1 --opencl 0 --directory partly --only 'kernel_product/gaussian-f32-d3-r1'
for file in here/codelets/45/zlg_kernel_product-*; do echo damage >> "$file"; done
expect 0 'is skipped: damaged' $models
STARPU_PERF_MODEL_DIR=$PWD/here expect 0 'performance model was skipped' "$zellige" info -w 1 --opencl 0
}
exit $failed
