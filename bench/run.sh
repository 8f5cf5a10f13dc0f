#!/bin/bash
# Throughput of one site: huntsman beside the spider crate and Scrapy. See README.md.
# Environment, with defaults:
#   RUNS=3  PAGES=5000  KB=20  LINKS=40  PORT=8190  SERVER_CPU=0  CLIENT_CPU=1  LIMIT=300 (seconds of one run)
#   CRAWLERS="huntsman huntsman-text spider scrapy"   the first is what ratios are to
#   WORK=../target/bench                              builds, the site and outputs; may be deleted at any time
#   CLI, SPIDER, SCRAPY                               executables to use instead of building or installing them
set -eu
here=$(cd "$(dirname "$0")" && pwd)
project=$(dirname "$here")
crawlers=${CRAWLERS:-huntsman huntsman-text spider scrapy}
scrapy_version=2.19.0

need() { # need FILE PACKAGE
    command -v "$1" >/dev/null 2>&1 && return 0
    echo "missing $1: install the package that brings it (Debian: apt-get install $2)" >&2
    exit 1
}

for crawler in $crawlers; do
    case "$crawler" in
    huntsman | huntsman-text) wants_huntsman=1 ;;
    spider) wants_spider=1 ;;
    scrapy) wants_scrapy=1 ;;
    *)
        echo "unknown crawler $crawler: huntsman, huntsman-text, spider or scrapy" >&2
        exit 2 ;;
    esac
done

need /usr/bin/time time
need taskset util-linux
need python3 python3

work=${WORK:-$project/target/bench}
mkdir -p "$work"
work=$(cd "$work" && pwd)

if [ -n "${wants_huntsman:-}" ] && [ -z "${CLI:-}" ]; then
    need cargo cargo
    (cd "$project" && cargo build --profile dist --locked --package huntsman-cli)
    CLI=$(cd "$project" && realpath "${CARGO_TARGET_DIR:-target}")/dist/huntsman
fi
if [ -n "${wants_spider:-}" ] && [ -z "${SPIDER:-}" ]; then
    need cargo cargo
    (cd "$here/spider" && CARGO_TARGET_DIR="$work/spider" cargo build --release --locked)
    SPIDER=$work/spider/release/spider-site
fi
if [ -n "${wants_scrapy:-}" ] && [ -z "${SCRAPY:-}" ]; then
    SCRAPY=$work/scrapy-$scrapy_version/bin/scrapy
    if [ ! -x "$SCRAPY" ]; then
        python3 -m venv "$work/scrapy-$scrapy_version"
        "$work/scrapy-$scrapy_version/bin/pip" install --quiet "scrapy==$scrapy_version"
    fi
fi

commands=()
for crawler in $crawlers; do
    case "$crawler" in
    huntsman | huntsman-text)
        text=""
        [ "$crawler" = huntsman ] || text=" --text"
        line="$(printf %q "$CLI") crawl {seed} --profile test --concurrency 64 --per-host 64"
        commands+=("$crawler=pages.jsonl=$line --allow-address 127.0.0.1:* --out {out}$text") ;;
    spider) commands+=("spider=pages.jsonl=$(printf %q "$SPIDER") {seed} {out}/pages.jsonl") ;;
    scrapy)
        line="$(printf %q "$SCRAPY") runspider $(printf %q "$here/scrapy/site_spider.py")"
        commands+=("scrapy=pages.jsonl=$line -a seed={seed} -O {out}/pages.jsonl") ;;
    esac
done

trap '"$here/site/site.sh" stop "$work/site"' EXIT
trap 'exit 130' INT TERM
seed=$(CPU=${SERVER_CPU:-0} "$here/site/site.sh" start "$work/site" "${PORT:-8190}")

echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs, Linux $(uname -r)"
python3 "$here/measure.py" --seed "$seed" --root "$work/site/root" --out "$work/runs" \
    --runs "${RUNS:-3}" --cpu "${CLIENT_CPU:-1}" --limit "${LIMIT:-300}" "${commands[@]}"
