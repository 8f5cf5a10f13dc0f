//! Whole crawls of local sites in a real Chromium: golden pages, politeness by the server's clock, hostile pages, `render = auto`.

mod golden;
mod hostile;
mod politeness;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use huntsman::browser::Rendering;
use huntsman::middleware::{Cookies, RenderRequest, Rendered, RenderedPage};
use huntsman::{CrawlReport, Output, Page, Request, Result, Spider, Start};
use huntsman_testkit::{Answer, RunningSite};
use serde_json::{Value, json};
use url::Url;

use super::support::on_site;

/// What the spider saw of a page.
#[derive(Clone, Debug)]
struct Seen {
    text: String,
    links: Vec<String>,
    flags: Vec<&'static str>,
    rendered: Option<Rendered>,
}

/// The pages by path, with query and fragment.
type Pages = Arc<Mutex<BTreeMap<String, Seen>>>;

/// Notes each page, and follows its links.
struct Notes {
    start: Vec<Request>,
    pages: Pages,
}

impl Spider for Notes {
    type Item = ();

    fn start(&self) -> Start {
        Start::requests(self.start.clone())
    }

    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        let mut links: Vec<String> = page.links().iter().map(|url| path_of(url).to_owned()).collect();
        links.dedup();
        let seen = Seen {
            text: page.text().split_whitespace().collect::<Vec<_>>().join(" "),
            links,
            flags: page.response().flags.clone(),
            rendered: page.rendered().cloned(),
        };
        let earlier = self.pages.lock().unwrap().insert(path_of(page.url()).to_owned(), seen);
        assert!(earlier.is_none(), "{} came twice", page.url());
        out.follow_links(page);
        Ok(())
    }
}

fn path_of(url: &Url) -> &str {
    &url[url::Position::BeforePath..]
}

struct Crawled {
    report: CrawlReport,
    pages: BTreeMap<String, Seen>,
}

impl Crawled {
    fn page(&self, path: &str) -> &Seen {
        self.pages.get(path).unwrap_or_else(|| panic!("{path} is not among {:?}", self.pages.keys()))
    }
}

/// Crawls a site in the browser. Its pages are ours, so they need no sandbox, which root could not have.
async fn crawl(site: &RunningSite, start: Vec<Request>, set: &[(&str, Value)]) -> Crawled {
    let pages = Pages::default();
    let mut builder = on_site(Notes { start, pages: Arc::clone(&pages) }, site)
        .set("scope", "host")
        .set("render_sandbox", "off");
    for (name, value) in set {
        builder = builder.set(name, value.clone());
    }
    let report = builder.run().await.unwrap();
    let pages = std::mem::take(&mut *pages.lock().unwrap());
    Crawled { report, pages }
}

async fn crawl_all(site: &RunningSite, path: &str, set: &[(&str, Value)]) -> Crawled {
    let mut settings = vec![("render", json!("all"))];
    settings.extend_from_slice(set);
    crawl(site, vec![Request::get(site.url(path))], &settings).await
}

fn script(text: &str) -> Answer {
    Answer::text(text.to_owned()).header("Content-Type", "text/javascript")
}

fn data(text: String) -> Answer {
    Answer::text(text).header("Content-Type", "application/json")
}
