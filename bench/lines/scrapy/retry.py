import scrapy
from scrapy.downloadermiddlewares.retry import get_retry_request


class Busy(scrapy.Spider):
    name = "busy"
    start_urls = ["http://127.0.0.1:8790/busy"]

    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.parse_page)

    def parse_page(self, response):
        if response.css("p.wait"):
            retry = get_retry_request(response.request, spider=self, reason="wait")
            if retry:
                yield retry
            return
        yield {"title": response.css("h1::text").get()}
