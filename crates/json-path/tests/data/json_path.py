"""Makes json_path.json: paths and documents with what jsonpath-rfc9535 says of them, or null where it refuses the path.

    python -m venv venv && venv/bin/pip install jsonpath-rfc9535==1.0.1 iregexp-check regex
    venv/bin/python json_path.py > json_path.json

jsonpath-rfc9535 is an implementation of RFC 9535 in Python by one of the authors of the standard's test suite, which it passes.
"""

import importlib.metadata
import json
import sys

import jsonpath_rfc9535 as jsonpath

STORE = {
    "store": {
        "book": [
            {"category": "reference", "author": "Nigel Rees", "title": "Sayings of the Century", "price": 8.95},
            {"category": "fiction", "author": "Evelyn Waugh", "title": "Sword of Honour", "price": 12.99},
            {"category": "fiction", "author": "Herman Melville", "title": "Moby Dick", "isbn": "0-553-21311-3", "price": 8.99},
            {"category": "fiction", "author": "J. R. R. Tolkien", "title": "The Lord of the Rings", "isbn": "0-395-19395-8", "price": 22.99},
        ],
        "bicycle": {"color": "red", "price": 399},
    },
    "expensive": 10,
}
LIST = [0, 1, "two", None, True, [5, [6, 7]], {"a": 1, "b": {"a": 2}}, 1.0, -3, "", "a\nb", "j\u00e4ger \U0001f600"]
NAMES = {"a": [1, 2], "b c": {"d": "x"}, "'": 1, "\"": 2, "\\": 3, "\u00e9": 4, "$": 5, "length": 6, "0": 7, "": 8, "\U0001f600": 9}
PAIRS = [
    {"a": 1, "b": 1}, {"a": 1, "b": 1.0}, {"a": "x", "b": "x"}, {"a": [1, {"k": 2}], "b": [1.0, {"k": 2}]}, {"a": None, "b": False},
    {"a": {"k": 1, "l": 2}, "b": {"l": 2, "k": 1}}, {"b": 3}, {"a": "b", "b": "a"}, {"a": 9007199254740993, "b": 9007199254740992},
    {"a": True, "b": True}, {}, {"a": [], "b": {}}, {"a": -0.0, "b": 0}, {"a": "10", "b": 10}, {"a": 1e3, "b": 1000},
]

DOCUMENTS = {"store": STORE, "list": LIST, "names": NAMES, "pairs": PAIRS, "number": 7, "empty": []}

