#!/bin/bash
# The bench site: static files behind nginx with one worker, so that the server is not the bottleneck.
#   site.sh start WORKDIR [PORT=8190]   generates the files once, starts nginx, prints the URL to start from
#   site.sh stop WORKDIR                ends that nginx
# Environment: PAGES (5000), KB of a page (20), LINKS of a page (40), CPU to pin the server to (none).
set -eu
here=$(cd "$(dirname "$0")" && pwd)

need() { # need COMMAND PACKAGE
    command -v "$1" >/dev/null 2>&1 && return 0
    echo "missing $1: install the package that brings it (Debian: apt-get install $2)" >&2
    exit 1
}

is_up() { [ -f "$work/pid" ] && kill -0 "$(cat "$work/pid")" 2>/dev/null; }

answers() {
    python3 - "$1" <<'P'
import sys, urllib.request
try:
    urllib.request.urlopen(sys.argv[1], timeout=5).read()
except OSError:
    sys.exit(1)
P
}

generate() {
    local wanted="${PAGES:-5000} ${KB:-20} ${LINKS:-40}"
    [ "$(cat "$work/generated" 2>/dev/null)" = "$wanted" ] && return 0
    rm -rf "$work/root" "$work/generated"
    mkdir -p "$work/root"
    # shellcheck disable=SC2086  # three arguments
    python3 "$here/gen.py" "$work/root" $wanted >&2
    echo "$wanted" >"$work/generated"
}

configuration() { # configuration PORT
    # Workers of a server that root starts run as another user, who may not enter the work directory.
    [ "$(id -u)" != 0 ] || echo "user root;"
    cat <<C
worker_processes 1; daemon off; pid $work/nginx.pid; error_log $work/error.log crit;
events { worker_connections 4096; multi_accept on; }
http {
    types { text/html html; text/css css; } charset utf-8;
    access_log off; sendfile on; tcp_nopush on;
    open_file_cache max=50000 inactive=600s; open_file_cache_valid 600s;
    keepalive_requests 10000000; keepalive_timeout 300s;
    client_body_temp_path $work/tmp; proxy_temp_path $work/tmp; fastcgi_temp_path $work/tmp;
    uwsgi_temp_path $work/tmp; scgi_temp_path $work/tmp;
    server { listen 127.0.0.1:$1 backlog=4096; root $work/root; location = /robots.txt { return 404; } }
}
C
}

start() { # start PORT
    local url="http://127.0.0.1:$1/p/0/0.html" pin=""
    PATH="$PATH:/usr/sbin"
    need nginx nginx-light
    need python3 python3
    need taskset util-linux
    if is_up; then
        echo "a site of $work runs already: $0 stop $work" >&2
        exit 1
    fi
    # Else another server would be measured, whatever it holds.
    if answers "$url"; then
        echo "port $1 is taken by another server: choose another with PORT" >&2
        exit 1
    fi
    generate
    mkdir -p "$work/tmp"
    configuration "$1" >"$work/nginx.conf"
    [ -z "${CPU:-}" ] || pin="taskset -c $CPU"
    # shellcheck disable=SC2086  # words of a command
    $pin nginx -e "$work/error.log" -c "$work/nginx.conf" >"$work/server.log" 2>&1 </dev/null &
    echo $! >"$work/pid"
    for _ in $(seq 100); do
        is_up || break
        answers "$url" && { echo "$url"; return 0; }
        sleep 0.1
    done
    stop
    echo "the server did not start:" >&2
    cat "$work/server.log" "$work/error.log" >&2
    exit 1
}

stop() { # ends the master that start started, which ends its worker
    [ -f "$work/pid" ] || return 0
    local pid
    pid=$(cat "$work/pid")
    # The number may be another process by now.
    if grep -qs "$work/nginx.conf" "/proc/$pid/cmdline"; then
        kill -TERM "$pid" 2>/dev/null || true
        for _ in $(seq 50); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
    fi
    rm -f "$work/pid"
}

[ $# -ge 2 ] || { echo "usage: $0 start|stop WORKDIR [PORT]" >&2; exit 2; }
mkdir -p "$2"
work=$(cd "$2" && pwd)
case "$1" in
start) start "${3:-8190}" ;;
stop) stop ;;
*) echo "unknown command $1" >&2; exit 2 ;;
esac
