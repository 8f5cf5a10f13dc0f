import scrapy


class Books(scrapy.Spider):
    name = "books"
    start_urls = ["http://127.0.0.1:8790/books/0"]

    def parse(self, response):
        for row in response.css("li"):
            shelf = row.css("i.shelf::text").get()
            for link in row.css("a.book"):
                yield response.follow(link, self.parse_book, cb_kwargs={"shelf": shelf})
        yield from response.follow_all(css="a.next")

    def parse_book(self, response, shelf):
        yield {
            "title": response.css("h1::text").get(),
            "price": float(response.css("p.price::text").re_first(r"[\d.]+")),
            "code": response.xpath("//th[.='Code']/following-sibling::td/text()").get(),
            "shelf": shelf,
            "url": response.url,
        }
