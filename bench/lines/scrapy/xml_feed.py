from scrapy.spiders import XMLFeedSpider


class Feed(XMLFeedSpider):
    name = "feed"
    start_urls = ["http://127.0.0.1:8790/feed.xml"]
    iterator = "xml"
    itertag = "item"
    namespaces = [("g", "http://shop.example/ns")]

    def parse_node(self, response, node):
        yield {
            "id": int(node.xpath("@id").get()),
            "name": node.xpath("name/text()").get(),
            "price": float(node.xpath("g:price/text()").get()),
        }
