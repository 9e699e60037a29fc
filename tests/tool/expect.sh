# For scripts that try the command, which source this: what did not come out as expected is said and counted in `failed`.
# What a command says is left in ./out and ./err.
failed=0
fail() {
  echo "$*"
  failed=1
}
# expect STATUS WORDS COMMAND ...: its exit status, and WORDS somewhere in what it says.
expect() {
  status=$1 words=$2
  shift 2
  "$@" > out 2> err
  got=$?
  [ "$got" = "$status" ] || fail "$*: exit $got, expected $status; $(cat err)"
  grep -q -- "$words" out err || fail "$*: '$words' is not in: $(cat out err)"
}
