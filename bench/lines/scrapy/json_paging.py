import scrapy


class Things(scrapy.Spider):
    name = "things"
    start_urls = ["http://127.0.0.1:8790/api/things?page=1"]

    def parse(self, response):
        data = response.json()
        for thing in data["things"]:
            yield {"id": thing["id"], "name": thing["name"]["en"]}
        if data["next"]:
            yield response.follow(f"?page={data['next']}")
