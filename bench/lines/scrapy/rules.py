from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class Shop(CrawlSpider):
    name = "shop"
    start_urls = ["http://127.0.0.1:8790/shop"]
    rules = [
        Rule(LinkExtractor(allow=r"/item/"), callback="parse_item"),
        Rule(LinkExtractor(allow=r"/category/", deny=r"/category/9")),
    ]

    def parse_item(self, response):
        yield {
            "name": response.css("h1::text").get(),
            "colour": response.css("#colour::text").get(),
        }
