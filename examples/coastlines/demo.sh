#!/bin/sh
# The main job on real data: the density of the world's coastlines, from Debian's GSHHG files to a map.
#   1. coast2points: shorelines -> points on the unit sphere and the kilometres of coast that each stands for
#   2. globe: the map's cells as points on the sphere
#   3. zellige product: the Gaussian density at every cell, on all workers of the machine
#   4. gnuplot: the map
#   5. a smaller product with an OpenCL device beside the CPU workers, and a picture of who did what and when
# Results are left in BUILD_DIR/demo and made anew each time; no terminal is needed.
set -eu

usage() {
  cat <<'TEXT'
usage: demo.sh BUILD_DIR [OPTION...]
  --full          every point of the shorelines (without: as many as this machine does in about --seconds)
  --seconds N     length of the main product, aimed at by a short run before (45)
  --grid CxR      columns x rows of the map (720x360)
  --smoothing KM  lengthscale of the Gaussian (50)
  --data FILE     GSHHG file (Debian's gmt-gshhg-full, else gmt-gshhg-high)
  --out DIR       where the results go (BUILD_DIR/demo)
TEXT
}

die() {
  printf 'demo: %s\n' "$@" >&2
  exit 1
}

export LC_ALL=C.UTF-8
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { usage >&2; exit 2; }
case $1 in -h | --help) usage; exit 0 ;; esac
build=$(cd "$1" 2> /dev/null && pwd) || die "$1: no such directory; expected the one that the library was built in"
shift
full=no seconds=45 columns=720 rows=360 smoothing=50 data='' out=$build/demo
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
  --out) out=$2 ;;
  *) usage >&2; exit 2 ;;
  esac
  shift 2
done
for number in "$seconds" "$columns" "$rows" "$smoothing"; do
  case $number in '' | *[!0-9]* | 0*) usage >&2; die "$number: expected a whole number above 0" ;; esac
done

# ---- what is needed ----------------------------------------------------------------------------------------------------
zellige=$build/tools/zellige
[ -x "$zellige" ] || zellige=$build/zellige
coast2points=$build/examples/coastlines/coast2points
globe=$build/examples/coastlines/globe
{ [ -x "$zellige" ] && [ -x "$globe" ]; } || die "$build: the library is not built there; run make first (./bootstrap demo does all)"
[ -x "$coast2points" ] || die "coast2points was not built: configure found no HDF5" \
  "install it (Debian: apt-get install libhdf5-dev), then configure and make again"
command -v gnuplot > /dev/null || die "gnuplot is missing (Debian: apt-get install gnuplot-nox)"
if [ -z "$data" ]; then
  for data in /usr/share/gmt-gshhg/binned_GSHHS_f.nc /usr/share/gmt-gshhg/binned_GSHHS_h.nc; do
    [ ! -e "$data" ] || break
  done
  [ -e "$data" ] || die "the coastlines are missing (Debian: apt-get install gmt-gshhg-full, or gmt-gshhg-high)"
fi
[ -r "$data" ] || die "$data: cannot be read"

mkdir -p "$out" || die "$out: cannot be made"
# StarPU's measurements of the machine and compiled device programs stay here too, in one directory per set of devices.
in_world() { mkdir -p "$out/$1" && export XDG_CACHE_HOME="$out/$1" STARPU_HOME="$out/$1"; }
export STARPU_SILENT=1 OPENBLAS_NUM_THREADS=1
in_world cache

say() { printf '\n== %s\n' "$*"; }
calc() { awk "BEGIN { printf \"%.10g\", $1 }"; }
# Whole numbers with spaces between groups of three digits.
grouped() { printf '%s' "$1" | sed -e ':a' -e 's/^\([0-9]\{1,\}\)\([0-9]\{3\}\)/\1 \2/' -e 'ta'; }
# 2.5e12 as gnuplot writes it.
power() { awk "BEGIN { e = int(log($1) / log(10) + 1e-9); printf \"%.1f × 10^{%d}\", $1 / 10 ^ e, e }"; }
# The number of a member of the report in zellige's JSON.
report() { sed -n "/\"report\"/,\$ s/^ *\"$1\": *\\([-+.eE0-9]*\\).*/\\1/p" "$2" | head -n 1; }
# Bytes before the numbers in a .npy file of version 1.
header() { od -A n -t u2 -j 8 -N 2 "$1" | awk '{ print $1 + 10 }'; }

earth=6371.0088 # km
lengthscale=$(calc "$smoothing / $earth")
# From the sum of km * exp(-distance^2 / (2 smoothing^2)) to km of coast per km^2.
scale=$(calc "1 / (2 * 3.14159265358979 * $smoothing * $smoothing)")
# With so many rows, cells are small enough against the smoothing that their sum is an integral.
resolved() { [ "$1" -gt 0 ] && awk "BEGIN { exit !(20015 / $1 <= 2.5 * $smoothing) }"; }

# ---- points and grid ---------------------------------------------------------------------------------------------------
say "shorelines of $data as points on the sphere"
if [ "$full" = yes ]; then
  "$coast2points" "$data" "$out/points.npy" "$out/lengths.npy" > "$out/points.txt"
