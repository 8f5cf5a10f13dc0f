//! The shop of `huntsman audit --demo`: a ship chandler's site as many are, with the faults that grow in such sites over the years.
//!
//! Its menu links to a page that was moved twice, articles were taken off without their links, photographs lack their texts, titles were copied,
//! a blog has one text under three addresses, and of three languages one was forgotten. Nothing is random: two runs serve the same bytes.

use std::fmt::Write as _;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, LAST_MODIFIED};
use http::{HeaderValue, StatusCode, Uri};

use super::boats::{sentences, title};
use super::page::{self, Page};
use super::random::Random;

const SECTIONS: [&str; 5] = ["sailing", "motor", "rowing", "rigging", "clothing"];
const ARTICLES: usize = 18;
const ON_A_PAGE: usize = 9;
const STORIES: usize = 12;
/// Languages of the front page, and their folders.
const LANGUAGES: [(&str, &str); 4] = [("en", "/"), ("de", "/de/"), ("fr", "/fr/"), ("x-default", "/")];

/// The shop.
#[derive(Debug)]
pub struct Chandlery {
    /// `http://host:port`, without a slash behind it.
    origin: String,
}

/// A page before it becomes HTML.
struct Draft {
    path: String,
    title: String,
    language: &'static str,
    has_description: bool,
    has_canonical: bool,
    head: String,
    heading: String,
    body: String,
}

impl Draft {
    fn new(path: &str, title: &str) -> Self {
        Self {
            path: path.to_owned(),
            title: title.to_owned(),
            language: "en",
            has_description: true,
            has_canonical: true,
            head: String::new(),
            heading: format!("<h1>{title}</h1>"),
            body: String::new(),
        }
    }

    /// Adds a paragraph, which is the same for the same number.
    fn text(mut self, seed: u64, length: usize) -> Self {
        let _ = write!(self.body, "<p>{}</p>", sentences(&mut Random::new(seed), length));
        self
    }

    fn add(mut self, html: &str) -> Self {
        self.body.push_str(html);
        self
    }
}

impl Chandlery {
    /// A shop that knows its own address.
    pub fn new(origin: String) -> Self {
        Self { origin }
    }

    /// The answer to a request.
    pub fn answer(&self, request: &Uri) -> Page {
        let path = request.path();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match parts.as_slice() {
            [""] => self.front("en"),
            ["de"] => self.front("de"),
            ["fr"] => self.front("fr"),
            ["robots.txt"] => page::text(
                StatusCode::OK,
                &format!("User-agent: *\nDisallow: /spares/\nSitemap: {}/sitemap.xml\n", self.origin),
            ),
            ["sitemap.xml"] => self.sitemap(),
            ["style.css"] => file("text/css", &"body { font: 1em/1.5 serif }\n".repeat(60)),
            ["photos", name] => photo(name),
            ["prices"] => page::redirect("/price-list"),
            ["price-list"] => page::redirect("/sailing/"),
            ["about"] => {
                self.html(&Draft::new("/about", "About us and our harbour, since 1911").text(11, 22).add(
                    "<form action=/search><input name=q placeholder=Search><button>Find</button></form>",
                ))
            }
            ["imprint"] => self.html(&Draft::new("/imprint", "Imprint, and where to find us").text(12, 20)),
            ["forgotten"] => {
                self.html(&Draft::new("/forgotten", "A page that only the sitemap knows").text(13, 20))
            }
            ["basket"] => {
                let mut broken = page::text(StatusCode::INTERNAL_SERVER_ERROR, "the basket is broken\n");
                broken.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
                broken
            }
            ["stories"] => self.stories(),
            ["stories", number] => match number.parse().ok().filter(|number| *number < STORIES) {
                Some(number) => self.story(number),
                None => missing(),
            },
            [section] if is_section(section) => self.section(section, 1),
            [section, "page", number] if is_section(section) => match number.parse() {
                Ok(number) if (2..=ARTICLES.div_ceil(ON_A_PAGE)).contains(&number) => {
                    self.section(section, number)
                }
                _ => missing(),
            },
            [section, number] if is_section(section) => match number.parse().ok().filter(|at| *at < ARTICLES)
            {
                Some(number) => self.article(section, number),
                None => missing(),
            },
            _ => missing(),
        }
    }

