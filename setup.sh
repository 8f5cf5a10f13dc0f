#!/bin/sh
# Installs what the tests need on a Debian machine: packages of the system, and in the target folder a Prometheus, an S3 server, query engines and
# readers of archives.
# `./setup.sh --check` installs nothing: it names what is missing and fails.
# With `--spark` it is also Spark, half a gigabyte, which `./test.sh --spark` needs.
set -eu
cd "$(dirname "$0")"

is_check=false
has_spark=false
for option; do
    case "$option" in
    --check) is_check=true ;;
    --spark) has_spark=true ;;
    *)
        echo "$option is no option: there are --check and --spark" >&2
        exit 2
        ;;
    esac
done
missing=

# These are for tests only: nothing is installed into the system, and no service starts.
tools="${CARGO_TARGET_DIR:-target}/test-tools"
moto=5.2.5
# The number changes with the versions of the query engines and the parser of their dialects below.
engines=3
# Python with programs that read archives: warcio, FastWARC, cdxj-indexer.
warc=1.8.1
# The validator of WACZ files. It needs an environment of its own, because it asks for other versions of the above.
wacz=0.6.0
spark=4.3.0
# A player of archives, also in an environment of its own.
pywb=2.10.0
PATH="$PATH:$tools/prometheus/usr/bin:$tools/moto-$moto/bin:$tools/warc-$warc/bin:$tools/wacz-$wacz/bin:$tools/pywb-$pywb/bin"

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

has() { command -v "$1" >/dev/null 2>&1; }

updated=false
update() {
    if ! has apt-get; then
        echo "missing:$missing. apt-get is not here: install them by the package manager of this machine" >&2
        exit 1
    fi
    $updated || as_root apt-get update -qq
    updated=true
}

package() { # package NAME: a package of Debian is needed
    missing="$missing $1"
    $is_check || {
        update
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$1"
    }
}

need() { has "$1" || package "$2"; } # need COMMAND PACKAGE

venv() { # venv NAME PACKAGE...: packages of Python are needed, in an environment of their own
    environment="$tools/$1"
    shift
    missing="$missing $*"
    $is_check || {
        python3 -c 'import ensurepip, venv' 2>/dev/null || package python3-venv
        mkdir -p "$tools"
        rm -rf "$environment"
        python3 -m venv "$environment"
        "$environment/bin/pip" install -q --disable-pip-version-check "$@"
    }
}

need cargo cargo
need cc gcc
# Tests of indexes in Redis start servers of their own.
need redis-server redis-server
need redis-cli redis-tools
# Tests of crashes see the system calls of the binary.
need strace strace
# Tests of pages look at them in a browser.
need chromium chromium
need chromedriver chromium-driver
# A program that writes archives in its own way.
need wget wget
# Tests of power cuts, and the S3 server.
need python3 python3

if ! has prometheus || ! has promtool; then
    missing="$missing prometheus"
    $is_check || {
        update
        mkdir -p "$tools"
        rm -rf "$tools/prometheus" "$tools"/prometheus_*.deb
        (cd "$tools" && apt-get download -qq prometheus && dpkg -x prometheus_*.deb prometheus && rm prometheus_*.deb)
    }
fi

has moto_server || venv "moto-$moto" "moto[s3]==$moto" "flask==3.1.3" "flask-cors==6.0.5"

if [ ! -x "$tools/engines-$engines/bin/python" ] && ! python3 -c 'import duckdb, datafusion, pyarrow, sqlglot, zetasql' 2>/dev/null; then
    venv "engines-$engines" "duckdb==2.0.1" "datafusion==55.0.0" "pyarrow==26.0.1" "sqlglot==30.30.0" "zetasql==0.1.5"
fi

if ! has warc-python; then
    venv "warc-$warc" "warcio==$warc" "fastwarc==2.0.1" "cdxj-indexer==1.5.0"
    # A name of its own: the python3 of the folder must not become that of the tests.
    $is_check || ln -s python3 "$tools/warc-$warc/bin/warc-python"
fi

has wacz || venv "wacz-$wacz" "wacz==$wacz"

has wb-manager || venv "pywb-$pywb" "pywb==$pywb"

if $has_spark; then
    need java openjdk-17-jre-headless
    [ -x "$tools/spark-$spark/bin/python" ] || venv "spark-$spark" "pyspark==$spark"
fi

if $is_check && [ -n "$missing" ]; then
    $has_spark && option=" --spark" || option=""
    echo "missing:$missing. To install them: ./setup.sh$option" >&2
    exit 1
fi
