#!/usr/bin/env python3
"""Takes a sample of pages from many sources, and damages some of them.

    sample.py OUT NAME=PATH [NAME=PATH ...]

A path is a folder with .html files (at any depth), or a recording: JSON lines with `status`, `ctype` and `body` (`huntsman-bench avoid-dup --recording`
reads the same ones), compressed by zstd if its name ends in .zst. Only Python's standard library is needed, and the program zstd.
"""

import argparse
import json
import pathlib
import random
import re
import subprocess
import zlib


def folder(path):
    for file in sorted(path.rglob("*")):
        if file.suffix in (".html", ".htm") and file.is_file():
            yield lambda file=file: file.read_bytes().decode("utf-8", "replace")


def recording(path):
    command = ["zstd", "-dc", "--long=27", path] if path.suffix == ".zst" else ["cat", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as lines:
        for line in lines.stdout:
            row = json.loads(line)
            if row.get("status") == 200 and "html" in (row.get("ctype") or "") and row.get("body"):
                yield lambda body=row["body"]: body


def sample(pages, count, most, rng):
    """Some of many, each as likely as any other, one look at each."""
    taken = []
    for number, page in enumerate(pages):
        if len(taken) < count:
            taken.append(page)
        elif (place := rng.randrange(number + 1)) < count:
            taken[place] = page
    texts = [page() for page in taken]
    return [text for text in texts if 200 <= len(text) <= most]


TAG = re.compile(r"</?[a-zA-Z][^<>]*>")


def damage(page, rng):
    """A page with 20 faults of ten kinds."""
    for _ in range(20):
        page = rng.choice(FAULTS)(page, rng)
    return page


def tag(page, rng, pattern=TAG):
    found = list(pattern.finditer(page))
    return rng.choice(found) if found else re.match("", page)


def cut_tag(page, rng):
    found = tag(page, rng)
    at = rng.randint(found.start(), found.end())
    return page[:at] + page[found.end():]


def drop_end(page, rng):
    found = tag(page, rng, re.compile(r"</[a-z0-9]+>"))
    return page[:found.start()] + page[found.end():]


def drop_start(page, rng):
    found = tag(page, rng, re.compile(r"<[a-z0-9]+[^<>]*>"))
    return page[:found.start()] + page[found.end():]


def swap_tags(page, rng):
    one, two = sorted([tag(page, rng), tag(page, rng)], key=lambda found: found.start())
    if one.end() > two.start():
        return page
    return page[:one.start()] + two.group() + page[one.end():two.start()] + one.group() + page[two.end():]


def nest_wrongly(page, rng):
    found = tag(page, rng)
    pieces = ["<b><p>", "</b>", "<a href=/in><a href=/in2>", "<table><div>x</div><tr>", "</p>", "<form><form>", "<li><td>x", "<select><p>x<option>y",
              "<template><i>t</i>", "</div></div>", "<svg><p>x", "<math><mi>x</mi>", "<h2><h3>", "<button><button>", "<frameset>", "</body>x", "<body class=two>"]
    return page[:found.start()] + rng.choice(pieces) + page[found.start():]


def break_entity(page, rng):
    at = rng.randrange(len(page) + 1)
    pieces = ["&amp", "&ampx;", "&#x;", "&#0;", "&#128;", "&#xd800;", "&notit;", "&", "&#99999999;", "&nbsp", "&lt", "&copy=1", "&#13;", "&#11;"]
    return page[:at] + rng.choice(pieces) + page[at:]


def break_attribute(page, rng):
    found = tag(page, rng, re.compile(r'="[^"<>]*"'))
    pieces = ["=", '=x"y', "='", '="', " =  x ", '=""', " a=1 a=2", ' x"y=1', " @on=1", " =z", " xlink:href=/x xml:lang=de", ' class="a\tb\n c"', " CLASS=B"]
    return page[:found.start()] + rng.choice(pieces) + page[found.end():]


def break_comment(page, rng):
    at = tag(page, rng).start()
    pieces = ["<!--", "-->", "<!-->", "<!--x--!>", "<![CDATA[x]]>", "<?php echo ?>", "</>", "<>", "<!doctype x>", "<!x", "</ p>", "<!-- a -- b -->"]
    return page[:at] + rng.choice(pieces) + page[at:]


def flip_bytes(page, rng):
    data = bytearray(page.encode("utf-8", "replace"))
    for _ in range(5):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data.decode("utf-8", "replace")


def repeat(page, rng):
    one, two = sorted([rng.randrange(len(page) + 1), rng.randrange(len(page) + 1)])
    two = min(two, one + 300)
    return page[:two] + page[one:two] + page[two:]


FAULTS = [cut_tag, drop_end, drop_start, swap_tags, nest_wrongly, break_entity, break_attribute, break_comment, flip_bytes, repeat]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("sources", nargs="+", metavar="NAME=PATH")
    parser.add_argument("--each", type=int, default=30, help="pages of each source [30]")
    parser.add_argument("--damaged", type=int, default=60, help="damaged pages in all [60]")
    parser.add_argument("--most", type=int, default=150_000, help="characters of a page at most [150000]")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    texts = []
    for source in args.sources:
        name, path = source.split("=", 1)
        path = pathlib.Path(path)
        rng = random.Random(f"{args.seed} {name}")
        pages = sample(folder(path) if path.is_dir() else recording(path), args.each, args.most, rng)
        texts += [(f"{name}-{number:03}", text) for number, text in enumerate(pages)]
        print(f"{name}: {len(pages)} pages")
    rng = random.Random(f"{args.seed} damage")
    damaged = [(f"damaged-{number:03}", damage(rng.choice(texts)[1], rng)) for number in range(args.damaged)]
    checksum = 0
    for name, text in texts + damaged:
        data = text.encode("utf-8", "replace")
        checksum = zlib.crc32(data, checksum)
        (args.out / f"{name}.html").write_bytes(data)
    print(f"{len(texts)} pages and {len(damaged)} damaged ones, checksum {checksum}")


if __name__ == "__main__":
    main()
