#!/bin/sh
# nvcc, the inspector: every sixth specialisation of the device texts compiled for sm_80 and sm_90; an error or a spilled
# register fails. (tests/codelet/device_texts compiles all of them, by NVRTC.) Skipped where there is no nvcc.
set -eu
nvcc=$(command -v nvcc || { [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ] && echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc"; }) ||
  { echo "SKIP: no nvcc here"; exit 77; }
texts=$ZLG_BUILDDIR/tests/codelet/device_texts
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for text in kernel_product accumulate kron_factor; do "$texts" --source "$text" > "$work/$text.cu"; done
# A comma parts the values of an option of nvcc's, unless behind a backslash.
"$texts" --list | awk 'NR % 6 == 1' | sed 's/,/\\,/g' > "$work/list"
failed=0
while read -r text options; do
  # shellcheck disable=SC2086 # options are words
  if ! "$nvcc" -fatbin -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -Xptxas -v $options \
    -o "$work/out" "$work/$text.cu" > "$work/log" 2>&1; then
    cat "$work/log"
    echo "nvcc refuses $text $options"
    failed=1
  fi
  kernels=2
  [ "$text" != kron_factor ] || kernels=1
  awk -v what="$text $options" -v wanted=$((2 * kernels)) '
    /entry function/ { split($0, part, "\047"); name = part[2] " " part[4] }
    /spill stores/ && !/ 0 bytes spill stores, 0 bytes spill loads/ { print "spills:", name, $0, what; bad = 1 }
    /Used [0-9]+ registers/ { match($0, /Used [0-9]+/); print name, substr($0, RSTART, RLENGTH), "registers:", what; seen++ }
    END { if (seen != wanted) { print "expected", wanted, "kernels, saw", seen + 0, what; bad = 1 } exit bad }' "$work/log" || failed=1
done < "$work/list"
exit $failed
