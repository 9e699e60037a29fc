#!/bin/sh
# What `make install` leaves is enough for a user who has nothing else of ours: programs in C and C++, built with what
# pkg-config says, run; so does the command. Tried with a prefix that has a space in it, with DESTDIR, and undone again.
set -eu
cd "$ZLG_TEST_DIR"
unset MAKEFLAGS MAKELEVEL MFLAGS DESTDIR
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

build_and_run() { # COMPILER SOURCE NAME: with flags by pkg-config, which quotes what has spaces in it
  eval "$1 $ZLG_SANITIZE -o '$3' '$2' $(zellige_flags --cflags --libs) -lm" || { fail "$3 does not build"; return; }
  "./$3" || fail "$3"
}

# 1. Straight into a prefix; the build tree is configured for another one, and everything that is installed is found by it.
prefix=$ZLG_TEST_DIR/pre\ fix
make -C "$ZLG_BUILDDIR" install prefix="$ZLG_TEST_DIR/plain" > install.log 2>&1 || { cat install.log; exit 1; }
mv "$ZLG_TEST_DIR/plain" "$prefix"
# Moved, as a package manager or a user may do: pkg-config finds the prefix from where the file lies.
PKG_CONFIG_PATH=$prefix/lib/pkgconfig
export PKG_CONFIG_PATH
zellige_flags() { pkg-config --define-prefix "$@" zellige; }
LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
mkdir "user of it"
cd "user of it"
cp "$ZLG_SRCDIR/tests/install/consumer.c" consumer.c
cp consumer.c consumer.cc
build_and_run "$CC -std=c99 -pedantic -Wall -Werror" consumer.c consumer-c
build_and_run "$CXX -std=c++11 -pedantic -Wall -Werror" consumer.cc consumer-cc
[ "$(zellige_flags --modversion)" = "$(sed -n 's/^version=//p' "$ZLG_SRCDIR/VERSION")" ] || fail "version in zellige.pc"
"$prefix/bin/zellige" --version | grep -q "$(zellige_flags --modversion)" || fail "the installed command"
case $(zellige_flags --cflags --libs) in *starpu* | *hwloc*) fail "zellige.pc asks its users for more than zellige" ;; esac
cd ..

# 2. DESTDIR: the same files under it, and nothing outside it; uninstall takes them all away.
make -C "$ZLG_BUILDDIR" install DESTDIR="$ZLG_TEST_DIR/dest" prefix=/opt/zellige >> install.log 2>&1 || fail "make install DESTDIR"
(cd "$prefix" && find . -type f -o -type l) | sort > plain.list
(cd dest/opt/zellige && find . -type f -o -type l) | sort > dest.list
diff plain.list dest.list || fail "DESTDIR installs other files (>) than a plain install (<)"
[ "$(ls dest)" = opt ] && [ "$(ls dest/opt)" = zellige ] || fail "DESTDIR has more than the prefix: $(ls dest dest/opt)"
for file in lib/libzellige.so include/zellige.h include/zellige/version.h include/zellige/kernel.h lib/pkgconfig/zellige.pc \
  bin/zellige share/man/man1/zellige.1; do
  [ -e "$prefix/$file" ] || fail "$file was not installed"
done
make -C "$ZLG_BUILDDIR" uninstall DESTDIR="$ZLG_TEST_DIR/dest" prefix=/opt/zellige >> install.log 2>&1 || fail "make uninstall"
left=$(find dest -type f -o -type l)
[ -z "$left" ] || fail "make uninstall left: $left"

[ "$failures" = 0 ]
