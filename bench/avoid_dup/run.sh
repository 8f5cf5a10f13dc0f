#!/bin/sh
# What learning and asking costs: MaybeDont's Python package beside this crate, on the same pages, one after the other.
# PAGES=10000 (both), MORE=100000 (this crate's own model only; 0: not at all), SEED=1, WORDS=500, SESSIONS=10000,
# WORK=target/bench/avoid_dup, PYTHON=python3 (with venv).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${WORK:-$root/target/bench/avoid_dup}
python=${PYTHON:-python3}
mkdir -p "$work"

if [ ! -x "$work/venv/bin/python" ] || ! "$work/venv/bin/python" -c 'import maybedont' 2>/dev/null; then
    "$python" -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet 'maybedont==0.1.1' || {
        echo "MaybeDont could not be installed: see above" >&2
        exit 1
    }
fi
(cd "$root" && cargo bench --quiet -p huntsman-detect --bench avoid --no-run)

# One run of this crate's model on pages from stdin.
ours() {
    (cd "$root" && cargo bench --quiet -p huntsman-detect --bench avoid -- --stdin "$1")
}

pages() {
    "$python" "$here/pages.py" "$1" --seed "${SEED:-1}" --words "${WORDS:-500}" --sessions "${SESSIONS:-10000}"
}

pages "${PAGES:-10000}" >"$work/pages.tsv"
: >"$work/runs.jsonl"
for mode in default reference; do
    ours "$mode" <"$work/pages.tsv" >>"$work/runs.jsonl"
done
"$work/venv/bin/python" "$here/maybedont_cost.py" <"$work/pages.tsv" >>"$work/runs.jsonl"
if [ "${MORE:-100000}" -gt 0 ]; then
    pages "${MORE:-100000}" | ours default >>"$work/runs.jsonl"
fi
"$python" "$here/table.py" <"$work/runs.jsonl"
