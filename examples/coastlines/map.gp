# Draws a density on the globe as a map.   gnuplot -c map.gp DENSITY.npy HEADER COLUMNS ROWS SCALE SMOOTHING SUBTITLE MAP.png
# HEADER: bytes before the numbers of the .npy file. SCALE: from its numbers to km of coast per 1000 km^2. SMOOTHING in km.
file = ARG1; header = int(ARG2); columns = int(ARG3); rows = int(ARG4)
scale = ARG5 + 0.0; smoothing = ARG6; subtitle = ARG7; picture = ARG8

set encoding utf8
set terminal pngcairo size 1440,870 enhanced font 'DejaVu Sans,15' background '#0d0f14'
set output picture

# "inferno", a perceptually uniform palette (Smith & van der Walt, 2015), at every tenth
set palette maxcolors 0 defined (0 '#000004', 0.1 '#160b39', 0.2 '#420a68', 0.3 '#6a176e', 0.4 '#932667', 0.5 '#bc3754', \
  0.6 '#dd513a', 0.7 '#f37819', 0.8 '#fca50a', 0.9 '#f6d746', 1 '#fcffa4')
least = 0.5; most = 500.0
set logscale cb
set cbrange [least:most]

light = '#d8dce6'; dim = '#8a90a0'
set border linecolor rgb dim
# twice as wide as high, in pixels
set lmargin at screen 70.0/1440; set rmargin at screen 1410.0/1440
set tmargin at screen 800.0/870; set bmargin at screen 130.0/870
set xrange [-180:180]; set yrange [-90:90]
set xtics scale 0.4 textcolor rgb dim offset 0,0.3 ("180°" -180, "150°W" -150, "120°W" -120, "90°W" -90, "60°W" -60, \
  "30°W" -30, "0°" 0, "30°E" 30, "60°E" 60, "90°E" 90, "120°E" 120, "150°E" 150, "180°" 180)
set ytics scale 0.4 textcolor rgb dim offset 0.4,0 ("60°S" -60, "30°S" -30, "0°" 0, "30°N" 30, "60°N" 60)
set grid xtics ytics front linetype 1 linecolor rgb '#c8ffffff' linewidth 0.5
unset key

set label 1 "The density of the world's coastlines" at screen 70.0/1440,835.0/870 font 'DejaVu Sans Bold,21' textcolor rgb light
set label 2 subtitle at screen 1410.0/1440,833.0/870 right font 'DejaVu Sans,13.5' textcolor rgb light
set label 3 sprintf("km of coast per 1000 km²,\nsmoothed by a Gaussian of %s km", smoothing) at screen 70.0/1440,66.0/870 \
  font 'DejaVu Sans,14' textcolor rgb light
set colorbox horizontal user origin screen 440.0/1440,52.0/870 size screen 940.0/1440,26.0/870
set cbtics ("≤ 0.5" 0.5, "1" 1, "3" 3, "10" 10, "30" 30, "100" 100, "≥ 500" 500) textcolor rgb light scale 0.4 offset 0,0.3

shown(x) = x * scale < least ? least : x * scale
plot file binary skip=header array=(columns,rows) format='%float32' dx=360.0/columns dy=180.0/rows \
  origin=(-180+180.0/columns,-90+90.0/rows) using (shown($1)) with image
