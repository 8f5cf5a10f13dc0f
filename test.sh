#!/bin/sh
# Sets up what the tests need and runs them: formatting, lints, tests, doc tests, docs, examples, features.
set -eu
cd "$(dirname "$0")"

need() { # need COMMAND PACKAGE: installs a Debian package if its command is missing
    command -v "$1" >/dev/null 2>&1 && return 0
    if command -v apt-get >/dev/null 2>&1; then
        sudo=""
        [ "$(id -u)" = 0 ] || sudo="sudo"
        $sudo apt-get update -qq
        DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -q --no-install-recommends "$2"
    else
        echo "missing $1: install the package that brings it (Debian: apt-get install $2)" >&2
        exit 1
    fi
}

step() { printf '\n== %s\n' "$1"; }

need cargo cargo
need cc gcc
# Tests of indexes in Redis start servers of their own.
need redis-server redis-server
need redis-cli redis-tools
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
