#!/usr/bin/env python3
"""Writes expected.json: what lxml finds by each query in each document. Needs lxml."""
import json
import pathlib

from lxml import etree

HERE = pathlib.Path(__file__).parent
PREFIXES = {
    "re": "http://exslt.org/regular-expressions",
    "set": "http://exslt.org/sets",
    "a": "urn:a",
    "b": "urn:b",
}


def shown(value):
    """A value as the test writes it: a list with one string per node, a number, a boolean, or an object with a string."""
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else {"string": name_of(value)}
    if isinstance(value, str):
        return {"string": str(value)}
    return [shown_node(node) for node in value]


def name_of(number):
    return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"


def shown_node(node):
    if isinstance(node, str):
        return str(node)
    if isinstance(node, (etree._Comment, etree._ProcessingInstruction)):
        return node.text or ""
    return f"<{node.xpath('name()')}>{node.xpath('string()')}"


def main():
    queries = json.loads((HERE / "queries.json").read_text())
    expected = {}
    for path in sorted(HERE.glob("*.xml")):
        tree = etree.parse(str(path))
        found = {}
        for query in queries:
            found[query] = shown(tree.xpath(query, namespaces=PREFIXES, v="div"))
        expected[path.name] = found
    (HERE / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=0) + "\n")


main()
