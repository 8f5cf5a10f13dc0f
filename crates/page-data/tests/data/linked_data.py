"""Makes linked_data.json: made-up pages with what extruct finds in them.

    python -m venv venv && venv/bin/pip install extruct==0.18.0
    venv/bin/python linked_data.py > linked_data.json
"""

import importlib.metadata
import json
import sys
import warnings

import extruct

warnings.simplefilter("ignore")

URL = "http://shop.example/dir/page"

PAGES = {
    "a product with a comment and a comma too many": """
        <script type="application/ld+json">
        <!-- made by the shop -->
        {"@context": "https://schema.org", "@type": "Product", "name": "Mill", "offers": {"@type": "Offer", "price": "7.50", },
         "image": ["a.png", "b.png",], }
        </script>""",
    "a list of nodes and a graph": """
        <script type="application/ld+json">[{"@type": "A", "n": 1}, {"@type": "B", "n": null}]</script>
        <script type="application/ld+json">{"@graph": [{"@id": "#x", "@type": ["C", "D"]}]}</script>""",
    "control characters in texts": '<script type="application/ld+json">{"t": "line\nbreak\ttab"}</script>',
    "comments of JavaScript": """<script type="application/ld+json">
        // one
        {"a": "http://x/ // no comment", /* two */ "b": "/* no comment */"}
        </script>""",
    "escapes": r"""<script type="application/ld+json">{"a": "\u00e9\ud83d\ude00 &amp; \/"}</script>""",
    "an item of items": """
        <div itemscope itemtype="https://schema.org/Product">
          <h1 itemprop="name">Wind <b>mill</b></h1><img itemprop="image" src="m.png"><link itemprop="url" href="/m">
          <meta itemprop="sku" content="42"><time itemprop="made" datetime="2026-11-23">today</time>
          <div itemprop="offers" itemscope itemtype="https://schema.org/Offer"><data itemprop="price" value="7.5">7,50</data>
            <a itemprop="seller" href="../s">S</a><object itemprop="doc" data="d.pdf"></object></div>
          <span itemprop="tag">x</span><span itemprop="tag">y</span>
        </div>""",
    "references": """
        <div itemscope itemtype="http://s.example/Person" itemref="n b"></div>
        <p id="n">Name: <span itemprop="name">Amanda</span></p>
        <div id="b" itemprop="band" itemscope itemtype="http://s.example/Band" itemref="c"></div>
        <div id="c"><p>Band: <span itemprop="name">Jazz Band</span></p><p>Size: <span itemprop="size">12</span> players</p></div>""",
    "an identity and several items": """
        <div itemscope itemtype="http://s.example/Book" itemid="urn:isbn:0-330"><i itemprop="title">One</i></div>
        <div itemscope itemtype="http://s.example/Book"><i itemprop="title">Two</i><div itemscope itemtype="http://s.example/Other"><i itemprop="a">b</i></div></div>""",
    "open graph": """<head prefix="og: http://ogp.me/ns#"><meta property="og:title" content=" Mills "><meta property="og:type" content="article">
        <meta property="og:image" content="http://s/a.png"><meta property="og:image:width" content="10">
        <meta property="og:image" content="http://s/b.png"><meta property="og:locale" content="de_DE"><meta property="og:locale:alternate" content="fr_FR">
        <meta property="article:author" content="A"><meta property="article:tag" content="x"><meta property="article:tag" content="y">
        <meta name="description" content="no"></head>""",
}


def found(html):
    kinds = ["json-ld", "microdata", "opengraph"]
    data = extruct.extract(html, base_url=URL, syntaxes=kinds, errors="strict")
    data["opengraph"] = [list(pair) for graph in data["opengraph"] for pair in graph["properties"]]
    return data


if __name__ == "__main__":
    pages = [{"name": name, "html": html, "found": found(html)} for name, html in PAGES.items()]
    made_by = "extruct " + importlib.metadata.version("extruct")
    json.dump({"made_by": made_by, "url": URL, "pages": pages}, sys.stdout, ensure_ascii=False, indent=1)
    sys.stdout.write("\n")
