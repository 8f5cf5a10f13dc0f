#!/usr/bin/env python3
"""What the Python package earwigbot takes from two texts to a confidence: prints a line of JSON. Times are CPU times of the thread."""
import json, sys, time
from importlib.metadata import version
from types import SimpleNamespace

from earwigbot.wiki.copyvios.markov import MarkovChain, MarkovChainIntersection
from earwigbot.wiki.copyvios.workers import CopyvioWorkspace

ROUNDS = 60


def least(call):
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.thread_time_ns()
        result = call()
        best = min(best, (time.thread_time_ns() - start) / 1e3)
    return best, result


def confidence(article, source):
    delta = MarkovChainIntersection(article, source)
    # Of a workspace the function needs the article's chain alone.
    return CopyvioWorkspace._calculate_confidence(SimpleNamespace(_article=article), delta)


def main():
    article, source = (open(path, encoding="utf-8").read() for path in sys.argv[1:])
    whole, found = least(lambda: confidence(MarkovChain(article), MarkovChain(source)))
    chains = MarkovChain(article), MarkovChain(source)
    prepared, _ = least(lambda: confidence(*chains))
    print(json.dumps({
        "name": f"earwigbot {version('earwigbot')} (Python {sys.version.split()[0]})",
        "confidence": found,
        "whole_us": whole,
        "prepared_us": prepared,
    }))


if __name__ == "__main__":
    main()
