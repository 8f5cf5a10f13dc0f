#!/usr/bin/env python3
"""Writes article.txt and source.txt into a folder: texts of which the source has a third of the article.

Words are as frequent as in a language (the n-th has a share of about 1/n), in sentences with capital letters, commas and full stops.
"""
import argparse, pathlib, random

SYLLABLES = ["ta", "ren", "lo", "sim", "er", "ing", "ka", "p"]


def word(rank):
    out = ""
    while rank:
        out += SYLLABLES[rank % 8]
        rank //= 8
    return out


def text(rng, words):
    out = []
    while len(out) < words:
        sentence = [word(int(20_000 ** rng.random())) for _ in range(rng.randint(6, 24))]
        sentence[0] = sentence[0].capitalize()
        if len(sentence) > 10:
            sentence[5] += ","
        sentence[-1] += "."
        out += sentence
    return out[:words]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--words", type=int, default=5_000)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    article = text(rng, args.words)
    source = article[: args.words // 3] + text(rng, args.words - args.words // 3)
    for name, words in (("article.txt", article), ("source.txt", source)):
        lines = [" ".join(words[at : at + 80]) for at in range(0, len(words), 80)]
        (args.folder / name).write_text("\n\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
