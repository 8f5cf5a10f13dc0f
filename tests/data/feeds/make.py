#!/usr/bin/env python3
"""Writes expected.json: the nodes and rows that Scrapy's feed spiders give for the files of cases.json. Needs Scrapy; made with 2.19.0.

With --files it also writes the files that are not UTF-8.
"""
import json
import pathlib
import sys

import scrapy
from scrapy.http import TextResponse, XmlResponse
from scrapy.spiders import CSVFeedSpider, XMLFeedSpider

HERE = pathlib.Path(__file__).parent
FEED = '<?xml version="1.0" encoding="%s"?>\n<feed><item note="é"><title>Café – Übung</title></item><item note="b"><title>œuvre</title></item></feed>\n'


def files():
    (HERE / "latin1.xml").write_bytes((FEED % "ISO-8859-1").replace("–", "-").replace("œ", "oe").encode("latin-1"))
    (HERE / "cp1252.csv").write_bytes("name;price\nCafé;12 €\nÜbung „drei“;3 €\n".encode("cp1252"))
    (HERE / "bom.csv").write_bytes("name\tprice\nCafé\t12 €\n\"a\tb\"\t3 €\n".encode("utf-8-sig"))


def nodes(case):
    class Feed(XMLFeedSpider):
        name = "feed"
        itertag = case["tag"]
        iterator = case.get("iterator", "iternodes")
        namespaces = case["namespaces"]

        def parse_node(self, response, node):
            return {"found": [node.xpath(query).getall() for query in case["queries"]]}

    response = XmlResponse("http://shop.test/" + case["file"], body=(HERE / case["file"]).read_bytes())
    return [found["found"] for found in Feed()._parse(response)]


def rows(case):
    class Feed(CSVFeedSpider):
        name = "feed"
        delimiter = case.get("delimiter")
        quotechar = case.get("quote")
        headers = case.get("headers")

        def parse_row(self, response, row):
            return row

    body = (HERE / case["file"]).read_bytes()
    response = TextResponse("http://shop.test/" + case["file"], body=body, encoding=case.get("charset"))
    return list(Feed()._parse(response))


def main():
    if "--files" in sys.argv:
        files()
    cases = json.loads((HERE / "cases.json").read_text())
    expected = {"scrapy": scrapy.__version__}
    expected |= {case["file"]: nodes(case) for case in cases["xml"]}
    expected |= {case["file"]: rows(case) for case in cases["csv"]}
    (HERE / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=0) + "\n")


main()
