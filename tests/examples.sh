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
prints product 'first 125\.99[0-9], last 125\.99[0-9], known 125\.99[0-9]' product
prints async-adjoint '.* relative difference below 1e-12: yes' async
prints async-report "K'U: 6e+08 pairs in .* s, [1-9][0-9]* tasks" async
prints files 'middle 1\.000000, known 1; end 0\.500499, known 0\.500499' files .
prints shared-own-wait "product done, the application's own task not yet: 4 6" shared
prints shared-left-alone "StarPU still runs: yes; the application's task: 2 3" shared
prints shared-value 'mean of 1 - |x - y|: 0\.66666[67], known 2/3' shared

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
