"""Writes the bench site: a connected graph of pages as static files, the same for the same arguments.

usage: gen.py ROOT [PAGES=5000] [KB=20] [LINKS=40]

Page i is /p/<i mod 100>/<i>.html, has about KB kilobytes and about LINKS links, and its title begins with "Page i: ".
It links to i+1, 2i and 2i+1 (so the breadth-first depth is about log2 PAGES), to eight sections in the navigation, and
to random pages. The start is /p/0/0.html.
"""
import os
import random
import sys

SEED = 2024
NAV = 8
SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu".split()


def url(i):
    return f"/p/{i % 100}/{i}.html"


class Language:
    """Words of syllables with a skewed distribution, and a pool of sentences."""

    def __init__(self, rng):
        self.words = ["".join(rng.choice(SYLLABLES) for _ in range(rng.randint(1, 4))) for _ in range(8000)]
        weights = [1 / (rank + 10) for rank in range(len(self.words))]

        def sentence():
            text = " ".join(rng.choices(self.words, weights, k=rng.randint(6, 22)))
            return text[0].upper() + text[1:] + ". "

        self.sentences = [sentence() for _ in range(20000)]


def targets(i, pages, links, rng):
    found = {(i + 1) % pages, 2 * i % pages, (2 * i + 1) % pages}
    while len(found) < min(links - NAV, pages):
        found.add(rng.randrange(pages))
    found = sorted(found)
    rng.shuffle(found)
    return found


def page(i, pages, size_wanted, links, language):
    rng = random.Random(i * 7919 + 1)
    word = lambda: rng.choice(language.words)
    left = targets(i, pages, links, rng)
    nav = "".join(f'<li class="nav"><a href="{url(k * (pages // NAV))}">Section {k}</a></li>' for k in range(NAV))
    parts = [
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Page {i}: {word()}</title>'
        f'<link rel="stylesheet" href="/s.css"><meta name="description" content="{rng.choice(language.sentences)}">'
        f"</head><body><header><ul>{nav}</ul></header><main><h1>Page {i}</h1>"
    ]
    size, block = len(parts[0]), 0
    while size < size_wanted or left:
        text, link = "".join(rng.choices(language.sentences, k=6)), ""
        if left:
            to = left.pop(0)
            link = f'<a href="{url(to)}" title="to {to}">{word()}</a>'
        block += 1
        parts.append(
            f'<div class="b c{block % 5}"><h3>{word()}</h3><p id="x{block}">{text}{link} <em>{word()}</em></p></div>'
        )
        size += len(parts[-1])
    parts.append("</main><footer><p>Footer text, the same on all pages.</p></footer></body></html>\n")
    return "\n".join(parts)


def main():
    root = sys.argv[1]
    pages, kb, links = (int(value) for value in (sys.argv[2:] + ["5000", "20", "40"][len(sys.argv) - 2 :])[:3])
    language = Language(random.Random(SEED))
    for folder in range(100):
        os.makedirs(f"{root}/p/{folder}", exist_ok=True)
    total = 0
    for i in range(pages):
        text = page(i, pages, kb * 1000, links, language)
        total += len(text)
        with open(root + url(i), "w") as file:
            file.write(text)
    print(f"site: {pages} pages, mean {total / pages / 1000:.1f} KB")


main()
