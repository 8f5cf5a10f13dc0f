#!/usr/bin/env python3
"""Power cuts: crawls on an ext4 of their own, whose device is copied in the midst of them and is all that is left.

    tests/power.py BINARY [CUTS]

Cuts each crawl with job_sync=full so often for each store (default 20), resumes it on the copy, and looks for every page in
exactly one record; cuts each crawl, also with job_sync=process, right after its exit, when nothing may be missing. Needs root and
loop devices; without them it says so and does nothing. The seed is printed; the third argument sets it.
"""

import collections
import concurrent.futures
import contextlib
import http.server
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

PAGES = 300
MEGABYTES = 48
# Crawls at once: each is slow on purpose, and has a file system of its own.
WORKERS = 4


class Pages(http.server.BaseHTTPRequestHandler):
    """Page n leads to pages 3n + 1 to 3n + 3."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        name = self.path.strip("/") or "0"
        number = int(name) if name.isdigit() else PAGES
        links = "".join(f"<a href='/{n}'>{n}</a> " for n in range(3 * number + 1, 3 * number + 4) if n < PAGES)
        words = " ".join(f"w{(number * 7919 + n * 104729) % 5003}" for n in range(120))
        body = f"<title>{number}</title><p>{words}</p>{links}".encode()
        self.send_response(200 if number < PAGES else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Site(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Clients are killed here: connections end as they please."""


@contextlib.contextmanager
def mounted(image, at):
    at.mkdir(exist_ok=True)
    # What no sync asked for is lost: nothing is committed because time went by, or because a file looks like a replaced one.
    subprocess.run(["mount", "-o", "loop,commit=300,noauto_da_alloc", image, at], check=True, capture_output=True)
    try:
        yield at
    finally:
        # Lazy, because another thread's child has copies of the files that are open here until its exec, so that the mount can
        # be busy for a moment. Nothing reads the image or the folder again.
        subprocess.run(["umount", "--lazy", at], check=True)


def make_image(path):
    with open(path, "wb") as file:
        file.truncate(MEGABYTES << 20)
    subprocess.run(["mkfs.ext4", "-q", path], check=True, capture_output=True)


def cut(image, copy):
    """What the device has at this moment; caches of the file system are not part of it."""
    subprocess.run(["cp", "--sparse=always", image, copy], check=True)


def crawl(binary, port, out, store, sync):
    command = [binary, "crawl", f"http://127.0.0.1:{port}/", "--allow-address", f"127.0.0.1:{port}", "--profile", "test"]
    command += ["--store", store, "--per-host", "4", "--requests-per-second", "100", "--set", f"job_sync={sync}"]
    command += ["--set", "job_commit_interval=0.1", "--set", "log_level=error", "--out", out / "crawl"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=out)


def wrong(out, port):
    """What is wrong with the records of a crawl; nothing if every page is in exactly one."""
    found = collections.Counter()
    for name in ["pages.jsonl", "drops.jsonl"]:
        try:
            for line in (out / "crawl" / name).read_bytes().splitlines(keepends=True):
                if not line.endswith(b"\n"):
                    return f"{name}: torn line"
                found[json.loads(line)["url"]] += 1
        except (OSError, ValueError) as error:
            return f"{name}: {error}"
    pages = {f"http://127.0.0.1:{port}/{number or ''}" for number in range(PAGES)}
    missing, twice = pages - found.keys(), [url for url, times in found.items() if times > 1]
    try:
        json.loads((out / "crawl/report.json").read_bytes())
    except (OSError, ValueError) as error:
        return f"report.json: {error}"
    if missing or twice or found.keys() - pages:
        return f"{len(missing)} missing, {len(twice)} more than once, {len(found.keys() - pages)} unknown"
    return None


def power_cut(parent, binary, port, store, sync, moment):
    """Cuts a crawl after some seconds, or after its exit; says how it went, and what was wrong after that."""
    work = pathlib.Path(tempfile.mkdtemp(dir=parent))
    image, copy = work / "disk.img", work / "copy.img"
    make_image(image)
    with mounted(image, work / "disk") as disk:
        process = crawl(binary, port, disk, store, sync)
        if moment is None:
            _, said = process.communicate(timeout=120)
            if process.returncode != 0:
                return "not cut", f"exit {process.returncode}: {said.decode()}"
            cut(image, copy)
            records = PAGES
        else:
            time.sleep(moment)
            # Still while it is copied: a device has one state.
            process.send_signal(signal.SIGSTOP)
            cut(image, copy)
            pages = disk / "crawl/pages.jsonl"
            records = pages.read_bytes().count(b"\n") if pages.exists() else 0
            process.kill()
            process.communicate()
    with mounted(copy, work / "left") as left:
        pages = left / "crawl/pages.jsonl"
        kept = pages.read_bytes().count(b"\n") if pages.exists() else 0
        how = f"{kept} of {records} records were on the disk"
        if moment is not None:
            process = crawl(binary, port, left, store, sync)
            _, said = process.communicate(timeout=120)
            if process.returncode != 0:
                return how, f"resumed, exit {process.returncode}: {said.decode().strip()}"
        return how, wrong(left, port)


def can_mount(work):
    if os.geteuid() != 0:
        return "this needs root"
    try:
        make_image(work / "disk.img")
        with mounted(work / "disk.img", work / "disk"):
            return None
    except (OSError, subprocess.CalledProcessError) as error:
        return str(getattr(error, "stderr", None) or error)


def main():
    binary = pathlib.Path(sys.argv[1]).resolve()
    cuts = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    chance = random.Random(seed)
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        if (why := can_mount(work)) is not None:
            print(f"power cuts are skipped: {why.strip()}")
            return 0
        print(f"seed {seed}")
        server = Site(("127.0.0.1", 0), Pages)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        kinds = [("redb", "full"), ("sled", "full"), ("redb", "process"), ("sled", "process")]
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as workers:
            running = []
            for store, sync in kinds:
                moments = [chance.uniform(0.02, 3.2) for _ in range(cuts if sync == "full" else 0)] + [None]
                cut_at = [(at, workers.submit(power_cut, work, binary, port, store, sync, at)) for at in moments]
                running.append((store, sync, cut_at))
            for store, sync, cut_at in running:
                whole = 0
                for moment, result in cut_at:
                    how, why = result.result()
                    when = "after the exit" if moment is None else f"after {moment:.2f} s"
                    print(f"{store} {sync}, {when}: {how}; {why or 'whole'}", flush=True)
                    whole += why is None
                print(f"{store} {sync}: {whole} of {len(cut_at)} whole", flush=True)
                failures += len(cut_at) - whole
        server.shutdown()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
