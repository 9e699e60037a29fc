# Draws what each worker did: its share of the work, when it was busy, and a moment of that in which single tasks are seen.
#   gnuplot -c workers.gp WORKERS.tsv TASKS.tsv TITLE PICTURE.png
# WORKERS.tsv: row, name, share of the work (%), busy (% of the time), tasks, is a device (0, 1).
# TASKS.tsv: row, start (s), end (s), is a device.
workers = ARG1; tasks = ARG2; heading = ARG3; picture = ARG4

set encoding utf8
set datafile separator tab
stats workers using 1 nooutput
rows = STATS_max + 1
stats tasks using 3 nooutput
finish = STATS_max
stats tasks using ($3 - $2) nooutput
moment = 30 * STATS_mean < finish ? 30 * STATS_mean : finish # some thirty tasks, in the middle of the run
begin = 0.5 * (finish - moment)

band = 74 * rows # pixels of one panel
height = 2 * band + 255
set terminal pngcairo size 1440,height enhanced font 'DejaVu Sans,15' background '#ffffff'
set output picture
ink = '#20242c'; dim = '#6b7280'
colour(is_device) = is_device > 0 ? 0xe07b39 : 0x3b6fb6
across(pixels) = pixels / 1440.0
down(pixels) = 1 - pixels * 1.0 / height

set multiplot
set border 1 linecolor rgb dim
set yrange [rows - 0.5:-0.5]
unset key
set grid xtics linetype 1 linecolor rgb '#e2e5ea' linewidth 1
set xtics nomirror scale 0.4 textcolor rgb dim
set style fill solid 1 noborder
set label 1 heading at screen across(25), screen down(32) font 'DejaVu Sans Bold,19' textcolor rgb ink
set tmargin at screen down(95); set bmargin at screen down(95 + band)

# Who did how much; the names of the workers serve the panel beside it too.
set lmargin at screen across(190); set rmargin at screen across(430)
set label 2 "share of the work" at screen across(190), screen down(76) font 'DejaVu Sans,14' textcolor rgb ink
set xrange [0:100]; set xtics 0,50,100 format '%.0f %%'
set ytics scale 0 textcolor rgb ink noenhanced
plot workers using (0.5 * $3):1:(0.5 * $3):(0.32):(colour($6)):ytic(2) with boxxyerror linecolor rgb variable, \
     '' using ($3 + 3):1:(sprintf("%.1f %%", $3)) with labels left textcolor rgb ink font 'DejaVu Sans,14'

# When each was busy.
unset label 1
set lmargin at screen across(500); set rmargin at screen across(1420)
set label 2 "busy, in seconds since the first task" at screen across(500), screen down(76)
set xrange [0:1.12 * finish]; set xtics autofreq format '%g'
set ytics format ""
plot tasks using (0.5 * ($2 + $3)):1:2:3:($1 - 0.32):($1 + 0.32):(colour($4)) with boxxyerror linecolor rgb variable, \
     workers using (1.01 * finish):1:(sprintf("%.0f %% busy\n%d tasks", $4, $5)) with labels left textcolor rgb dim font 'DejaVu Sans,12'

# A moment of it.
set lmargin at screen across(190); set rmargin at screen across(1420)
set tmargin at screen down(180 + band); set bmargin at screen down(180 + 2 * band)
set label 2 "a moment in the middle (ms), one box per task" at screen across(190), screen down(161 + band)
set xrange [1000 * begin:1000 * (begin + moment)]; set xtics autofreq format '%g'
set style fill solid 1 border rgb '#ffffff'
set ytics format "%s" noenhanced
plot tasks using (500 * ($2 + $3)):1:(1000 * $2):(1000 * $3):($1 - 0.32):($1 + 0.32):(colour($4)) with boxxyerror linecolor rgb variable, \
     workers using (0):1:(0):ytic(2) with points pointsize 0
unset multiplot