    fn front(&self, language: &'static str) -> Page {
        let (path, title) = match language {
            "de" => ("/de/", "Am Hafen 7: alles, was an Bord gehört"),
            "fr" => ("/fr/", "7, rue du Port : tout pour le bateau"),
            _ => ("/", "7 Harbour Street: all that belongs on board"),
        };
        let mut draft = Draft { language, ..Draft::new(path, title) }.text(1, 22);
        // The French page was made last, and names only one of the others.
        for (code, folder) in
            LANGUAGES.iter().filter(|(code, _)| language != "fr" || ["fr", "de"].contains(code))
        {
            let _ =
                write!(draft.head, "<link rel=alternate hreflang={code} href=\"{}{folder}\">", self.origin);
        }
        for section in SECTIONS {
            let _ = write!(draft.body, "<p><a href=/{section}/>All about {section}</a></p>");
        }
        self.html(
            &draft
                .add("<p><a href=/de/>Deutsch</a> <a href=/fr/>Français</a> <a href=/basket>Basket</a></p>"),
        )
    }

    fn section(&self, section: &str, number: usize) -> Page {
        let path = if number == 1 { format!("/{section}/") } else { format!("/{section}/page/{number}") };
        let mut draft = Draft::new(
            &path,
            &format!("{} for every boat and every weather, page {number}", capital(section)),
        );
        draft = draft.text(seed(section) + number as u64, 20);
        for article in (number - 1) * ON_A_PAGE..(number * ON_A_PAGE).min(ARTICLES) {
            let _ = write!(draft.body, "<p><a href=/{section}/{article}>{}</a></p>", name(section, article));
        }
        if number * ON_A_PAGE < ARTICLES {
            let _ = write!(draft.body, "<p><a href=/{section}/page/{}>Next page</a></p>", number + 1);
        }
        self.html(&draft)
    }

    fn article(&self, section: &str, number: usize) -> Page {
        // Articles of all sections in a row, so that each fault shows in several of them.
        let at = SECTIONS.iter().position(|other| *other == section).unwrap_or(0) * ARTICLES + number;
        let name = name(section, number);
        let is = |every: usize| at % every == every - 1;
        let title = match at {
            _ if is(13) => "Article".to_owned(),
            _ if is(9) => format!("{}: one of our many fine articles", capital(section)),
            _ => format!("{name} Ask us at the harbour"),
        };
        let mut draft = Draft {
            has_description: !is(6),
            has_canonical: !is(5),
            heading: if is(17) { String::new() } else { format!("<h1>{name}</h1>") },
            ..Draft::new(&format!("/{section}/{number}"), &title)
        };
        let alt = if is(4) { "" } else { " alt=\"The article on a quay\"" };
        draft = draft.add(&format!("<img src=/photos/{}.jpg{alt} width=300 height=200>", at % 30));
        draft = draft.text(seed(section) * 31 + number as u64, if is(7) { 6 } else { 20 });
        if is(16) {
            draft =
                draft.add(&format!("<img src=/photos/lost-{at}.jpg alt=\"From behind\" width=3 height=2>"));
        }
        if is(11) {
            draft = draft.add(&format!("<h4>Spare parts</h4><a href=/spares/{at}>Order them</a>"));
        }
        if is(8) {
            draft = draft.add("<a href=/about#opening-hours>click here</a>");
        }
        if is(19) {
            draft =
                draft.add(&format!("<p>Goes with <a href=/{section}/{}>our old model</a>.</p>", 100 + at));
        }
        if is(29) {
            draft.head.push_str("<meta name=robots content=noindex>");
        }
        let next = (number + 7) % ARTICLES;
        self.html(&draft.add(&format!("<p>See <a href=/{section}/{next}>something like it</a>, too.</p>")))
    }

