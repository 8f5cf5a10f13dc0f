#!/usr/bin/env python3
"""What the Python package MaybeDont costs: reads pages of pages.py on stdin, prints a line of JSON.

As its middleware: the first 300 texts are the sample from which common shingles are taken, then all pages are learned in
order. Times are CPU times of the thread; memory is what the resident set grew by.
"""
import json, random, sys, time
from importlib.metadata import version

import maybedont.predict
from maybedont import DupePredictor

WARM_UP = 300


class Random:
    """`random.sample` of a set is an error since Python 3.11; earlier ones made it a tuple, too."""

    @staticmethod
    def sample(population, k):
        return random.sample(tuple(population), k)


def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))


def timed(times, call, *args):
    start = time.thread_time_ns()
    call(*args)
    times.append((time.thread_time_ns() - start) / 1e3)


def at(times, share):
    return sorted(times)[int((len(times) - 1) * share)]


def page(line):
    url, *blocks = line.rstrip("\n").split("\t")
    return url, "\n".join(blocks)


def main():
    maybedont.predict.random = Random
    random.seed(1)
    before = resident()
    first = [page(line) for _, line in zip(range(WARM_UP), sys.stdin)]
    predictor = DupePredictor(texts_sample=[text for _, text in first])
    learning, asking, pages = [], [], 0

    def learn(url, text):
        nonlocal pages
        pages += 1
        timed(asking, predictor.get_dupe_prob, url)
        timed(learning, predictor.update_model, url, text)

    for url, text in first:
        learn(url, text)
    for line in sys.stdin:
        learn(*page(line))
    grown = resident() - before
    without = "http://h.example/in?id=5"
    asked, learned = [], []
    for _ in range(20):
        timed(asked, predictor.get_dupe_prob, without)
    timed(learned, predictor.update_model, without, "a text that nobody knows, of more than four words")
    print(json.dumps({
        "model": f"MaybeDont {version('maybedont')} (Python {sys.version.split()[0]}, datasketch {version('datasketch')})",
        "pages": pages,
        "learn_us": {"median": at(learning, 0.5), "p99": at(learning, 0.99)},
        "ask_us": {"median": at(asking, 0.5), "p99": at(asking, 0.99)},
        "bytes_per_page": grown / pages,
        "without_session_us": {"learn": learned[0], "ask": at(asked, 0.5)},
    }))


if __name__ == "__main__":
    main()
