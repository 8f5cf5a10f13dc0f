"""A made-up site on the loopback interface for the programs of this folder: site.py [PORT]"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

AUTHORS = ["Ada Miller", "Ben Weaver", "Cleo Smith"]
QUOTES = [{"text": f"Saying {n}", "author": AUTHORS[n % 3], "tags": [f"t{n % 4}", f"t{n % 5}"]} for n in range(30)]
TOKEN = "5f2a"
seen = {}


def quotes(number):
    parts = [
        f'<div class="quote"><span class="text">{q["text"]}</span> by <small class="author">{q["author"]}</small>'
        + "".join(f'<a class="tag" href="/tag/{tag}">{tag}</a>' for tag in q["tags"])
        + "</div>"
        for q in QUOTES[number * 10 - 10 : number * 10]
    ]
    following = f'<ul><li class="next"><a href="/quotes/{number + 1}">Next</a></li></ul>' if number < 3 else ""
    return "<title>Quotes</title>" + "".join(parts) + following


def books(number):
    links = "".join(f'<li><a class="book" href="/book/{n}">Book {n}</a> <i class="shelf">S{n % 7}</i></li>' for n in range(number * 10, number * 10 + 10))
    following = f'<a class="next" href="/books/{number + 1}">Next</a>' if number < 2 else ""
    return f"<title>Books</title><ul>{links}</ul>{following}"


def book(number):
    return f'<h1>Book {number}</h1><p class="price">£{number + 10}.50</p><table><tr><th>Code</th><td>B{number:03}</td></tr></table>'


def answer(path, query, cookies):
    """The type and text of a page, or a status."""
    html = "text/html; charset=utf-8"
    if found := re.fullmatch(r"/quotes/(\d+)", path):
        return html, quotes(int(found[1]))
    if found := re.fullmatch(r"/books/(\d+)", path):
        return html, books(int(found[1]))
    if found := re.fullmatch(r"/book/(\d+)", path):
        return html, book(int(found[1]))
    if path == "/shop":
        return html, '<a href="/shop/category/1">1</a><a href="/shop/category/2">2</a><a href="/shop/about">about</a>'
    if found := re.fullmatch(r"/shop/category/(\d+)", path):
        return html, "".join(f'<a href="/shop/item/{found[1]}{n}">item</a>' for n in range(3)) + '<a href="/shop/category/3">3</a>'
    if found := re.fullmatch(r"/shop/item/(\d+)", path):
        return html, f"<h1>Item {found[1]}</h1><p id=colour>red</p>"
    if path == "/feed.xml":
        items = "".join(f'<item id="{n}"><name>Name {n}</name><g:price>{n}.50</g:price></item>' for n in range(20))
        return "application/xml", f'<?xml version="1.0"?><rss xmlns:g="http://shop.example/ns"><channel>{items}</channel></rss>'
    if path == "/feed.csv":
        return "text/csv", "id;name;price\n" + "".join(f'{n};"Name; {n}";{n}.50\n' for n in range(20))
    if path == "/login":
        return html, (
            '<form action="/search"><input name="q"></form><form id="login" method="post" action="/login">'
            f'<input type="hidden" name="token" value="{TOKEN}"><input name="user"><input type="password" name="password"></form>'
        )
    if path == "/orders" and "session=1" in cookies:
        return html, "".join(f'<li class="order">Order {n}</li>' for n in range(5))
    if path == "/api/things":
        number = int(query.get("page", ["1"])[0])
        things = [{"id": n, "name": {"en": f"Thing {n}"}} for n in range(number * 10, number * 10 + 10)]
        return "application/json", json.dumps({"things": things, "next": number + 1 if number < 3 else None})
    if found := re.fullmatch(r"/busy/(\d+)", path):
        seen[path] = seen.get(path, 0) + 1
        return html, '<p class="wait">Please wait</p>' if seen[path] < 3 else f"<h1>Busy {found[1]}</h1>"
    if path == "/busy":
        return html, '<a href="/busy/1">1</a><a href="/busy/2">2</a>'
    return html, 404


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, kind, text, headers=()):
        status = text if isinstance(text, int) else 200
        body = b"" if isinstance(text, int) else text.encode()
        status = 303 if headers else status
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urlsplit(self.path)
        self.send(*answer(url.path, parse_qs(url.query), self.headers.get("Cookie") or ""))

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        wanted = {"token": [TOKEN], "user": ["ann"], "password": ["secret"]}
        if self.path == "/login" and parse_qs(body) == wanted:
            return self.send("text/html", "", [("Location", "/orders"), ("Set-Cookie", "session=1; Path=/")])
        self.send("text/html", 403)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8790
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
