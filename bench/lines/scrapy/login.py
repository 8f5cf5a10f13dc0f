import scrapy


class Orders(scrapy.Spider):
    name = "orders"
    start_urls = ["http://127.0.0.1:8790/login"]

    def parse(self, response):
        yield scrapy.FormRequest.from_response(
            response,
            formcss="#login",
            formdata={"user": "ann", "password": "secret"},
            callback=self.parse_orders,
        )

    def parse_orders(self, response):
        for order in response.css("li.order::text").getall():
            yield {"order": order}
