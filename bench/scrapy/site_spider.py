"""Crawls one host with Scrapy: an item per page with `url`, `status`, `bytes`, `title`.

usage: scrapy runspider site_spider.py -a seed=URL -O FILE.jsonl

64 in flight, no delay, robots.txt ignored, no limit of depth or pages. All else is Scrapy's default.
"""
from urllib.parse import urlsplit

import scrapy
from scrapy.linkextractors import LinkExtractor


class SiteSpider(scrapy.Spider):
    name = "site"
    custom_settings = {
        "CONCURRENT_REQUESTS": 64,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": False,
        "LOG_LEVEL": "WARNING",
        "TELNETCONSOLE_ENABLED": False,
    }

    def __init__(self, seed, **kwargs):
        super().__init__(**kwargs)
        self.seed = seed
        self.links = LinkExtractor(allow_domains=[urlsplit(seed).netloc])

    async def start(self):
        # Requests of start_urls skip the duplicate filter: the seed would be fetched again.
        yield scrapy.Request(self.seed)

    def parse(self, response):
        yield {
            "url": response.url,
            "status": response.status,
            "bytes": len(response.body),
            "title": response.css("title::text").get(),
        }
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url)
