#!/usr/bin/env python3
"""Asks parsel what `huntsman-bench selectors` was asked, and tells each difference.

    contest.py --bench target/release/huntsman-bench --pages PAGES [--work DIR] [--markdown]
    contest.py --bench target/release/huntsman-bench --pages PAGES --time

parsel is asked twice: on the tree that Huntsman's parser builds of a page (html5ever, handed over as XML), where each difference is one of the selectors;
and on the page as lxml parses it, where the trees differ as well. Known differences on the same tree are in differences.tsv with their reasons; any other
one makes the exit code 1.
"""

import argparse
import collections
import decimal
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import time
import zlib

from lxml import etree
from parsel import Selector

HERE = pathlib.Path(__file__).parent
# White space that Rust strips, Python strips four control characters more; and what stands for characters that XML does not have.
SPACE = "".join(map(chr, [*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFFFD]))
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ENCODED = re.compile("_x([0-9A-F]+)_")


def decoded(found):
    return chr(int(found[1], 16))


def clean(text):
    return NOT_XML.sub("\ufffd", text)


def checksum(values):
    crc = 0
    for value in values:
        crc = zlib.crc32(value.encode("utf-8", "replace") + b"\0", crc)
    return crc


def number(given):
    """As XPath writes numbers; parsel gives them as Python does."""
    if math.isnan(given) or math.isinf(given):
        return str(given).replace("nan", "NaN").replace("inf", "Infinity")
    text = format(decimal.Decimal(repr(given)), "f")
    return text.removesuffix(".0").replace("-0", "0") if given == 0 else text.removesuffix(".0")


def value(found):
    """As crates/bench/src/selectors/values.rs has it."""
    root = found.root
    if isinstance(root, bool):
        return "true" if root else "false"
    if isinstance(root, float):
        return number(root)
    if isinstance(root, str):
        return clean(root)
    if isinstance(root, tuple):
        return f"namespace {root}"
    if root.tag is etree.Comment:
        return clean("<!--" + (root.text or "").replace("-", "=") + "-->")
    if not isinstance(root.tag, str):
        return clean(found.get())
    text = clean(root.xpath("string()").strip(SPACE))
    attrs = " ".join(clean(root.get(name) or "") for name in ("id", "class", "href"))
    name = ENCODED.sub(decoded, root.tag)
    return f"<{name} {attrs}> {len(text)} {checksum([text])}"


def ask(selector, kind, query):
    """The values, or an error."""
    try:
        found = selector.css(query) if kind == "css" else selector.xpath(query)
        values = [value(one) for one in found]
        return [ENCODED.sub(decoded, value) for value in values] if "name(" in query else values
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def same_tree(xml):
    parser = etree.XMLParser(huge_tree=True, resolve_entities=False, collect_ids=False)
    return Selector(root=etree.fromstring(xml, parser), type="html")


def agrees(ours, theirs):
    if "error" in ours or isinstance(theirs, str):
        return "error" in ours and isinstance(theirs, str)
    return ours["count"] == len(theirs) and ours["checksum"] == checksum(theirs)


def shown(theirs):
    return theirs if isinstance(theirs, str) else {"count": len(theirs), "values": [value[:100] for value in theirs[:5]]}


def contest(args, queries):
    trees = args.work / "trees"
    trees.mkdir(parents=True, exist_ok=True)
    command = [args.bench, "selectors", "--pages", args.pages, "--queries", args.queries, "--trees", trees]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    on_tree, on_page = collections.defaultdict(list), collections.Counter()
    pages, damaged = 0, 0
    for line in found.splitlines():
        row = json.loads(line)
        pages += 1
        damaged += row["page"].startswith("damaged")
        text = (args.pages / row["page"]).read_bytes().decode("utf-8", "replace")
        tree, page = same_tree((trees / (row["page"] + ".xml")).read_bytes()), Selector(text=text, type="html")
        for number, ((kind, query), ours) in enumerate(zip(queries, row["answers"])):
            theirs = ask(tree, kind, query)
            if not agrees(ours, theirs):
                on_tree[number].append((row["page"], ours, shown(theirs)))
            on_page[row["page"].startswith("damaged")] += not agrees(ours, ask(page, kind, query))
    total = pages * len(queries)
    different = sum(map(len, on_tree.values()))
    print(f"{pages} pages ({damaged} damaged), {len(queries)} queries, {total} answers")
    print(f"on the same tree {total - different} are equal, {different} differ; with lxml's own tree {on_page[False]} of "
          f"{(pages - damaged) * len(queries)} differ, and {on_page[True]} of {damaged * len(queries)} on damaged pages")
    reasons = known()
    unknown = 0
    for number, cases in sorted(on_tree.items()):
        kind, query = queries[number]
        reason = reasons.get((kind, query))
        unknown += reason is None
        page, ours, theirs = cases[0]
        print(f"\n{kind} {query}: {len(cases)} pages, {reason or 'NOT KNOWN'}")
        if reason is None or args.verbose:
            print(f"  {page}\n  huntsman {json.dumps(ours)[:600]}\n  parsel   {json.dumps(theirs)[:600]}")
    print(f"\n{len(on_tree)} queries differ on the same tree, {unknown} of them without a known reason")
    return 1 if unknown else 0


