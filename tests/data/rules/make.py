#!/usr/bin/env python3
"""Writes expected.json: what Scrapy's CrawlSpider does with the rules below on the site of site.json. Needs Scrapy; made with 2.19.0."""
import json
import pathlib

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse, Response, XmlResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

HERE = pathlib.Path(__file__).parent
SITE = json.loads((HERE / "site.json").read_text())
HOST = "http://site.test"
DONE = {"fetched": [], "calls": []}


class Offline:
    """Answers requests from the site of site.json."""

    def process_request(self, request):
        path = request.url.removeprefix(HOST).split("#")[0] or "/"
        DONE["fetched"].append(path)
        if path not in SITE:
            return Response(request.url, status=404)
        kind = XmlResponse if path.endswith(".xml") else HtmlResponse
        return kind(request.url, body=SITE[path].encode(), encoding="utf-8")


class Shop(CrawlSpider):
    name = "shop"
    start_urls = [HOST + "/"]
    rules = (
        Rule(LinkExtractor(allow=r"/shelf/|/about|\.xml")),
        # The links that process_links leaves out are left for the rules below.
        Rule(LinkExtractor(allow=r"/book/|/old/"), callback="parse_print", cb_kwargs={"by": "print"}, process_links="only_print"),
        Rule(LinkExtractor(allow=r"/book/"), callback="parse_book", cb_kwargs={"by": "book"}),
        Rule(LinkExtractor(allow=r"/old/"), callback="parse_book", process_request="renamed"),
        Rule(LinkExtractor(allow=r"/skip/"), process_request="refused"),
        Rule(LinkExtractor(allow=r"/author/"), callback="parse_author", follow=True),
        Rule(LinkExtractor(allow=r"/missing/"), callback="parse_book", errback="on_error"),
        Rule(LinkExtractor(allow=r"/plain/", restrict_css=".more")),
    )

    def only_print(self, links):
        return [link for link in links if "/print/" in link.url]

    def renamed(self, request, response):
        return request.replace(url=request.url.replace("/old/", "/book/"), cb_kwargs={"was": "old"})

    def refused(self, request, response):
        return None

    def parse_start_url(self, response):
        self.told("start", response.url)

    def parse_book(self, response, **kwargs):
        self.told("book", response.url, kwargs)

    def parse_print(self, response, **kwargs):
        self.told("print", response.url, kwargs)

    def parse_author(self, response, **kwargs):
        self.told("author", response.url, kwargs)

    def on_error(self, failure):
        self.told("error", failure.request.url)

    def told(self, callback, url, kwargs=None):
        DONE["calls"].append([callback, url.removeprefix(HOST).split("#")[0] or "/", kwargs or {}])


def main():
    process = CrawlerProcess(
        {
            "DOWNLOADER_MIDDLEWARES": {Offline: 1},
            "LOG_LEVEL": "WARNING",
            "ROBOTSTXT_OBEY": False,
            "CONCURRENT_REQUESTS": 1,
            "DOWNLOAD_DELAY": 0,
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(Shop)
    process.start()
    DONE["fetched"].sort()
    DONE["calls"].sort(key=json.dumps)
    (HERE / "expected.json").write_text(json.dumps({"scrapy": scrapy.__version__, **DONE}, indent=1) + "\n")


main()
