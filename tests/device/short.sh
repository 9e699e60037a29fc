#!/bin/sh
# The bundle for a machine with a card and nothing else, as it is unpacked there, run in its short form with a pretended card
# as the card: every step passes, and the report and the models are where it says.
set -eu
: "${ZLG_BUILDDIR:?}" "${ZLG_SRCDIR:?}" "${ZLG_CUDA_DIR:?}" "${ZLG_DEVICE_TESTS:?}"
cd "$ZLG_TEST_DIR"
# shellcheck disable=SC2086 # a list
"$ZLG_SRCDIR/tests/device/bundle" "$ZLG_BUILDDIR" "$ZLG_SRCDIR" "$ZLG_CUDA_DIR" "$PWD" $ZLG_DEVICE_TESTS
fail() {
  echo "$1" >&2
  cat report/report.md report/log/* >&2 2> /dev/null || :
  exit 1
}
ZLG_DEVICE_LIBRARIES=$ZLG_BUILDDIR/tests/cuda/cards LD_LIBRARY_PATH='' ZLG_DEVICE_SECONDS=480 \
  zellige-device/run --short report > said 2>&1 || fail "run ended with status $?"
cat said
for step in 'StarPU starts on the card' 'What the library sees' 'Tests: codelet-accumulate' 'Tests: codelet-kron_factor' 'Tests: operator-kernel' Calibration; do
  grep -q "^## $step: passed" report/report.md || fail "the report has no \"$step: passed\""
done
grep -q '1 cases, [1-9][0-9]* assertions, 0 failures' report/report.md || fail 'no test ran'
ls report/home/.starpu/sampling/codelets/45/zlg_accumulate-* > /dev/null || fail 'no models'
# What it was given beside itself were the pretended cards only: nothing of the build tree.
LD_LIBRARY_PATH=$PWD/zellige-device/lib ldd zellige-device/bin/zellige | grep "$ZLG_BUILDDIR" && fail 'it loads from the build tree'
status=0
zellige-device/run --no-such-thing > /dev/null 2>&1 || status=$?
[ "$status" = 2 ] || fail "an unknown option: status $status, expected 2"
