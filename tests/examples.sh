#!/bin/sh
# The examples do what they say, and the documentation shows the programs and commands that are really there:
# each small program is run and its output checked; the README's program is compared with examples/product.c; the tutorial's
# pieces of C must be lines of the examples, and its commands are run.
set -u
source=${ZLG_SRCDIR:?} build=${ZLG_BUILDDIR:?}
cd "${ZLG_TEST_DIR:?}" || exit 1
failures=0
PATH=$build/tools:$build/examples:$build/examples/coastlines:$PATH

fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# prints NAME PATTERN COMMAND...: the command succeeds and a line of its output matches the whole pattern.
prints() {
  name=$1 pattern=$2
  shift 2
  if ! "$@" > out.txt 2>&1; then
    cat out.txt
    fail "$name: $* failed"
  elif ! grep -qx -- "$pattern" out.txt; then
    cat out.txt
    fail "$name: no line matches $pattern"
  fi
}

# ---- the small programs ------------------------------------------------------------------------------------------------
prints product 'at the end 1\.7533, in the middle 2\.5066' product
lines=$(sed '/^ *$/d; /^\/\*/,/\*\/$/d' "$source/examples/product.c" | grep -c .)
[ "$lines" -le 22 ] || fail "the README's program has $lines lines of C; it is meant to be short"
prints async-adjoint '.* relative difference below 1e-12: yes' async
prints async-report "K'U: 6e+08 pairs in .* s, [1-9][0-9]* tasks" async
prints files 'middle 1\.000000, known 1; end 0\.500499, known 0\.500499' files .
prints kron 'largest error below 1e-15: yes' kron
prints kron-gp 'best: 0\.20; its mean is off by 0\.014 where the data are by 0\.1' kron_gp
prints shared-own-wait "product done, the application's own task not yet: 4 6" shared
prints shared-left-alone "StarPU still runs: yes; the application's task: 2 3" shared
prints shared-value 'mean of 1 - |x - y|: 0\.66666[67], known 2/3' shared

# ---- the coastlines ----------------------------------------------------------------------------------------------------
# refuses NAME PATTERN COMMAND...: the command fails, says so in a line that matches, and leaves no file no.npy.
refuses() {
  name=$1 pattern=$2
  shift 2
  "$@" > out.txt 2>&1 && fail "$name: $* should have failed"
  grep -q -- "$pattern" out.txt || { cat out.txt; fail "$name: no line matches $pattern"; }
  [ ! -e no.npy ] || fail "$name: left a file"
}

if [ -x "$build/examples/coastlines/coast2points" ]; then
  shores=$build/tests/examples/make_shores
  "$shores" shores.nc || fail "make_shores"
  "$shores" wrong.nc wrong || fail "make_shores wrong"
  all='of the shoreline: 20015 km of coast in 2 segments, longitude 180.00 to 270.00, latitude -90.00 to 90.00'
  prints coast-all "18 points, one for 1 links $all" coast2points shores.nc points.npy lengths.npy
  prints coast-stride "6 points, one for 4 links $all" coast2points --stride 4 shores.nc points.npy lengths.npy
  prints coast-at-most "4 points, one for 5 links $all" coast2points --at-most 5 shores.nc points.npy lengths.npy
  prints coast-lake '2 points, .* in 1 segments, .*' coast2points --levels 2 shores.nc points.npy
  refuses coast-counts 'do not add up' coast2points wrong.nc no.npy
  refuses coast-foreign 'cannot be opened as a netCDF-4 (HDF5) file' coast2points "$source/README.md" no.npy
  refuses coast-option 'usage: coast2points' coast2points --stride 0 shores.nc no.npy
  if command -v gnuplot > /dev/null; then
    # The whole demonstration in miniature; it checks by itself that the density holds all the coast there is.
    prints demo 'check: the density summed over the Earth is 20 0[0-9][0-9] km, the shorelines are 20 015 km' \
      env -u OCL_ICD_VENDORS "$source/examples/coastlines/demo.sh" "$build" --data shores.nc --grid 90x45 --smoothing 500 --seconds 1 --out demo
    for picture in coastlines workers; do
      [ "$(head -c 4 demo/$picture.png | tail -c 3)" = PNG ] || fail "demo: no picture demo/$picture.png"
    done
  else
    echo "no gnuplot here: demo.sh was not run"
  fi
else
  echo "built without HDF5: the coastline example was not run"
fi

# ---- what the documentation shows --------------------------------------------------------------------------------------
# The blocks of one language in a Markdown file.
blocks() { awk -v start='```'"$1" '$0 == start { inside = 1; next } /^```/ { inside = 0 } inside' "$2"; }

blocks c "$source/README.md" > readme.c
cmp readme.c "$source/examples/product.c" || fail "the program in README.md is not examples/product.c"

cat "$source"/examples/*.c > examples.c
blocks c "$source/doc/tutorial.md" > tutorial.c
[ -s tutorial.c ] || fail "no C in doc/tutorial.md"
grep -vxFf examples.c tutorial.c && fail "these lines of doc/tutorial.md are in no example"

# The tutorial's pipeline of commands, as one script that stops at the first that fails.
blocks sh "$source/doc/tutorial.md" > tutorial.sh
[ -s tutorial.sh ] || fail "no commands in doc/tutorial.md"
sh -ex tutorial.sh > tutorial.txt 2>&1 || { tail -n 20 tutorial.txt; fail "a command of doc/tutorial.md"; }

[ "$failures" = 0 ] || { echo "$failures failed"; exit 1; }
echo "examples and documentation: all as shown"
