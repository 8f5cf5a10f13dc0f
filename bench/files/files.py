"""Two thousand files that items name, fetched and stored by Huntsman and by Scrapy: processor time, time and memory of each.

    cargo build --profile dist -p huntsman-cli
    python3 -m venv venv && venv/bin/pip install scrapy
    python3 bench/files/files.py --huntsman target/dist/huntsman --scrapy venv/bin/scrapy

It needs nginx and taskset, and two processors: the server has the first one, the crawler the second. The crawlers take turns; a run counts
only if every file is stored with its content and every item names its files."""

import argparse
import hashlib
import json
import os
import random
import shutil
import statistics
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SITE = HERE.parent / "site" / "site.sh"
PORT = "8191"
PER_DOCUMENT = 10
PER_LIST = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--huntsman", required=True, type=Path)
    parser.add_argument("--scrapy", required=True, type=Path)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--kb", type=int, default=20)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--work", type=Path, default=Path("target/bench/files"))
    args = parser.parse_args()
    work = args.work.resolve()
    site = ["bash", str(SITE)]
    environment = os.environ | {"PAGES": "1", "KB": "1", "LINKS": "1", "CPU": "0"}
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    subprocess.run([*site, "start", work / "site", PORT], env=environment, check=True, stdout=subprocess.DEVNULL)
    try:
        sums = generate(work / "site" / "root", args.files, args.kb)
        local = ["--profile", "test", "--allow-address", f"127.0.0.1:{PORT}", "--concurrency", "16", "--per-host", "16"]
        commands = {
            "huntsman": [args.huntsman.resolve(), "crawl", HERE / "files.toml", *local, "--set", "log_level=error", "--out", "out"],
            "scrapy": [args.scrapy.absolute(), "runspider", HERE / "scrapy_files.py"],
        }
        runs = {name: [] for name in commands}
        for _ in range(args.runs):
            for name, command in commands.items():
                runs[name].append(run(work / name, command, sums))
        print(f"{args.files} files of {args.kb} KB, median of {args.runs} runs")
        print(f"{'':10} {'CPU s':>7} {'wall s':>7} {'MiB':>6}")
        for name, rows in runs.items():
            cpu, wall, memory = (statistics.median(row[i] for row in rows) for i in range(3))
            print(f"{name:10} {cpu:7.2f} {wall:7.2f} {memory:6.0f}")
    finally:
        subprocess.run([*site, "stop", work / "site"], check=True, stdout=subprocess.DEVNULL)


def generate(root, files, kb):
    """Files of random bytes and the lists that name them; returns their checksums."""
    noise = random.Random(7)
    for name in ("media", "lists"):
        (root / name).mkdir()
    sums = set()
    for n in range(files):
        body = noise.randbytes(kb << 10)
        (root / "media" / f"{n}.bin").write_bytes(body)
        sums.add(hashlib.sha256(body).hexdigest())
    assert len(sums) == files
    documents = [range(n, min(n + PER_DOCUMENT, files)) for n in range(0, files, PER_DOCUMENT)]
    lists = [documents[n : n + PER_LIST] for n in range(0, len(documents), PER_LIST)]
    for n, shown in enumerate(lists):
        links = lambda document: "".join(f"<a class=file href=/media/{file}.bin>{file}</a>" for file in document)
        html = "".join(f"<div class=document><h2>Document {it[0]}</h2>{links(it)}</div>" for it in shown)
        (root / "lists" / f"{n}.html").write_text(f"<!doctype html><title>List {n}</title>{html}")
    index = "".join(f"<a class=list href=/lists/{n}.html>{n}</a>" for n in range(len(lists)))
    (root / "lists" / "index.html").write_text(f"<!doctype html><title>Lists</title>{index}")
    return sums


def run(folder, command, sums):
    """Runs a crawler in an empty folder on the second processor; returns processor time, time and memory."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    pinned = ["taskset", "-c", "1", *map(str, command)]
    log = (folder / "log").open("w")
    begun = time.perf_counter()
    child = subprocess.Popen(pinned, cwd=folder, stdout=subprocess.DEVNULL, stderr=log)
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, (folder / "log").read_text()
    stored = [hashlib.sha256(file.read_bytes()).hexdigest() for file in (folder / "files" / "full").iterdir()]
    assert len(stored) == len(sums) and set(stored) == sums, f"{len(stored)} files in {folder}"
    items = next(folder.rglob("items.jsonl")).read_text().splitlines()
    named = sum(len(json.loads(item)["files"]) for item in items)
    assert named == len(sums), f"the items of {folder} name {named} files"
    return used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024


main()