PATHS = {
    "store": """
        $ | $.store.book[*].author | $..author | $.store.* | $.store..price | $..book[2] | $..book[2].author | $..book[2].publisher
        $..book[-1] | $..book[0,1] | $..book[:2] | $..book[?@.isbn] | $..book[?@.price<10] | $..* | $.store.book[?@.price < $.expensive].title
        $..book[?@.price==8.95] | $..book[?@.author=='Evelyn Waugh'].title | $..book[?!@.isbn].title | $..book[?(@.price>=8.99)].title
        $..book[?@.isbn && @.price > 10].title | $..book[?@.isbn || @.price > 10].title | $..book[?!(@.isbn || @.price > 10)].title
        $..book[?match(@.author, '.*Rees')].title | $..book[?match(@.author, 'Rees')].title | $..book[?search(@.author, 'Rees')].title
        $..book[?search(@.title, '[Oo]f')].title | $..[?@.price].price | $..[?length(@.title)>14].title | $..[?count(@.*)==4].title
        $..book[?length(@)==5].isbn | $.store[?@..price] | $..[?@.color] | $..book[?value(@..isbn)=='0-553-21311-3'].title
        $..book.length | $..book[*]['title','price'] | $['store']['bicycle']['color'] | $["store"]["book"][0]["title"] | $..['price']
        $..[0] | $..[::2] | $..[*] | $.store.book[1:3]['price'] | $.store.book[::-1].price | $.store.book[3:0:-2].title | $.none.none[0]
        $..book[0,0].price | $..book[?@.price > 8 && @.price < 9 || @.category == 'fiction'].title | $.store.book[0:2,1:3].price
        $..book[?@['isbn']].title | $..book[?@.title > 'N'].title | $..book[?@.title <= 'Moby Dick'].title | $[?@.book] | $..[?@.book[?@.isbn]]
        $..book[?count(@..*) > 4].title | $..book[?$.store.bicycle].price | $..book[?$.none].price | $..book[?length(@.isbn) == 13].title
        $.store.book[ 0 ].title | $ .store .book [0] .title | $..book[? @.price < 10 ].title | $.store.book[?match(@.isbn, '[0-9-]+')].title
        $.store.book[?match(@.price, '8.*')] | $.store.book[?search(@.title, $.store.bicycle.color)].title
        $.store.book[?search(@.title, '(')] | $.store.book[?length(@.none) == 1] | $.store.book[?length(@.none) != 1].price
    """,
    "list": """
        $[0] | $[-1] | $[-12] | $[-13] | $[12] | $[1:3] | $[-3:] | $[:-9] | $[::3] | $[::-3] | $[5:1] | $[5:1:-1] | $[::0] | $[1:5:2] | $[100:] | $[:-100]
        $[*] | $..* | $[0,2] | $[0,0] | $[0,'a'] | $..a | $..[0] | $[?@ == 1] | $[?@ == 1.0] | $[?@ == 'two'] | $[?@ == null] | $[?@ == true] | $[?@ > 0] | $[?@ < 'b']
        $[?@ <= 'two'] | $[?@ >= 1] | $[?@ != 1] | $[?@.a] | $[?@[0]] | $[?@.b.a == 2] | $[?length(@) == 2] | $[?length(@) == 0] | $[?length(@) == 7] | $[?match(@, '.*')]
        $[?match(@, 'a.b')] | $[?match(@, 'a[.]b')] | $[?search(@, '^t')] | $[?search(@, '\\\\p{L}\\\\p{L}')] | $[?match(@, 'tw|o')] | $[?match(@, 't.o')] | $[?@ == -3] | $[?@ == -3.0e0]
        $[?@ == $[0]] | $[?@ == $[1]] | $[?@ == $[7]] | $[?count(@..*) > 2] | $[?value(@.*) == 1] | $[?value(@..a) == 2] | $[?@ == @] | $[?@.x == @.y] | $[?@.x != @.y] | $[?@.x < @.y] | $[?@.x <= @.y]
        $[?!@] | $[?@] | $[?@[?@[?@ > 6]]] | $[?@ == 1 || @ == 0] | $[?@ == 1 && @ == 0] | $[?!(@ == 1)] | $[?!(@ == 1) && !(@ == 0)] | $[?(@ == 1)] | $[?((@ == 1))]
        $[1:3, 0] | $[-2:-5:-1] | $[:2:-1] | $[2::-1] | $[0:0] | $[9007199254740991] | $[-9007199254740991]
    """,
    "names": """
        $.a | $['a'] | $["a"] | $['b c'].d | $["b c"]['d'] | $['\\''] | $["'"] | $['"'] | $["\\""] | $['\\\\'] | $['\\u00e9'] | $.\u00e9 | $['\u00e9'] | $['$'] | $.length | $['0'] | $['']
        $['\\uD83D\\uDE00'] | $.\U0001f600 | $['\\ud83d\\ude00'] | $.none | $['a','b c'] | $['a','a'] | $.a[0] | $.a.b | $[0] | $.* | $..d | $..[1] | $[?@ > 5] | $[?@.d == 'x'] | $[?@[1]]
    """,
    "pairs": """
        $[?@.a == @.b] | $[?@.a != @.b] | $[?@.a < @.b] | $[?@.a <= @.b] | $[?@.a > @.b] | $[?@.a >= @.b] | $[?@.a] | $[?!@.a] | $[?@.a == null] | $[?@.a == false] | $[?@.a == '10'] | $[?@.a == 1e3]
        $[?@.a == -0] | $[?@.a == 0] | $[?@.b == 10.0] | $[?length(@.a) == length(@.b)] | $[?count(@.*) == 2] | $[?count(@.a, @.b) == 2] | $[?@.a == $[0].a] | $[?@ == $[0]] | $[?$[0].a == @.a]
        $[?@.a && @.b] | $[?@.a || @.b] | $[?1 == @.a] | $[?1 == 1] | $[?1 == 2] | $[?'a' < 'b'] | $[?null == null] | $[?true] | $[?@.a == [1]] | $[?@.a == {}]
    """,
    "number": "$ | $.* | $..* | $[0] | $.a | $[?@] | $..a",
    "empty": """
        $ | $[0] | $[-1] | $[::] | $[::-1] | $[*] | $..*
        | a | . | $. | $.. | $... | $.a. | $..a. | $[] | $[ ] | $['a' | $['a'] ] | $['a | $["a'] | $.'a' | $.[0] | $..[ | $[a] | $[01] | $[-0] | $[1.0] | $[1e2] | $[+1] | $[--1] | $[1 2] | $[,0] | $[0,]
        $[1:2:3:4] | $[::01] | $[9007199254740992] | $[-9007199254740992] | $[?] | $[?()] | $[?@.a=1] | $[?@.a==] | $[?==1] | $[?@.a===1] | $[?@.a<>1] | $[?@.a and 1] | $[?@.a&&] | $[?&&@.a] | $[?@.a & @.b] | $[?!]
        $[?!!@.a] | $[?@.a == @.*] | $[?@..a == 1] | $[?@[0,1] == 1] | $[?@[0:1] == 1] | $[?(@.a] | $[?@.a)] | $[?length(@.a)] | $[?length()==1] | $[?length(@.a,@.b)==1] | $[?length(@.*)==1] | $[?count(1)==1] | $[?count('a')==1]
        $[?count(@.a)] | $[?match(@.a)] | $[?match(@.a,'b')==true] | $[?match(@.*,'b')] | $[?value(1)==1] | $[?value(@.a)] | $[?foo(@.a)==1] | $[?foo(@.a)] | $[?Length(@.a)==1] | $[?length (@.a)==1] | $[?1] | $[?'a'] | $[?@.a==1==1]
        $[?@.a=='b] | $[?@.a=="b'] | $['\\x'] | $['\\u12'] | $['\\uD800'] | $['\\uDE00\\uD83D'] | $.a b | $ | $.a-b | $.1a | $.a[?@.b==01] | $[?@.a==1.] | $[?@.a==.1] | $[?@.a==1e] | $[?@.a==-] | $[?@.a==True] | $[?@.a==nul]
        $[?in(@.a, 'b')] | $[?@.a in 'b'] | $[?count(@.a)==1] | $[?length(length(@.a))==1] | $[?length(value(@..a))==1] | $[?count(value(@.a))==1] | $[?length(match(@.a,'b'))==1] | $.a$ | $$ | @.a | $..*. | $.*a | $[*a] | $[?@.a<=>1] | $[?(@.a == 1) == true]
        $[?(1)] | $[?(@.a) == 1] | $[?!@.a == 1] | $[?!(@.a == 1) || !@.b] | $[?@.a==1||@.b==2&&@.c==3] | $['a'.'b'] | $['a']'b' | $.['a'] | $..['a'] | $.. a | $. a | $ ..a | $ [0] | $[0]\t.a | $\n.a
    """,
}

if __name__ == "__main__":
    cases = []
    for name, paths in PATHS.items():
        for line in paths.strip("\n").splitlines():
            for path in line.split("|") if "||" not in line else [p.replace("\0", "||") for p in line.replace("||", "\0").split("|")]:
                path = path.strip(" ")
                if not path:
                    continue
                try:
                    values = jsonpath.find(path, DOCUMENTS[name]).values()
                except Exception:
                    values = None
                cases.append({"document": name, "path": path, "values": values})
    made_by = "jsonpath-rfc9535 " + importlib.metadata.version("jsonpath-rfc9535")
    head = {"made_by": made_by, "documents": DOCUMENTS}
    sys.stdout.write(json.dumps(head, ensure_ascii=False)[:-1] + ', "cases": [\n')
    sys.stdout.write(",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]}\n")
