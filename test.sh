#!/bin/sh
# Runs the tests: formatting, lints, tests, doc tests, docs, examples, features. `./setup.sh` installs what they need.
# `./test.sh --spark` also lets Spark run the queries that are for it, which takes a minute; it needs `./setup.sh --spark`.
set -eu
cd "$(dirname "$0")"

# Names the step that begins, and tells how many seconds the one before it took.
started=$(date +%s)
step() {
    now=$(date +%s)
    printf '(%s s)\n\n== %s\n' "$((now - started))" "$1"
    started=$now
}

target="${CARGO_TARGET_DIR:-target}"

./setup.sh --check "$@"
has_spark=false
[ "${1:-}" != --spark ] || has_spark=true
# The tools that ./setup.sh puts into the target folder.
for tools in "$target"/test-tools/*/bin "$target"/test-tools/*/usr/bin; do
    [ ! -d "$tools" ] || PATH="$PATH:$(cd "$tools" && pwd)"
done
export PATH

export CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 RUSTDOCFLAGS="-D warnings"

step "format"
cargo fmt --all --check

step "lints"
cargo clippy --workspace --all-targets --all-features --quiet -- -D warnings

step "tests"
# Many wait for a server or a deadline, so three times as many tests as processors run at once.
threads=$((3 * $(getconf _NPROCESSORS_ONLN)))
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --workspace --all-features --no-fail-fast --test-threads "$threads"
else
    RUST_TEST_THREADS="$threads" cargo test --workspace --all-features --no-fail-fast --quiet
fi

# What the tests have built is run beside the steps after it, which leave a processor idle: one process at a time may build.
run_what_is_built() {
    echo "power cuts"
    python3 tests/power.py "$target/debug/huntsman" 2
    if $has_spark; then
        echo "Spark"
        cargo test --workspace --all-features --tests --quiet spark_itself -- --ignored
    fi
    echo "doc tests"
    cargo test --workspace --all-features --doc --quiet
    # `cargo run` would build most dependencies once more, with the features that one package needs.
    for example in examples/*.rs; do
        name=$(basename "$example" .rs)
        echo "example $name"
        "$target/debug/examples/$name"
    done
}
beside=$(mktemp)
(set -e; run_what_is_built) >"$beside" 2>&1 &
running=$!
trap 'kill $running 2>/dev/null || true; rm -f "$beside"' EXIT

step "docs"
cargo doc --workspace --all-features --no-deps --quiet

step "each crate alone, and with each feature"
# The lints have checked all crates with all features. That covers a crate that only the workspace uses, and the feature of a crate whose
# code names no other one. Beside each goes a crate that gives third-party libraries the features that they have in the lints, so that
# few are checked again; it names the libraries that the crate with the macros uses itself, which therefore goes without.
for manifest in Cargo.toml crates/*/Cargo.toml; do
    ! grep -q '^publish = false' "$manifest" || continue
    name=$(sed -n 's/^name = "\(huntsman[a-z-]*\)"/\1/p' "$manifest" | head -n 1)
    union="--package huntsman-feature-union"
    [ "$name" != huntsman-derive ] || union=""
    # $union is two words or none.
    cargo check --quiet --package "$name" $union --no-default-features
    features=$(grep -rhoE 'feature = "[a-z0-9-]+"' "$(dirname "$manifest")/src" | cut -d '"' -f 2 | sort -u)
    [ "$(echo "$features" | wc -w)" -gt 1 ] || continue
    for feature in $features; do
        cargo check --quiet --package "$name" $union --no-default-features --features "$feature"
    done
done

step "power cuts, doc tests and examples, which began after the tests"
wait $running || {
    cat "$beside"
    exit 1
}

step "all passed"
