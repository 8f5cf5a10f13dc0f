import scrapy


class Quotes(scrapy.Spider):
    name = "quotes"
    start_urls = ["http://127.0.0.1:8790/quotes/1"]

    def parse(self, response):
        for quote in response.css("div.quote"):
            yield {
                "text": quote.css("span.text::text").get(),
                "author": quote.css("small.author::text").get(),
                "tags": quote.css("a.tag::text").getall(),
            }
        yield from response.follow_all(css="li.next a")
