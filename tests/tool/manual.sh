#!/bin/sh
# The manual pages and the completion know every option and every function, and no others. The C text in zellige(3) compiles.
set -u
: "${ZLG_SRCDIR:?}" "${ZLG_BUILDDIR:?}" "${ZLG_TEST_DIR:?}"
zellige=$ZLG_BUILDDIR/tools/zellige
page=$ZLG_SRCDIR/doc/zellige.1
overview=$ZLG_SRCDIR/doc/zellige.3
completion=$ZLG_SRCDIR/tools/completion/zellige
failed=0
fail() {
  echo "$*"
  failed=1
}
cd "$ZLG_TEST_DIR" || exit 1

# Roff without its fonts and escapes.
plain() { sed -e 's/\\f[A-Z]//g' -e 's/\\-/-/g' -e 's/\\e/\\/g' "$1"; }
plain "$page" > page
plain "$overview" > overview

commands=$("$zellige" --help | sed -n '/^Commands:/,/^$/ s/^  \([a-z]*\) .*/\1/p')
[ -n "$commands" ] || fail "zellige --help lists no commands"
: > options
for command in $commands; do
  grep -q "^\.SS zellige $command\$" page || fail "zellige.1: no section on $command"
  grep -qw "$command" "$completion" || fail "completion: $command is missing"
  [ "$command" = help ] || "$zellige" "$command" --help | grep -o -- '--[a-z][a-z0-9-]*' >> options
done
[ "$(sort -u options | wc -l)" -ge 25 ] || fail "only $(sort -u options | wc -l) options found in the help texts"
for option in $(sort -u options); do
  grep -q -- "$option\\b" page || fail "zellige.1: $option is missing"
  grep -q -- "$option\\b" "$completion" || fail "completion: $option is missing"
done
for option in $(grep -o -- '--[a-z][a-z0-9-]*' page "$completion" | sed 's/^[^:]*://' | sort -u); do
  [ "$option" = --version ] || grep -qx -- "$option" options || fail "$option is documented and no command has it"
done

grep -o 'zlg_[a-z0-9_]* ()' overview | sed 's/ ()//' | sort -u > named
sort -u "$ZLG_SRCDIR/src/zellige.sym" > exported
diff exported named > differences || fail "zellige.3 beside src/zellige.sym: $(cat differences)"

sed -n '/^\.EX/,/^\.EE/p' overview | grep -v '^\.E' > example.c
# shellcheck disable=SC2086 # CC may have options
${CC:-cc} -std=c99 -Wall -Wextra -Werror -I"$ZLG_SRCDIR/include" -I"$ZLG_BUILDDIR/include" -c example.c -o example.o ||
  fail "zellige.3: its example does not compile"
exit $failed
