#!/usr/bin/env bash
# Measures `ironbloom dedup` beside `sort -u` and `awk '!seen[$0]++'` on LINES distinct lines of about 30 bytes.
#
# The three run in turns, ROUNDS times, so that the machine's noise affects all alike; the table shows the medians.
# Output goes to a file, or with OUTPUT=pipe into wc. Prints Markdown. Use: make bench-dedup, or IRONBLOOM=path/to/ironbloom LINES_TOTAL=1000000 bash dedup.sh
set -euo pipefail

ironbloom=${IRONBLOOM:?set IRONBLOOM to the program}
lines=${LINES_TOTAL:-10000000}
rounds=${ROUNDS:-3}
output=${OUTPUT:-file} # or pipe: into wc -l, a third busy process

[[ -x /usr/bin/time ]] || { echo "error: please install GNU time" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A multiplicative hash spreads the numbers, so that no tool meets sorted input; every line is distinct.
awk -v n="$lines" 'BEGIN {
    for (i = 0; i < n; i++)
        printf "https://ex.org/%08x/%07d\n", (i * 2654435761) % 4294967296, (i * 7919) % n
}' > "$work/lines"

run() { # name command…: appends "seconds kilobytes" to the name's file, and counts the lines that came out
    local name=$1
    shift
    if [[ $output == pipe ]]; then
        /usr/bin/time -f '%e %M' -o "$work/time" "$@" < /dev/null | wc -l > "$work/$name.out"
    else
        /usr/bin/time -f '%e %M' -o "$work/time" "$@" < /dev/null > "$work/out"
        wc -l < "$work/out" > "$work/$name.out"
    fi
    cat "$work/time" >> "$work/$name"
}

for ((round = 0; round < rounds; round++)); do
    run ironbloom "$ironbloom" dedup "$work/lines"
    run sort env LC_ALL=C sort -u "$work/lines"
    run awk awk '!seen[$0]++' "$work/lines"
done

median() { # file column
    sort -n -k"$2","$2" "$1" | awk -v c="$2" '{ v[NR] = $c } END { print v[int((NR + 1) / 2)] }'
}

seconds=$(median "$work/ironbloom" 1)
kilobytes=$(median "$work/ironbloom" 2)
cpu=$(awk -F': *' '/model name/ { print $2; exit }' /proc/cpuinfo)
echo "$(date +%F), $cpu, $(nproc) cores; $lines distinct lines, $(stat -c %s "$work/lines") bytes; medians of $rounds rounds, output to a $output."
echo
echo "| command | seconds | memory | lines out | time / ours | memory / ours |"
echo "|---|---|---|---|---|---|"
for name in ironbloom sort awk; do
    case $name in
        ironbloom) command='ironbloom dedup' ;;
        sort) command='LC_ALL=C sort -u' ;;
        awk) command="awk '!seen[\$0]++' ($(basename "$(readlink -f "$(command -v awk)")"))" ;;
    esac
    awk -v name="$command" -v s="$(median "$work/$name" 1)" -v k="$(median "$work/$name" 2)" \
        -v os="$seconds" -v ok="$kilobytes" -v out="$(cat "$work/$name.out")" \
        'BEGIN { printf "| `%s` | %.2f | %.0f MiB | %d | %.1f | %.1f |\n", name, s, k / 1024, out, s / os, k / ok }'
done
