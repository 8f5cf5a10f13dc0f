#!/usr/bin/env python3
"""Pages to learn from, one a line: URL, tab, three blocks of text separated by tabs.

usage: pages.py PAGES [--seed 1] [--words 500] [--sessions 10000]

Every second page is a copy of the one before. The first SESSIONS pages are on one path and have a session id each; the
others are articles in 40 sections, the copies with a parameter more. The same arguments give the same bytes.
"""
import argparse, random, sys


def main():
    args = argparse.ArgumentParser(usage=__doc__)
    args.add_argument("pages", type=int)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--words", type=int, default=500)
    args.add_argument("--sessions", type=int, default=10_000)
    args = args.parse_args()
    vocabulary = [f"w{n}" for n in range(30_000)]
    sids = random.Random(args.seed)
    for n in range(args.pages):
        content = n // 2
        if n % 2 == 0:
            words = " ".join(random.Random(args.seed << 32 | content).choices(vocabulary, k=args.words))
        if n < args.sessions:
            url = f"http://h.example/in?id={content}&sid={sids.getrandbits(64):016x}"
        else:
            url = f"http://h.example/section/{content % 40}/article?id={content}&page=1"
            if n % 2:
                url += f"&from={n % 500}"
        sys.stdout.write(f"{url}\tThe site of examples\t{words}\tAll rights reserved\n")


if __name__ == "__main__":
    main()