    fn stories(&self) -> Page {
        let mut draft = Draft::new("/stories/", "Stories from the sea, told by our customers").text(40, 20);
        for number in 0..STORIES {
            let _ = write!(
                draft.body,
                "<p><a href=/stories/{number}>{}</a></p>",
                title(&mut Random::new(number as u64))
            );
        }
        self.html(&draft)
    }

    fn story(&self, number: usize) -> Page {
        // Three stories are one.
        let text = if (3..6).contains(&number) { 3 } else { number };
        let title = title(&mut Random::new(number as u64));
        let mut draft =
            Draft::new(&format!("/stories/{number}"), &format!("{title} A story")).text(50 + text as u64, 24);
        if number == 2 {
            draft = draft.add("<p><a href=http://localhost/admin>Edit</a></p>");
        }
        if number + 1 < STORIES {
            draft = draft.add(&format!("<p><a href=/stories/{}>The next story</a></p>", number + 1));
        }
        self.html(&draft)
    }

    fn sitemap(&self) -> Page {
        let mut text = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
        );
        let articles = SECTIONS
            .iter()
            .flat_map(|section| (0..ARTICLES).map(move |number| format!("/{section}/{number}")));
        let others = ["/", "/de/", "/about", "/prices", "/forgotten"].map(str::to_owned);
        for path in others.into_iter().chain(articles.step_by(2)) {
            let _ = writeln!(text, "<url><loc>{}{path}</loc></url>", self.origin);
        }
        file("application/xml", &(text + "</urlset>\n"))
    }

    fn html(&self, draft: &Draft) -> Page {
        let Draft { path, title, language, head, heading, body, .. } = draft;
        let description = match draft.has_description {
            true => format!(
                "<meta name=description content=\"{title}. What it is, what it is for, what it costs, and why we sell it.\">"
            ),
            false => String::new(),
        };
        let canonical = match draft.has_canonical {
            true => format!("<link rel=canonical href=\"{}{path}\">", self.origin),
            false => String::new(),
        };
        let mut menu = String::new();
        for section in SECTIONS {
            let _ = write!(menu, "<a href=/{section}/>{}</a> ", capital(section));
        }
        let mut page = page::html(format!(
            "<!doctype html><html lang={language}><head><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>{title}</title>\
             {description}{canonical}{head}<link rel=stylesheet href=/style.css></head><body><header><nav>{menu}<a href=/stories/>Stories</a> \
             <a href=/about>About us</a> <a href=/prices>Prices</a></nav></header><main>{heading}{body}</main><footer><a href=/imprint>Imprint</a> \
             <a href=https://ring-of-harbours.invalid/>Ring of harbours</a></footer></body></html>"
        ));
        let headers = [
            (HeaderName::from_static("x-content-type-options"), "nosniff"),
            (HeaderName::from_static("referrer-policy"), "same-origin"),
            (LAST_MODIFIED, "Tue, 10 Nov 2026 12:00:00 GMT"),
        ];
        page.headers_mut().extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
        page
    }
}

fn is_section(name: &str) -> bool {
    SECTIONS.contains(&name)
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A number for a section.
fn seed(section: &str) -> u64 {
    section.bytes().map(u64::from).sum::<u64>() * 100
}

fn name(section: &str, number: usize) -> String {
    title(&mut Random::new(seed(section) + number as u64 * 13)).replace('?', ".")
}

fn missing() -> Page {
    page::missing("<!doctype html><title>Not found</title><h1>Not found</h1>".to_owned())
}

/// A file that may be kept for long.
fn file(content_type: &'static str, body: &str) -> Page {
    let mut file = page::text(StatusCode::OK, body);
    file.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    file.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("max-age=604800"));
    file
}

/// Something of the size of a photograph; one of them was never scaled down.
fn photo(name: &str) -> Page {
    match name.strip_suffix(".jpg").and_then(|number| number.parse::<usize>().ok()) {
        Some(number) if number < 30 => {
            file("image/jpeg", &"~".repeat(if number == 7 { 700_000 } else { 20_000 }))
        }
        _ => missing(),
    }
}
