#!/bin/sh
# Two texts to a confidence: the Python package earwigbot beside this crate, on the same texts, one after the other.
# PAIRS=5, WORDS=5000 (of each text), SEED=1, CLI=(a huntsman-bench; built if not given), WORK=target/bench/copyvio,
# PYTHON=python3 (3.11 or later, with venv).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${WORK:-$root/target/bench/copyvio}
python=${PYTHON:-python3}
mkdir -p "$work"

if [ ! -x "$work/venv/bin/python" ] || ! "$work/venv/bin/python" -c 'import earwigbot' 2>/dev/null; then
    "$python" -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet 'earwigbot==0.4.1' || {
        echo "earwigbot could not be installed: see above" >&2
        exit 1
    }
fi
if [ -z "${CLI:-}" ]; then
    (cd "$root" && cargo build --quiet --profile dist -p huntsman-bench)
    CLI=${CARGO_TARGET_DIR:-$root/target}/dist/huntsman-bench
fi

: >"$work/runs.jsonl"
seed=${SEED:-1}
last=$((seed + ${PAIRS:-5} - 1))
while [ "$seed" -le "$last" ]; do
    "$python" "$here/texts.py" "$work" --seed "$seed" --words "${WORDS:-5000}"
    "$work/venv/bin/python" "$here/earwig_cost.py" "$work/article.txt" "$work/source.txt" >>"$work/runs.jsonl"
    "$CLI" copyvio --only speed --article "$work/article.txt" --source "$work/source.txt" --json >>"$work/runs.jsonl"
    seed=$((seed + 1))
done
"$python" "$here/table.py" <"$work/runs.jsonl"
