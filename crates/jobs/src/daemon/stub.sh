#!/bin/sh
# A program with the command line of a project. `quick` ends at once, `fail` fails, `slow` waits until it is asked to end, `deaf` until it
# is killed, `twice` waits in its first run and ends in its second.
if [ "$1" = list ]; then
    printf 'quick\nfail\nslow\ndeaf\ntwice\n'
    exit 0
fi
[ "$1" = crawl ] && [ "$3" = --out ] || exit 2
spider=$2
out=$4
shift 4
echo "arguments: $*"
mkdir -p "$out"
wait_for_the_end() {
    sleep 600 &
    trap 'kill $!; exit 130' TERM
    touch "$out/waits"
    wait
}
case $spider in
quick) printf '{"n":1}\n{"n":2}\n' >"$out/items.jsonl" ;;
fail) exit 1 ;;
slow) wait_for_the_end ;;
deaf)
    trap '' TERM
    touch "$out/waits"
    sleep 600
    ;;
twice) [ -e "$out/waits" ] || wait_for_the_end ;;
esac
