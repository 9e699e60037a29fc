#!/bin/sh
# The tree keeps the house's rules, and the checker would notice if it did not: each kind of breach is seeded in a scratch
# copy, where the checker has to name it.
set -eu
check=$ZLG_SRCDIR/tests/tree/check-tree
failures=0

"$check" "$ZLG_SRCDIR" || { echo "the tree breaks the rules above"; failures=1; }

copy=$ZLG_TEST_DIR/tree
mkdir "$copy"
"$check" --list "$ZLG_SRCDIR" > "$ZLG_TEST_DIR/list"
tar -C "$ZLG_SRCDIR" -T "$ZLG_TEST_DIR/list" -cf - | tar -C "$copy" -xf -
chmod -R u+w "$copy"
"$check" "$copy" > "$ZLG_TEST_DIR/clean" || true

# seed FILE LINE EXPECTED: with LINE added to FILE the checker must say something that matches EXPECTED, about that file.
seed() {
  mkdir -p "$copy/$(dirname "$1")"
  [ ! -e "$copy/$1" ] || cp "$copy/$1" "$ZLG_TEST_DIR/kept"
  printf '%s\n' "$2" >> "$copy/$1"
  "$check" "$copy" > "$ZLG_TEST_DIR/seeded" && echo "no breach seen at all with '$2' in $1"
  if ! grep -vxFf "$ZLG_TEST_DIR/clean" "$ZLG_TEST_DIR/seeded" | grep -q -- "$3"; then
    echo "not noticed: '$2' in $1 (expected words: $3)"
    cat "$ZLG_TEST_DIR/seeded"
    failures=$((failures + 1))
  fi
  rm "$copy/$1"
  [ ! -e "$ZLG_TEST_DIR/kept" ] || mv "$ZLG_TEST_DIR/kept" "$copy/$1"
}

seed tools/zellige.c '#include "src/core/context.h"' 'tools/zellige.c: includes src/core/context.h'
seed tools/zellige.c '#include <starpu.h>' 'tools/zellige.c: StarPU is seen'
seed examples/product.c '#include "src/core/context.h"' 'examples/product.c: includes'
seed include/zellige/kernel.h '#include <starpu.h>' 'include/zellige/kernel.h: StarPU is seen'
seed include/zellige/kernel.h '#include <cuda.h>' 'include/zellige/kernel.h: cuda.h belongs'
seed include/zellige/kernel.h '#include <cblas.h>' 'include/zellige/kernel.h: cblas.h belongs'
seed include/zellige/kernel.h '#include "src/core/error.h"' 'include/zellige/kernel.h: includes'
seed include/zellige/kernel.h '#include "config.h"' 'include/zellige/kernel.h: config.h'
seed src/operator/kernel.c '#include <starpu.h>' 'src/operator/kernel.c: StarPU is seen'
seed src/operator/kernel.c '#include "src/plan/graph.h"' 'src/operator/kernel.c: StarPU is seen'
seed src/solve/cg.c '#include <starpu_task.h>' 'src/solve/cg.c: StarPU is seen'
seed src/formula/parse.c '#include "src/plan/plan.h"' 'src/formula/parse.c: includes'
seed src/plan/plan.h '#include "src/operator/operator.h"' 'src/plan/plan.h: includes'
seed src/core/context.c '#include "src/plan/plan.h"' 'src/core/context.c: includes'
seed src/core/context.c '#include "codelets/accumulate/args.h"' 'src/core/context.c: includes .* core knows no codelet'
seed src/io/npy.c '#include "src/plan/plan.h"' 'src/io/npy.c: includes'
seed codelets/kernel_product/codelet.c '#include "src/plan/plan.h"' 'codelets/kernel_product/codelet.c: includes'
seed codelets/kernel_product/codelet.c '#include "codelets/accumulate/args.h"' 'the inside of another codelet'
seed codelets/kernel_product/cpu.c '#include <starpu.h>' 'codelets/kernel_product/cpu.c: StarPU is seen'
seed codelets/kernel_product/cpu.c '#include "codelets/common/starpu_compat.h"' 'codelets/kernel_product/cpu.c: StarPU is seen'
seed codelets/accumulate/eighth.c '/* one file too many */' 'codelets/accumulate: needs 8 files'
seed tools/info.c 'struct zlg_accumulate_args;' 'codelets/accumulate: needs 8 files'
seed codelets/ops.def 'ZLG_CODELET(untried, ZLG_ON_CPU)' 'codelets/untried: no test body'
# Written in two parts so that this file holds none of them.
seed README.md "see http://deb"".debian.org/" 'the address of a package registry'
seed bootstrap "pip install -i https://pypi"".org/simple x" 'the address of a package registry'
seed README.md "in /ho""me/somebody/zellige" 'a path of one machine'
seed tests/support.c "/* TO""DO */" 'a word that marks unfinished work'
seed tests/support.c "/* FIX""ME: later */" 'a word that marks unfinished work'

[ "$failures" = 0 ]
