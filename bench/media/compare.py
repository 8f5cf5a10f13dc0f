"""Fetches the same files with huntsman and with Scrapy's FilesPipeline, and measures both from outside.

usage: compare.py --huntsman PROGRAM --scrapy PROGRAM [--work DIR] [--files N] [--kb N] [--runs N] [--port N]

nginx serves pages that name 20 files each. A run counts only if all files are there under the names that both give them, with the content
that nginx has. The server is pinned to CPU 0 and the crawler to CPU 1, so that the crawler is what waits for its CPU."""

import argparse
import hashlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

PER_PAGE = 20
AT_ONCE = 16
NGINX = """
worker_processes 1; daemon off; pid {work}/nginx.pid; error_log {work}/error.log crit; {user}
events {{ worker_connections 1024; }}
http {{
    types {{ text/html html; application/pdf pdf; }} access_log off; sendfile on; tcp_nopush on;
    client_body_temp_path {work}/tmp; proxy_temp_path {work}/tmp; fastcgi_temp_path {work}/tmp;
    uwsgi_temp_path {work}/tmp; scgi_temp_path {work}/tmp;
    server {{ listen 127.0.0.1:{port}; root {work}/root; }}
}}
"""


def make_site(root, files, kb):
    """Files of random bytes and pages that name them; the same at every call."""
    shutil.rmtree(root, ignore_errors=True)
    (root / "f").mkdir(parents=True)
    dice = random.Random(7)
    for number in range(files):
        (root / "f" / f"{number}.pdf").write_bytes(dice.randbytes(dice.randrange(kb * 512, kb * 1536)))
    for page in range(files // PER_PAGE):
        names = range(page * PER_PAGE, (page + 1) * PER_PAGE)
        links = "".join(f'<li><a class=file href="/f/{number}.pdf">{number}</a>' for number in names)
        (root / f"{page}.html").write_text(f"<title>Page {page}</title><ul>{links}</ul>")


def start_server(work, port):
    (work / "tmp").mkdir(exist_ok=True)
    user = "user root;" if os.getuid() == 0 else ""
    (work / "nginx.conf").write_text(NGINX.format(work=work, port=port, user=user))
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        sys.exit("nginx is missing (Debian: apt-get install nginx-light)")
    server = subprocess.Popen(["taskset", "-c", "0", program, "-e", work / "error.log", "-c", work / "nginx.conf"])
    for _ in range(100):
        time.sleep(0.05)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/0.html"):
                return server
        except OSError:
            if server.poll() is not None:
                sys.exit(f"nginx did not start: {(work / 'error.log').read_text()}")
    sys.exit("nginx does not answer")


def write_spiders(work, pages, port):
    starts = [f"http://127.0.0.1:{port}/{page}.html" for page in range(pages)]
    (work / "spider.toml").write_text(
        f"""name = "files"
start = {json.dumps(starts)}

[settings]
allow_addresses = ["127.0.0.1:{port}"]
files_store = "files"
media_at_once = {AT_ONCE}

[items.page]
[items.page.fields]
title = "title"
file_urls = {{ css = "a.file::attr(href)", type = "list" }}
"""
    )
    (work / "spider.py").write_text(
        f"""import scrapy

class Files(scrapy.Spider):
    name = "files"
    start_urls = {json.dumps(starts)}
    custom_settings = {{
        "CONCURRENT_REQUESTS": {AT_ONCE}, "CONCURRENT_REQUESTS_PER_DOMAIN": {AT_ONCE}, "DOWNLOAD_DELAY": 0, "ROBOTSTXT_OBEY": False,
        "ITEM_PIPELINES": {{"scrapy.pipelines.files.FilesPipeline": 1}}, "FILES_STORE": "files",
        "LOG_LEVEL": "WARNING", "TELNETCONSOLE_ENABLED": False,
    }}

    def parse(self, response):
        urls = [response.urljoin(href) for href in response.css("a.file::attr(href)").getall()]
        yield {{"title": response.css("title::text").get(), "file_urls": urls}}
"""
    )


def run(out, command):
    """CPU seconds, wall seconds and peak memory of one run in an empty directory."""
    out.mkdir(parents=True)
    begun = time.perf_counter()
    child = subprocess.Popen(
        ["taskset", "-c", "1", *command], cwd=out, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - begun
    if status != 0:
        sys.exit(f"{command[0]} failed: {said}")
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024


def check(work, out, files, port):
    """Stops unless exactly these files are there."""
    found = sorted(path.name for path in (out / "files" / "full").iterdir())
    name = lambda number: hashlib.sha1(f"http://127.0.0.1:{port}/f/{number}.pdf".encode()).hexdigest() + ".pdf"
    if found != sorted(map(name, range(files))):
        sys.exit(f"{len(found)} files, and not the {files} of the site")
    for number in range(files):
        served, stored = work / "root" / "f" / f"{number}.pdf", out / "files" / "full" / name(number)
        if served.read_bytes() != stored.read_bytes():
            sys.exit(f"{stored}: another content than {served}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--huntsman", required=True)
    parser.add_argument("--scrapy", required=True)
    parser.add_argument("--work", default="target/bench/media")
    for flag, default in [("--files", 2000), ("--kb", 30), ("--runs", 5), ("--port", 8191)]:
        parser.add_argument(flag, type=int, default=default)
    args = parser.parse_args()
    work = Path(args.work).resolve()
    files = args.files // PER_PAGE * PER_PAGE
    make_site(work / "root", files, args.kb)
    write_spiders(work, files // PER_PAGE, args.port)
    crawlers = {
        "huntsman": [args.huntsman, "crawl", "../../spider.toml", "--profile", "test", "--out", "crawl"],
        "scrapy": [args.scrapy, "runspider", "../../spider.py", "-o", "items.jsonl"],
    }
    crawlers = {name: [shutil.which(words[0]) or str(Path(words[0]).resolve()), *words[1:]] for name, words in crawlers.items()}
    measured = {name: [] for name in crawlers}
    # Not removed between the runs: a file system is slow where many files were removed a moment ago.
    runs = work / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    server = start_server(work, args.port)
    try:
        for number in range(args.runs):
            for name, command in crawlers.items():
                out = runs / f"{name}-{number}"
                measured[name].append(run(out, command))
                check(work, out, files, args.port)
    finally:
        server.terminate()
        server.wait()
    print(f"{files} files of {args.kb} KB on average, {args.runs} runs, medians")
    print(f"{'':<10}{'CPU s':>8}{'wall s':>8}{'peak MiB':>10}")
    for name, runs in measured.items():
        cpu, wall, peak = (statistics.median(column) for column in zip(*runs))
        print(f"{name:<10}{cpu:>8.2f}{wall:>8.2f}{peak:>10.0f}")


main()
