//! A connected graph of pages of one size, generated on request: the site of `huntsman bench crawl`.
//!
//! Page `i` is `/p/<i mod 100>/<i>.html` and links to `i + 1`, `2i` and `2i + 1` (so the depth is about log2 of the
//! number of pages) and to pages drawn from `i`.

use std::fmt::Write as _;

use http::{StatusCode, Uri};

use super::boats::sentences;
use super::page::{self, Page};
use super::random::Random;

/// Number of sentences to choose from; generating new text would cost the server more than the page costs the
/// crawler.
const POOL: usize = 4_000;

/// A page that a script fills, and that script.
const EMPTY: &str = "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Page</title></head><body><main></main><script src=\"/app.js\"></script></body></html>\n";
const SCRIPT: &str = "fetch(location.pathname.replace('/app/', '/p/')).then((answer) => answer.text()).then((text) => {\n  \
    const main = text.slice(text.indexOf('<main>') + 6, text.indexOf('</main>'));\n  \
    document.querySelector('main').innerHTML = main.replaceAll('href=\"/p/', 'href=\"/app/');\n});\n";

/// A generated site of pages of one size.
#[derive(Debug)]
pub struct Uniform {
    pages: u64,
    bytes: usize,
    links: u64,
    pool: Vec<String>,
}

impl Uniform {
    /// A site with this number of pages, and kilobytes and links for each.
    pub fn new(pages: u64, kilobytes: u64, links: u64) -> Self {
        let mut random = Random::new(2024);
        let pool = (0..POOL).map(|_| sentences(&mut random, 3)).collect();
        Self { pages, bytes: usize::try_from(kilobytes * 1_000).unwrap_or(usize::MAX), links, pool }
    }

    /// The path of a page.
    pub fn path(index: u64) -> String {
        format!("/p/{}/{index}.html", index % 100)
    }

    /// The path of the same page in the form that a script fills; it links to such pages.
    pub fn script_path(index: u64) -> String {
        format!("/app/{}/{index}.html", index % 100)
    }

    /// The response to a request for an address.
    pub fn answer(&self, request: &Uri) -> Page {
        if request.path() == "/app.js" {
            return page::script(SCRIPT.to_owned());
        }
        if let Some(rest) = request.path().strip_prefix("/app/")
            && self.index(&format!("/p/{rest}")).is_some()
        {
            return page::html(EMPTY.to_owned());
        }
        match self.index(request.path()) {
            Some(index) => page::html(self.page(index)),
            None => page::text(StatusCode::NOT_FOUND, "no such page\n"),
        }
    }

    fn index(&self, path: &str) -> Option<u64> {
        let (folder, name) = path.strip_prefix("/p/")?.split_once('/')?;
        let index: u64 = name.strip_suffix(".html")?.parse().ok()?;
        (index < self.pages && folder.parse() == Ok(index % 100)).then_some(index)
    }

    fn targets(&self, index: u64) -> Vec<u64> {
        let mut random = Random::new(index);
        let mut targets =
            vec![(index + 1) % self.pages, 2 * index % self.pages, (2 * index + 1) % self.pages];
        targets.extend((3..self.links).map(|_| random.next() % self.pages));
        targets
    }

    fn page(&self, index: u64) -> String {
        let mut random = Random::new(!index);
        let mut out = String::with_capacity(self.bytes + 2_000);
        let _ = writeln!(
            out,
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Page {index}</title>\
             <link rel=\"stylesheet\" href=\"/s.css\"><meta name=\"description\" content=\"Generated page {index}\">\
             </head><body><main><h1>Page {index}</h1>"
        );
        let mut targets = self.targets(index).into_iter().peekable();
        while out.len() < self.bytes || targets.peek().is_some() {
            let _ = write!(out, "<div class=\"b c{}\"><p id=\"x{}\">", out.len() % 5, out.len());
            out.push_str(&self.pool[random.below(POOL)]);
            out.push(' ');
            if let Some(target) = targets.next() {
                let _ =
                    write!(out, "<a href=\"{}\" title=\"to {target}\">page {target}</a>", Self::path(target));
            }
            out.push_str("</p></div>\n");
        }
        out.push_str("</main><footer><p>The same on all pages.</p></footer></body></html>\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, VecDeque};

    use super::*;

    #[test]
    fn every_page_is_reached_from_the_first_one() {
        let site = Uniform::new(500, 1, 4);
        let (mut seen, mut queue) = (BTreeSet::from([0]), VecDeque::from([0]));
        while let Some(index) = queue.pop_front() {
            queue.extend(site.targets(index).into_iter().filter(|target| seen.insert(*target)));
        }
        assert_eq!(seen.len(), 500);
    }

    #[test]
    fn pages_have_the_size_and_the_links_that_were_asked_for() {
        let site = Uniform::new(50, 20, 40);
        let body = site.answer(&Uri::from_static("/p/7/7.html")).into_body();
        assert!((20_000..22_000).contains(&body.len()), "{}", body.len());
        assert_eq!(body.matches("<a href=").count(), 40);
        let by_script = site.answer(&Uri::from_static("/app/7/7.html")).into_body();
        assert!(by_script.contains("/app.js") && !by_script.contains("<a "), "{by_script}");
        for unknown in ["/app/0/7.html", "/p/0/7.html", "/p/50/50.html", "/", "/p/x/y.html"] {
            assert_eq!(site.answer(&Uri::from_static(unknown)).status(), 404, "{unknown}");
        }
    }
}
