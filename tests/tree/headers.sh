#!/bin/sh
# Every public header compiles alone, as strict C99 and as C++11, with all warnings errors: nothing of StarPU, CUDA or BLAS is
# needed and nothing is left to an order of inclusion.
set -eu
failures=0
for header in zellige.h $(cd "$ZLG_SRCDIR/include" && ls zellige/*.h) zellige/version.h; do
  for dialect in "$CC -xc -std=c99" "$CC -xc -std=c17" "$CXX -xc++ -std=c++11" "$CXX -xc++ -std=c++20"; do
    # shellcheck disable=SC2086 # a compiler with its options
    echo "#include \"$header\"" | $dialect -pedantic -Wall -Wextra -Wshadow -Werror -fsyntax-only \
      -I"$ZLG_BUILDDIR/include" -I"$ZLG_SRCDIR/include" - || { echo "$header does not stand alone as $dialect"; failures=1; }
  done
done
[ "$failures" = 0 ]