def known():
    rows = [line.split("\t") for line in (HERE / "differences.tsv").read_text().splitlines() if line and not line.startswith("#")]
    return {(kind, query): reason for kind, query, reason in rows}


def micros(work):
    """Microseconds of one run: the least of five rounds of a millisecond or one run, as crates/bench/src/selectors.rs takes them."""
    work()
    best = float("inf")
    for _ in range(5):
        start, runs = time.thread_time_ns(), 0
        while True:
            work()
            runs += 1
            taken = time.thread_time_ns() - start
            if taken >= 1_000_000:
                best = min(best, taken / 1_000 / runs)
                break
    return best


def costs(args, queries):
    """Ratios of processor times: page by page, ours and theirs one right after the other."""
    ratios, parses, each = collections.defaultdict(list), [], collections.defaultdict(list)
    for path in sorted(args.pages.glob("*.html")):
        command = [args.bench, "selectors", "--pages", path, "--queries", args.queries, "--time"]
        ours = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        text = path.read_bytes().decode("utf-8", "replace")
        theirs = micros(lambda: Selector(text=text, type="html"))
        parses.append((len(text), ours["parse_us"], ours["parse_xpath_us"], theirs))
        page = Selector(text=text, type="html")
        for (kind, query), cost in zip(queries, ours["queries_us"]):
            run = (lambda: page.css(query).getall()) if kind == "css" else (lambda: page.xpath(query).getall())
            if cost is None or isinstance(ask(page, kind, query), str):
                continue
            theirs = micros(run)
            ratios[kind].append(theirs / cost)
            each[kind, query].append((theirs / cost, cost, theirs))
    middle = statistics.median
    print(f"{len(parses)} pages of {middle(row[0] for row in parses) / 1000:.1f} KB")
    print("| | huntsman us | parsel us | parsel / huntsman |\n| --- | ---: | ---: | ---: |")
    for name, place in (("tree for CSS", 1), ("tree for CSS and XPath", 2)):
        print(f"| {name} | {middle(row[place] for row in parses):.0f} | {middle(row[3] for row in parses):.0f} "
              f"| {middle(row[3] / row[place] for row in parses):.2f} |")
    for kind, values in ratios.items():
        rows = [row for (of, _), rows in each.items() if of == kind for row in rows]
        print(f"| a query in {kind} | {middle(row[1] for row in rows):.1f} | {middle(row[2] for row in rows):.1f} | {middle(values):.1f} |")
    print("\nThe ten queries of each kind that gain least (ratio, huntsman us, parsel us):")
    for kind in ratios:
        rows = sorted((tuple(middle(column) for column in zip(*rows)), query) for (of, query), rows in each.items() if of == kind)
        for (ratio, mine, other), query in rows[:10]:
            print(f"{ratio:8.1f} {mine:9.1f} {other:9.1f}  {kind} {query}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=pathlib.Path, required=True, help="the program huntsman-bench")
    parser.add_argument("--pages", type=pathlib.Path, required=True, help="a folder of .html files in UTF-8")
    parser.add_argument("--queries", type=pathlib.Path, default=HERE / "queries.tsv")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("target/bench/selectors"), help="a folder for the trees")
    parser.add_argument("--time", action="store_true", help="measures processor time instead")
    parser.add_argument("--verbose", action="store_true", help="shows the first page of known differences as well")
    args = parser.parse_args()
    lines = [line for line in args.queries.read_text().splitlines() if line and not line.startswith("#")]
    queries = [tuple(line.split("\t", 1)) for line in lines]
    return costs(args, queries) if args.time else contest(args, queries)


if __name__ == "__main__":
    sys.exit(main())
