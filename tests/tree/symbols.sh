#!/bin/sh
# The library exports what src/zellige.sym lists, neither more nor less, and calls nothing that a library must not: nothing
# that prints, ends the process, changes its environment or signals, or waits for tasks that are not its own; and memory comes
# from the caller's allocator (src/core/memory.c) alone.
set -eu
failures=0
fail() {
  echo "$*"
  failures=1
}
library=$ZLG_BUILDDIR/.libs/libzellige.so
objects=$ZLG_BUILDDIR/.libs/libzlg_all.a
for file in "$library" "$objects"; do [ -e "$file" ] || { echo "$file is missing"; exit 1; }; done

nm -D --defined-only "$library" | awk '{print $3}' | sed 's/@.*//' | grep -vE '^(_init|_fini|_edata|_end|__bss_start|__odr_asan.*)$' |
  sort > "$ZLG_TEST_DIR/exported"
grep . "$ZLG_SRCDIR/src/zellige.sym" | sort > "$ZLG_TEST_DIR/listed"
diff "$ZLG_TEST_DIR/listed" "$ZLG_TEST_DIR/exported" || fail "exports (>) differ from src/zellige.sym (<)"

# Every function that a public header declares is in the list.
sed -n 's/^ZLG_API .*[ *]\(zlg_[a-z0-9_]*\)(.*/\1/p' "$ZLG_SRCDIR"/include/zellige/*.h "$ZLG_SRCDIR"/include/zellige/*.in |
  sort > "$ZLG_TEST_DIR/declared"
diff "$ZLG_TEST_DIR/listed" "$ZLG_TEST_DIR/declared" || fail "declarations in include/ (>) differ from src/zellige.sym (<)"

# `object symbol` for each undefined symbol. Fortified and versioned names count as their plain ones.
nm -A --undefined-only "$objects" | sed -E 's/^.*:([^:]+):.* ([^ ]+)$/\1 \2/; s/ __([a-z_]+)_chk$/ \1/; s/ __isoc[0-9]+_/ /; s/@.*//' \
  > "$ZLG_TEST_DIR/undefined"
# forbid SYMBOLS REASON [OBJECT]: OBJECT alone may.
forbid() {
  grep -E " ($1)\$" "$ZLG_TEST_DIR/undefined" | grep -vE "(^|-)(${3:-none})\.o " && fail "a library must not call these: $2" || true
}
forbid 'printf|vprintf|puts|putchar|perror|psignal|stdout|stderr|warnx?|errx?|verrx?|vwarnx?' 'they print'
forbid 'exit|_exit|_Exit|quick_exit|abort|__assert_fail|atexit' 'they end the process, or hang on its end'
forbid 'setenv|unsetenv|putenv|clearenv|setlocale' 'they change the process for everybody'
# The runtime puts back the handlers that StarPU's and PoCL's start replaces.
forbid 'signal|sigaction|sigprocmask|alarm|setitimer' 'signals belong to the application' runtime
forbid 'starpu_task_wait_for_all|starpu_task_wait_for_n_submitted' 'they wait for tasks of others'
forbid 'openblas_set_num_threads|omp_set_num_threads' 'they change BLAS for everybody'
# The window makes the arrays of handles that StarPU frees.
forbid 'malloc|calloc|realloc|free|strdup|strndup|posix_memalign|aligned_alloc|asprintf|vasprintf|getline' \
  "memory comes from zlg_malloc() and its kin" 'memory|window'
[ "$failures" = 0 ]
