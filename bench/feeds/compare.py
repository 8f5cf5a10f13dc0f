"""Reads the files of `huntsman-bench feeds --out DIR` with Python, checks that they have the same items, and writes the same items with
the usual libraries of Python, to compare the time.

    cargo run --release -p huntsman-bench -- feeds --out files
    python3 -m venv venv && venv/bin/pip install pyarrow
    venv/bin/python bench/feeds/compare.py files

The items are read from `items.jsonl` before the clock starts, so both sides begin with items in memory."""

import json
import math
import os
import sqlite3
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq

PER_FLUSH = 100


def main(folder):
    with open(f"{folder}/items.jsonl", encoding="utf-8") as lines:
        items = [json.loads(line) for line in lines]
    check_sqlite(f"{folder}/items.sqlite", items)
    check_parquet(f"{folder}/items.parquet", items)
    print(f"{len(items)} items are the same in all files")
    print("written by     items/s")
    for name, write in [("sqlite3", write_sqlite), ("sqlite3, WAL", write_sqlite_wal), ("pyarrow", write_parquet)]:
        path = f"{folder}/python.{name[:7]}"
        if os.path.exists(path):
            os.remove(path)
        begun = time.perf_counter()
        write(path, items)
        print(f"{name:<13} {len(items) / (time.perf_counter() - begun):>8.0f}")


def flat(value):
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (list, dict)):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return value


def check_sqlite(path, items):
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    rows = database.execute("SELECT * FROM items")
    names = [column[0] for column in rows.description]
    for row, item in zip(rows, items, strict=True):
        expected = tuple(flat(item[name]) for name in names)
        assert row == expected and [type(a) for a in row] == [type(b) for b in expected], (row, expected)


def check_parquet(path, items):
    table = pq.read_table(path)
    print(table.schema.to_string(show_schema_metadata=False))
    for row, item in zip(table.to_pylist(), items, strict=True):
        for name, value in item.items():
            read = row[name]
            if isinstance(value, dict):
                read = json.loads(read)
            same = math.isclose(read, value, rel_tol=0, abs_tol=0) if isinstance(value, float) else read == value
            assert same, (name, read, value)


def write_sqlite(path, items, wal=False):
    database = sqlite3.connect(path)
    if wal:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
    names = list(items[0])
    database.execute(f"CREATE TABLE items ({', '.join(names)})")
    insert = f"INSERT INTO items VALUES ({', '.join('?' * len(names))})"
    for start in range(0, len(items), PER_FLUSH):
        rows = ([flat(item[name]) for name in names] for item in items[start : start + PER_FLUSH])
        database.executemany(insert, rows)
        database.commit()
    database.close()


def write_sqlite_wal(path, items):
    write_sqlite(path, items, wal=True)


def write_parquet(path, items):
    """All items at once, from memory: what `pa.Table.from_pylist` is for. A crawl that is killed before has nothing."""
    pq.write_table(pa.Table.from_pylist(items), path, compression="snappy")


main(sys.argv[1])
