#!/usr/bin/env python3
"""Counts the lines of the same spiders for Scrapy and Huntsman, and checks that both give the same items. See README.md."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
SITE = "http://127.0.0.1:8790"
TITLES = {
    "tutorial": "tutorial: pages of quotes",
    "callbacks": "two callbacks with an argument",
    "rules": "rules",
    "xml_feed": "XML feed",
    "csv_feed": "CSV feed",
    "login": "login",
    "json_paging": "paging through JSON",
    "retry": "trying again because of the content",
}


def count(text, comment):
    lines = [line.strip() for line in text.splitlines()]
    return sum(1 for line in lines if line and not line.startswith(comment) and not line.endswith("// loopback"))


def python_lines(path, tools):
    command = [tools / "ruff", "format", "--isolated", "--line-length", "100", "--stdin-filename", path, "-"]
    done = subprocess.run(command, input=path.read_text(), text=True, check=True, stdout=subprocess.PIPE)
    return count(done.stdout, "#")


def rust_lines(path):
    command = ["rustfmt", "--edition", "2024", "--emit", "stdout", "--config", "max_width=100,use_small_heuristics=Max", "--quiet"]
    done = subprocess.run(command, input=path.read_text(), text=True, check=True, stdout=subprocess.PIPE)
    return count(done.stdout, "//")


def items(lines):
    return sorted(json.dumps(json.loads(line), sort_keys=True) for line in lines.splitlines() if line.strip())


def run(name, tools, examples):
    """The items of both versions, each on a site that was started anew."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "items.jsonl"
        scrapy = [tools / "scrapy", "runspider", "-L", "ERROR", "-O", out, HERE / "scrapy" / f"{name}.py"]
        for command in (scrapy, [examples / f"lines_{name}"]):
            site = subprocess.Popen([sys.executable, HERE / "site.py", "8790"])
            try:
                wait()
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=folder)
            finally:
                site.terminate()
                site.wait()
            found.append(items(out.read_text() if command is scrapy else done.stdout))
    if found[0] != found[1]:
        sys.exit(f"{name}: the items differ\nscrapy:   {found[0]}\nhuntsman: {found[1]}")
    return len(found[0])


def wait():
    for _ in range(100):
        try:
            urllib.request.urlopen(f"{SITE}/shop").close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("the site does not answer")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scrapy", type=pathlib.Path, required=True, help="the folder of the programs scrapy and ruff")
    parser.add_argument("--run", type=pathlib.Path, help="also run both versions: the folder of the compiled examples")
    args = parser.parse_args()
    print("| spider | Scrapy | Huntsman | ratio |" + (" items |" if args.run else ""))
    print("| --- | ---: | ---: | ---: |" + (" ---: |" if args.run else ""))
    sums = [0, 0]
    for name, title in TITLES.items():
        scrapy = python_lines(HERE / "scrapy" / f"{name}.py", args.scrapy)
        huntsman = rust_lines(HERE / "huntsman" / f"{name}.rs")
        sums = [sums[0] + scrapy, sums[1] + huntsman]
        same = f" {run(name, args.scrapy, args.run.resolve())} |" if args.run else ""
        print(f"| {title} | {scrapy} | {huntsman} | {huntsman / scrapy:.2f} |{same}")
    print(f"| **sum** | {sums[0]} | {sums[1]} | {sums[1] / sums[0]:.2f} |" + (" |" if args.run else ""))


if __name__ == "__main__":
    main()
