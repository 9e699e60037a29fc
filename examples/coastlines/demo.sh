#!/bin/sh
# The main job on real data: the density of the world's coastlines, from Debian's GSHHG files to a map.
#   1. coast2points: shorelines -> points on the unit sphere and the kilometres of coast that each stands for
#   2. globe: the map's cells as points on the sphere
#   3. zellige product: the Gaussian density at every cell, on all workers of the machine
#   4. gnuplot: the map
#   5. a smaller product with a PoCL device beside the CPU workers, and a picture of who did what and when
# Everything is left in BUILD_DIR/demo and made anew each time; no terminal is needed.
set -eu

usage() {
  cat <<'TEXT'
usage: demo.sh BUILD_DIR [OPTION...]
  --full          every point of the shorelines (without: as many as this machine does in about --seconds)
  --seconds N     length of the main product, aimed at by a short run before (45)
  --grid CxR      columns x rows of the map (720x360)
  --smoothing KM  lengthscale of the Gaussian (50)
  --data FILE     GSHHG file (Debian's gmt-gshhg-full, else gmt-gshhg-high)
TEXT
}

die() {
  printf 'demo: %s\n' "$@" >&2
  exit 1
}

LC_ALL=C
export LC_ALL
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { usage >&2; exit 2; }
case $1 in -h | --help) usage; exit 0 ;; esac
build=$(cd "$1" 2> /dev/null && pwd) || die "$1: no such directory; expected the one that the library was built in"
shift
full=no seconds=45 columns=720 rows=360 smoothing=50 data=
while [ $# -gt 0 ]; do
  case $1 in
  --full) full=yes; shift; continue ;;
  --help | -h) usage; exit 0 ;;
  esac
  [ $# -ge 2 ] || { usage >&2; exit 2; }
  case $1 in
  --seconds) seconds=$2 ;;
  --grid) columns=${2%x*} rows=${2#*x} ;;
  --smoothing) smoothing=$2 ;;
  --data) data=$2 ;;
  *) usage >&2; exit 2 ;;
  esac
  shift 2
done
for number in "$seconds" "$columns" "$rows" "$smoothing"; do
  case $number in '' | *[!0-9]* | 0*) usage >&2; die "$number: expected a whole number above 0" ;; esac
done
