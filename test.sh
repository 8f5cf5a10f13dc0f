#!/bin/sh
# Sets up what the tests need and runs them: formatting, lints, tests, doc tests, docs, examples, features.
set -eu
cd "$(dirname "$0")"

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

install() { # install PACKAGE WHAT: installs a Debian package that brings what is missing
    if command -v apt-get >/dev/null 2>&1; then
        as_root apt-get update -qq
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$1"
    else
        echo "missing $2: install the package that brings it (Debian: apt-get install $1)" >&2
        exit 1
    fi
}

need() { # need COMMAND PACKAGE: installs a Debian package if its command is missing
    command -v "$1" >/dev/null 2>&1 || install "$2" "$1"
}

step() { printf '\n== %s\n' "$1"; }

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

# Others are for tests only, and are put into the target folder: nothing is installed, and no service starts.
tools="${CARGO_TARGET_DIR:-target}/test-tools"
mkdir -p "$tools"
tools=$(cd "$tools" && pwd)
moto=5.2.5
PATH="$PATH:$tools/prometheus/usr/bin:$tools/moto-$moto/bin"
if ! command -v prometheus >/dev/null 2>&1 || ! command -v promtool >/dev/null 2>&1; then
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "missing prometheus and promtool: put them in PATH (Debian: apt-get install prometheus)" >&2
        exit 1
    fi
    as_root apt-get update -qq
    rm -rf "$tools/prometheus" "$tools"/prometheus_*.deb
    (cd "$tools" && apt-get download -qq prometheus && dpkg -x prometheus_*.deb prometheus && rm prometheus_*.deb)
fi
# A server that speaks as S3 does.
if ! command -v moto_server >/dev/null 2>&1; then
    need python3 python3
    python3 -c 'import ensurepip, venv' 2>/dev/null || install python3-venv "the Python module venv"
    rm -rf "$tools/moto-$moto"
    python3 -m venv "$tools/moto-$moto"
    "$tools/moto-$moto/bin/pip" install -q --disable-pip-version-check "moto[s3]==$moto" "flask==3.1.3" "flask-cors==6.0.5"
fi
export CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 RUSTDOCFLAGS="-D warnings"

step "format"
cargo fmt --all --check

step "lints"
cargo clippy --workspace --all-targets --all-features --quiet -- -D warnings

step "tests"
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --workspace --all-features --no-fail-fast
else
    cargo test --workspace --all-features --no-fail-fast --quiet
fi

step "power cuts"
need python3 python3
# The tests have built the command.
python3 tests/power.py "${CARGO_TARGET_DIR:-target}/debug/huntsman" 2

step "doc tests"
cargo test --workspace --all-features --doc --quiet

step "docs"
cargo doc --workspace --all-features --no-deps --quiet

step "examples"
for example in examples/*.rs; do
    name=$(basename "$example" .rs)
    printf '%s ... ' "$name"
    cargo run --quiet --all-features --example "$name" >"${TMPDIR:-/tmp}/huntsman-example.log" 2>&1 || {
        cat "${TMPDIR:-/tmp}/huntsman-example.log"
        exit 1
    }
    echo ok
done

step "each crate alone, and with each feature"
for manifest in Cargo.toml crates/*/Cargo.toml; do
    name=$(sed -n 's/^name = "\(huntsman[a-z-]*\)"/\1/p' "$manifest" | head -n 1)
    cargo check --quiet --package "$name" --no-default-features
    features=$(sed -n '/^\[features\]/,/^\[[^f]/s/^\([a-z][a-z0-9-]*\) = .*/\1/p' "$manifest")
    for feature in $features; do
        [ "$feature" = default ] || cargo check --quiet --package "$name" --no-default-features --features "$feature"
    done
done

step "all passed"
