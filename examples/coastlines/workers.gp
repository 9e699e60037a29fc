# Draws what each worker did: its share of the work, and when it was busy.   gnuplot -c workers.gp WORKERS.tsv TASKS.tsv TITLE PICTURE.png
# WORKERS.tsv: row, name, share of the work (%), busy (s), tasks, is a device (0, 1).   TASKS.tsv: row, start (s), end (s), is a device.
workers = ARG1; tasks = ARG2; heading = ARG3; picture = ARG4

set datafile separator tab
stats workers using 1 nooutput
rows = STATS_max + 1
stats tasks using 3 nooutput
finish = STATS_max

height = 210 + 90 * rows
set encoding utf8
set terminal pngcairo size 1440,height enhanced font 'DejaVu Sans,15' background '#ffffff'
set output picture
ink = '#20242c'; dim = '#6b7280'
colour(is_device) = is_device > 0 ? 0xe07b39 : 0x3b6fb6

set multiplot
set tmargin at screen 1 - 95.0 / height; set bmargin at screen 75.0 / height
set border 1 linecolor rgb dim
set yrange [rows - 0.4:-0.6]
unset key
set grid xtics linetype 1 linecolor rgb '#e2e5ea' linewidth 1
set xtics nomirror scale 0.4 textcolor rgb dim
set style fill solid 1 noborder

# left: who did how much; the names of the workers serve both halves
set lmargin at screen 190.0 / 1440; set rmargin at screen 500.0 / 1440
set label 1 heading at screen 25.0 / 1440, screen 1 - 32.0 / height font 'DejaVu Sans Bold,19' textcolor rgb ink
set label 2 "share of the work (%)" at screen 190.0 / 1440, screen 1 - 75.0 / height font 'DejaVu Sans,14' textcolor rgb ink
set xrange [0:100]; set xtics 0,25,100
set ytics scale 0 textcolor rgb ink
plot workers using (0.5 * $3):1:(0.5 * $3):(0.32):(colour($6)):ytic(2) with boxxyerror linecolor rgb variable, \
     '' using ($3 + 2):1:(sprintf("%.1f", $3)) with labels left textcolor rgb ink font 'DejaVu Sans,14'

# right: a box per task
unset label 1
set lmargin at screen 580.0 / 1440; set rmargin at screen 1400.0 / 1440
set label 2 "time since the start (s), one box per task" at screen 580.0 / 1440, screen 1 - 75.0 / height font 'DejaVu Sans,14' \
  textcolor rgb ink
set xrange [0:finish]; set xtics autofreq
set ytics format ""
set style fill solid 1 border rgb '#ffffff'
plot tasks using (0.5 * ($2 + $3)):1:2:3:($1 - 0.32):($1 + 0.32):(colour($4)) with boxxyerror linecolor rgb variable linewidth 0.5
unset multiplot
