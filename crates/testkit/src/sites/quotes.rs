//! A paginated list of quotes with pages for authors and tags, for examples and first spiders.

use crate::answer::Answer;
use crate::site::{Site, SiteBuilder};

const PER_PAGE: usize = 10;

struct Author {
    name: &'static str,
    born: u16,
    place: &'static str,
}

/// The works of all these authors are out of copyright.
const AUTHORS: [Author; 12] = [
    Author { name: "William Shakespeare", born: 1564, place: "Stratford-upon-Avon" },
    Author { name: "Jane Austen", born: 1775, place: "Steventon" },
    Author { name: "Charles Dickens", born: 1812, place: "Portsmouth" },
    Author { name: "Herman Melville", born: 1819, place: "New York" },
    Author { name: "Oscar Wilde", born: 1854, place: "Dublin" },
    Author { name: "Alexander Pope", born: 1688, place: "London" },
    Author { name: "John Keats", born: 1795, place: "London" },
    Author { name: "Ralph Waldo Emerson", born: 1803, place: "Boston" },
    Author { name: "Henry David Thoreau", born: 1817, place: "Concord" },
    Author { name: "Francis Bacon", born: 1561, place: "London" },
    Author { name: "Alfred Tennyson", born: 1809, place: "Somersby" },
    Author { name: "Benjamin Franklin", born: 1706, place: "Boston" },
];

/// Text, index of the author, tags.
const QUOTES: [(&str, usize, &[&str]); 30] = [
    ("Brevity is the soul of wit.", 0, &["wit", "writing"]),
    (
        "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want \
         of a wife.",
        1,
        &["love", "money"],
    ),
    ("It was the best of times, it was the worst of times.", 2, &["time"]),
    ("Call me Ishmael.", 3, &["sea", "names"]),
    ("We are all in the gutter, but some of us are looking at the stars.", 4, &["hope"]),
    ("To err is human, to forgive divine.", 5, &["mistakes"]),
    ("A thing of beauty is a joy for ever.", 6, &["beauty"]),
    ("A foolish consistency is the hobgoblin of little minds.", 7, &["mind"]),
    ("The mass of men lead lives of quiet desperation.", 8, &["life"]),
    (
        "Reading maketh a full man; conference a ready man; and writing an exact man.",
        9,
        &["writing", "books"],
    ),
    ("'Tis better to have loved and lost than never to have loved at all.", 10, &["love"]),
    ("Three may keep a secret, if two of them are dead.", 11, &["wit"]),
    ("The course of true love never did run smooth.", 0, &["love"]),
    ("One half of the world cannot understand the pleasures of the other.", 1, &["life"]),
    (
        "There is nothing in the world so irresistibly contagious as laughter and good humour.",
        2,
        &["wit", "hope"],
    ),
    ("It is not down in any map; true places never are.", 3, &["sea"]),
    ("I can resist everything except temptation.", 4, &["wit"]),
    ("Fools rush in where angels fear to tread.", 5, &["mistakes"]),
    ("Beauty is truth, truth beauty.", 6, &["beauty"]),
    ("Hitch your wagon to a star.", 7, &["hope"]),
    ("Simplify, simplify.", 8, &["life"]),
    (
        "Some books are to be tasted, others to be swallowed, and some few to be chewed and digested.",
        9,
        &["books"],
    ),
    ("All that glisters is not gold.", 0, &["money"]),
    ("There is no charm equal to tenderness of heart.", 1, &["love"]),
    ("Well done is better than well said.", 11, &["life"]),
    ("Uneasy lies the head that wears a crown.", 0, &["life"]),
    ("The truth is rarely pure and never simple.", 4, &["wit"]),
    ("A little learning is a dangerous thing.", 5, &["mind", "books"]),
    ("If music be the food of love, play on.", 0, &["love"]),
    ("The old order changeth, yielding place to new.", 10, &["time"]),
];

/// 30 quotes on 3 pages (`/`, `/page/2/`, `/page/3/`), 12 authors (`/author/jane-austen/`) and pages of tags
/// (`/tag/love/`).
///
/// A quote is `div.quote` with `span.text`, `small.author`, a link to the author and `a.tag`s; the next page is
/// `li.next a`. An author page has `h3.author-title`, `span.author-born-date` and `span.author-born-location`.
pub fn quotes() -> SiteBuilder {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /login\n")
        .route("/", |_| Answer::html(page(1)))
        .page("/login", frame("Login", "<form method=\"post\"><input name=\"user\"></form>"))
        .route("/page/*", |request| {
            let number =
                request.path().trim_matches('/').rsplit('/').next().and_then(|number| number.parse().ok());
            match number {
                Some(number) if (1..=pages()).contains(&number) => Answer::html(page(number)),
                _ => Answer::status(404),
            }
        })
        .route("/tag/*", |request| {
            let tag = request.path().trim_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
            let tagged = QUOTES.iter().filter(|(_, _, tags)| tags.contains(&tag.as_str()));
            let list: String = tagged.map(|(text, author, tags)| quote(text, *author, tags)).collect();
            if list.is_empty() {
                Answer::status(404)
            } else {
                Answer::html(frame(&format!("Tag {tag}"), &list))
            }
        });
    AUTHORS.iter().fold(site, |site, author| {
        let Author { name, born, place } = author;
        let body = format!(
            "<div class=\"author-details\"><h3 class=\"author-title\">{name}</h3><p>Born: \
             <span class=\"author-born-date\">{born}</span> in \
             <span class=\"author-born-location\">{place}</span></p></div>"
        );
        site.page(&format!("/author/{}/", slug(name)), frame(name, &body))
    })
}

fn pages() -> usize {
    QUOTES.len().div_ceil(PER_PAGE)
}

fn slug(name: &str) -> String {
    name.to_lowercase().replace(' ', "-")
}

fn page(number: usize) -> String {
    let shown = QUOTES.iter().skip((number - 1) * PER_PAGE).take(PER_PAGE);
    let mut body: String = shown.map(|(text, author, tags)| quote(text, *author, tags)).collect();
    body.push_str("<nav><ul class=\"pager\">");
    if number > 1 {
        let previous = if number == 2 { "/".to_owned() } else { format!("/page/{}/", number - 1) };
        body.push_str(&format!("<li class=\"previous\"><a href=\"{previous}\">Previous</a></li>"));
    }
    if number < pages() {
        body.push_str(&format!("<li class=\"next\"><a href=\"/page/{}/\">Next</a></li>", number + 1));
    }
    body.push_str("</ul></nav>");
    frame(&format!("Quotes, page {number}"), &body)
}

fn quote(text: &str, author: usize, tags: &[&str]) -> String {
    let name = AUTHORS[author].name;
    let tags: String =
        tags.iter().map(|tag| format!("<a class=\"tag\" href=\"/tag/{tag}/\">{tag}</a> ")).collect();
    format!(
        "<div class=\"quote\"><span class=\"text\">\u{201c}{text}\u{201d}</span> <span>by \
         <small class=\"author\">{name}</small> <a href=\"/author/{}/\">(about)</a></span> \
         <div class=\"tags\">Tags: {tags}</div></div>\n",
        slug(name)
    )
}

fn frame(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head><body>\
         <header><h1><a href=\"/\">Quotes</a></h1><a href=\"/login\">Login</a></header>\n{body}</body></html>\n"
    )
}