else
  "$coast2points" --at-most 1 "$data" "$out/few.npy" > "$out/few.txt"
  "$globe" grid 240 120 "$out/coarse.npy"
  "$zellige" product --kernel gaussian --lengthscale "$lengthscale" --json "$out/coarse.npy" "$out/few.npy" \
    -o "$out/few-density.npy" > "$out/rate.json"
  rate=$(calc "$(report work "$out/rate.json") / $(report seconds "$out/rate.json")")
  rm -f "$out/few.npy" "$out/coarse.npy" "$out/few-density.npy"
  # Where even the fewest points, one per segment, are too many, the map gets coarser, as far as the smoothing allows.
  fewest=$(cut -d ' ' -f 1 "$out/few.txt")
  while most=$(calc "int($rate * $seconds / ($columns * $rows))") && [ "$most" -lt "$fewest" ] && resolved $((rows / 2)); do
    columns=$((columns / 2)) rows=$((rows / 2))
  done
  printf 'this machine does %.2g pairs a second: %s points or fewer for a product of some %s s\n' "$rate" "$(grouped "$most")" "$seconds"
  "$coast2points" --at-most "$most" "$data" "$out/points.npy" "$out/lengths.npy" > "$out/points.txt"
fi
cat "$out/points.txt"
points=$(cut -d ' ' -f 1 "$out/points.txt")
km=$(sed -n 's/.*: \([0-9]*\) km of coast.*/\1/p' "$out/points.txt")
"$globe" grid "$columns" "$rows" "$out/grid.npy"
pairs=$(calc "$points * $columns * $rows")
echo "$(grouped "$points") points x $(grouped $((columns * rows))) cells of a $columns x $rows grid = $(calc "$pairs") pairs"

# ---- the density -------------------------------------------------------------------------------------------------------
say "density, smoothed by a Gaussian of $smoothing km, on all workers"
"$zellige" product --kernel gaussian --lengthscale "$lengthscale" --scale "$scale" \
  "$out/grid.npy" "$out/points.npy" "$out/lengths.npy" -o "$out/density.npy"
# Smoothing moves coast but loses none: the density summed over the Earth must be the length that went in.
total=$("$globe" total "$columns" "$rows" "$out/density.npy")
echo "check: the density summed over the Earth is $(grouped "$total") km, the shorelines are $(grouped "$km") km"
if resolved "$rows"; then
  awk "BEGIN { exit !($total > 0.99 * $km && $total < 1.01 * $km) }" || die "these differ by more than 1 %: the density is wrong"
else
  echo "       (the grid is too coarse for a smoothing of $smoothing km: they need not agree)"
fi
gnuplot -c "$here/map.gp" "$out/density.npy" "$(header "$out/density.npy")" "$columns" "$rows" 1000 "$smoothing" \
  "$(grouped "$km") km of shoreline, $(grouped "$points") points, $(power "$pairs") pairs" "$out/coastlines.png"

# ---- with a device -----------------------------------------------------------------------------------------------------
# Where there is no other, the device is PoCL, which is made of CPU cores: it gets one, the CPU workers the others.
say "a smaller product, with an OpenCL device beside the CPU workers"
cpus=$(nproc)
[ "$cpus" -le 1 ] || cpus=$((cpus - 1))
[ "$cpus" -le 3 ] || cpus=3
"$globe" grid 360 180 "$out/small-grid.npy"
"$coast2points" --at-most 1 "$data" "$out/small-points.npy" "$out/small-lengths.npy" > "$out/small.txt"
in_world cache-device
if STARPU_OPENCL_ON_CPUS=1 STARPU_WORKERS_NOBIND=1 POCL_DEVICES=pthread POCL_MAX_PTHREAD_COUNT=1 \
  "$zellige" product --kernel gaussian --lengthscale "$lengthscale" --scale "$scale" --workers "$cpus" --opencl 1 \
  --trace "$out/trace.tsv" "$out/small-grid.npy" "$out/small-points.npy" "$out/small-lengths.npy" -o "$out/small-density.npy"; then
  # A row per worker, in the order of their first tasks, and their tasks by row. Time counts from the first task: before it,
  # the device's program is compiled, or found in its cache. "OpenCL 0 (pthread-some long name)" takes two lines.
  awk -F '\t' -v workers="$out/workers.tsv" -v tasks="$out/tasks.tsv" '
    function short(name) {
      if (split(name, part, / [(]/) < 2) return name
      sub(/[)]$/, "", part[2])
      sub(/^pthread.*/, "PoCL", part[2])
      return part[1] "\\n" substr(part[2], 1, 14)
    }
    BEGIN { rows = 0; first = -1 }
    NR == 1 { next }
    first < 0 || $4 < first { first = $4 }
    $5 > end { end = $5 }
    !($1 in row) { row[$1] = rows; name[rows] = short($1); device[rows] = $2 != "cpu"; rows++ }
    { r = row[$1]; work[r] += $6; all += $6; count[r]++; busy[r] += $5 - $4; of[n] = r; from[n] = $4; to[n++] = $5 }
    END {
      for (i = 0; i < n; i++) printf "%d\t%.9f\t%.9f\t%d\n", of[i], from[i] - first, to[i] - first, device[of[i]] > tasks
      for (r = 0; r < rows; r++)
        printf "%d\t%s\t%.2f\t%.1f\t%d\t%d\n", r, name[r], 100 * work[r] / all, 100 * busy[r] / (end - first), count[r], device[r] > workers
    }' "$out/trace.tsv"
  gnuplot -c "$here/workers.gp" "$out/workers.tsv" "$out/tasks.tsv" \
    "Who did it: $(power "$(calc "$(cut -d ' ' -f 1 "$out/small.txt") * 360 * 180")") pairs, $cpus CPU worker$([ "$cpus" = 1 ] || echo s) and an OpenCL device" \
    "$out/workers.png"
else
  die "the product with an OpenCL device failed; PoCL (Debian: apt-get install pocl-opencl-icd) is one for any machine" \
    "the map is drawn: $out/coastlines.png"
fi

say "pictures"
echo "$out/coastlines.png  the map"
echo "$out/workers.png     who did it, and when"
