from scrapy.spiders import CSVFeedSpider


class Feed(CSVFeedSpider):
    name = "feed"
    start_urls = ["http://127.0.0.1:8790/feed.csv"]
    delimiter = ";"

    def parse_row(self, response, row):
        yield {"id": int(row["id"]), "name": row["name"], "price": float(row["price"])}
