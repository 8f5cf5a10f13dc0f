"""Runs crawlers in turn over one site, measures each from outside and prints a table.

usage: measure.py --seed URL --root DIR --out DIR [--runs N] [--cpu N] [--limit SECS] NAME=PAGES_FILE=COMMAND...

COMMAND is a shell line in which {seed} and {out} stand for the start URL and for an empty directory, where the command
leaves PAGES_FILE with a JSON line per page. A run counts if that file has every page of the site exactly once, with
its size and its title. Ratios are to the first crawler.
"""
import argparse
import json
import re
import shlex
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

TITLE = re.compile(rb"<title>(.*?)</title>")


def site_pages(root):
    """Path of every page: (size in bytes, title)."""
    pages = {}
    for file in Path(root).glob("p/*/*.html"):
        body = file.read_bytes()
        pages["/" + file.relative_to(root).as_posix()] = (len(body), TITLE.search(body)[1].decode())
    return pages


def complaint(file, seed, expected):
    """What is wrong with the pages that a crawler wrote, or None."""
    base = seed[: -len("/p/0/0.html")]
    seen = set()
    try:
        lines = file.open("rb")
    except OSError as error:
        return str(error)
    with lines:
        for number, line in enumerate(lines, 1):
            record = json.loads(line)
            url = record["url"]
            path = url.removeprefix(base)
            if path not in expected:
                return f"line {number}: {url} is no page of the site"
            if path in seen:
                return f"line {number}: {url} a second time"
            seen.add(path)
            found = (record["status"], record["bytes"], record["title"])
            if found != (200, *expected[path]):
                return f"line {number}: {url} has {found}, not {(200, *expected[path])}"
    if len(seen) != len(expected):
        return f"{len(seen)} pages of {len(expected)}"
    return None


def run(name, pages_file, command, args, expected):
    out = Path(args.out).resolve() / name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    usage, log = out.with_suffix(".usage"), out.with_suffix(".log")
    line = command.replace("{seed}", shlex.quote(args.seed)).replace("{out}", shlex.quote(str(out)))
    # GNU time is small: the memory of the process that forks a command counts in the command's maximum.
    # KILL, because GNU time would end before a command that shuts down gently, and leave it behind.
    words = ["timeout", "-s", "KILL", str(args.limit), "taskset", "-c", str(args.cpu)]
    words += ["/usr/bin/time", "-q", "-o", str(usage), "-f", "%U %S %M %e", *shlex.split(line)]
    with log.open("wb") as stream:
        status = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, cwd=out).returncode
    if status != 0:
        sys.exit(f"{name}: exit {status}, see {log}")
    if wrong := complaint(out / pages_file, args.seed, expected):
        sys.exit(f"{name}: {wrong}")
    user, system, rss, wall = (float(value) for value in usage.read_text().split())
    pages = len(expected)
    return {
        "crawler": name,
        "pages": pages,
        "user_s": user,
        "system_s": system,
        "wall_s": wall,
        "peak_rss_bytes": int(rss) * 1024,
        "cpu_s_per_1000": (user + system) * 1000 / pages,
    }


def table(rows, names):
    of = {name: [row for row in rows if row["crawler"] == name] for name in names}
    median = lambda name, key: statistics.median(row[key] for row in of[name])
    base = names[0]
    print(
        f"{'crawler':<16}{'runs':>5}{'pages':>8}{'CPU s/1,000':>13}{'min - max':>18}{'pages/CPU s':>13}{'wall s':>9}"
        f"{'CPU %':>7}{'peak MiB':>10}{'CPU x':>8}{'RSS x':>8}"
    )
    for name in names:
        cpu, rss, wall = (median(name, key) for key in ("cpu_s_per_1000", "peak_rss_bytes", "wall_s"))
        costs = [row["cpu_s_per_1000"] for row in of[name]]
        pages = of[name][0]["pages"]
        print(
            f"{name:<16}{len(costs):>5}{pages:>8}{cpu:>13.3f}{f'{min(costs):.3f} - {max(costs):.3f}':>18}"
            f"{1000 / cpu:>13.0f}{wall:>9.2f}{cpu * pages / 10 / wall:>7.0f}{rss / 2**20:>10.1f}"
            f"{cpu / median(base, 'cpu_s_per_1000'):>8.2f}{rss / median(base, 'peak_rss_bytes'):>8.2f}"
        )
    print(f"medians; x = ratio to {base}, more is worse")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cpu", type=int, default=1)
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("crawler", nargs="+")
    args = parser.parse_args()
    crawlers = [crawler.split("=", 2) for crawler in args.crawler]
    expected = site_pages(args.root)
    rows = []
    for number in range(1, args.runs + 1):
        for name, pages_file, command in crawlers:
            row = run(name, pages_file, command, args, expected)
            rows.append(row)
            print(
                f"run {number} {name}: {row['cpu_s_per_1000']:.3f} CPU s/1,000 pages, {row['wall_s']:.2f} s, "
                f"{row['peak_rss_bytes'] / 2**20:.1f} MiB",
                file=sys.stderr,
            )
    Path(args.out, "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    table(rows, [name for name, _, _ in crawlers])


main()
