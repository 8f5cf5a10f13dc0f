"""The spider of files.py for Scrapy, with its own pipeline of files: scrapy runspider scrapy_files.py."""

import scrapy


class Files(scrapy.Spider):
    name = "files"
    start_urls = ["http://127.0.0.1:8191/lists/index.html"]
    custom_settings = {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": "files",
        "FEEDS": {"items.jsonl": {"format": "jsonlines"}},
        "CONCURRENT_REQUESTS": 16,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": False,
        "LOG_LEVEL": "ERROR",
    }

    def parse(self, response):
        for document in response.css("div.document"):
            yield {
                "name": document.css("h2::text").get(),
                "file_urls": [response.urljoin(url) for url in document.css("a.file::attr(href)").getall()],
            }
        yield from response.follow_all(css="a.list")
