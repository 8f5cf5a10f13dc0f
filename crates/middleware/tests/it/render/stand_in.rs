//! A renderer of a few lines in place of a browser: it asks for what a page names, and puts what it gets into the page.
//!
//! `<script src=...>` and `<link href=...>` are asked for; so is each `data-fetch`, and its text becomes a part of the page. `data-cookie` is set
//! as a script would, `data-popup` is a window that is opened, `data-url` the address at the end, `data-seen` shows the cookies that a script
//! sees, and `data-crash` crashes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use huntsman_middleware::browser::{
    Answer, Asked, Exchange, Kind, Network, Refused, Rendered, Rendering, SubRequest,
};
use huntsman_middleware::{RenderError, RenderFuture, Renderer};
use tokio::time::Instant;
use url::Url;

#[derive(Default)]
pub(crate) struct StandIn {
    /// Pages that were begun.
    pub(crate) pages: AtomicUsize,
    /// Pages in it at once, at most.
    pub(crate) peak: AtomicUsize,
    now: AtomicUsize,
    /// Milliseconds for which a page waited for nothing but the pace of hosts.
    pub(crate) waited: AtomicUsize,
}

impl StandIn {
    async fn page(&self, url: &str, network: Arc<dyn Network>) -> Result<Rendered, RenderError> {
        let started = Instant::now();
        let mut page = OnePage { network, document: url.to_owned(), requests: Vec::new(), stand_in: self };
        let document = page.get(url, Kind::Document, true).await.expect("the page itself is there");
        let text = String::from_utf8_lossy(&document.body).into_owned();
        if text.contains("data-crash") {
            return Err(RenderError::Crashed("it crashed".to_owned()));
        }
        for script in values(&text, "src") {
            let _ = page.get(&script, Kind::Script, false).await;
        }
        for style in values(&text, "sheet") {
            let _ = page.get(&style, Kind::Stylesheet, false).await;
        }
        let mut html = text.clone();
        for address in values(&text, "data-fetch") {
            match page.get(&address, Kind::Fetch, false).await {
                Ok(answer) => html.push_str(&String::from_utf8_lossy(&answer.body)),
                Err(refused) => html.push_str(&format!("<p>refused: {refused}</p>")),
            }
        }
        if text.contains("data-seen") {
            let set = document.headers.iter().filter(|(name, _)| name == "set-cookie");
            html.push_str(&set.map(|(_, line)| format!("<p>{line}</p>")).collect::<String>());
        }
        Ok(Rendered {
            url: values(&text, "data-url").first().map_or_else(|| url.to_owned(), |to| page.join(to)),
            html,
            status: document.status,
            headers: document.headers,
            static_body: document.body,
            is_incomplete: text.contains("data-incomplete"),
            requests: page.requests.clone(),
            console: Vec::new(),
            shots: Vec::new(),
            values: Vec::new(),
            popups: values(&text, "data-popup").iter().map(|to| page.join(to)).collect(),
            cookies: values(&text, "data-cookie").into_iter().map(|line| (url.to_owned(), line)).collect(),
            refused_direct: 0,
            took: started.elapsed(),
        })
    }
}

impl Renderer for StandIn {
    fn render<'a>(&'a self, url: &'a str, _: &'a Rendering, network: Arc<dyn Network>) -> RenderFuture<'a> {
        Box::pin(async move {
            self.pages.fetch_add(1, Ordering::Relaxed);
            let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
            self.peak.fetch_max(now, Ordering::Relaxed);
            let page = self.page(url, network).await;
            self.now.fetch_sub(1, Ordering::Relaxed);
            page
        })
    }
}

struct OnePage<'a> {
    network: Arc<dyn Network>,
    document: String,
    requests: Vec<SubRequest>,
    stand_in: &'a StandIn,
}

impl OnePage<'_> {
    fn join(&self, address: &str) -> String {
        Url::parse(&self.document).unwrap().join(address).unwrap().to_string()
    }

    /// Asks as a browser does, which takes each hop of a redirect itself.
    async fn get(&mut self, address: &str, kind: Kind, is_main: bool) -> Result<Answer, Refused> {
        let mut url = self.join(address);
        loop {
            let asked = Asked {
                url: url.clone(),
                method: "GET".to_owned(),
                headers: vec![("referer".to_owned(), self.document.clone())],
                body: None::<Bytes>,
                kind,
                is_main,
                document: self.document.clone(),
                cookies: Vec::new(),
            };
            let answer = self.watched(asked).await;
            self.requests.push(SubRequest {
                url: url.clone(),
                method: "GET".to_owned(),
                kind: Some(kind),
                answer: answer.as_ref().map(|answer| answer.status).map_err(|refused| refused.reason.clone()),
                bytes: answer.as_ref().map_or(0, |answer| answer.body.len() as u64),
                started: Duration::ZERO,
                took: Duration::ZERO,
                exchange: Exchange::default(),
            });
            let answer = answer?;
            let to = answer.headers.iter().find(|(name, _)| name == "location").map(|(_, to)| to.clone());
            match to.filter(|_| (300..400).contains(&answer.status)) {
                Some(to) => url = Url::parse(&url).unwrap().join(&to).unwrap().to_string(),
                None => return Ok(answer),
            }
        }
    }

    /// Notes while it waits whether the page only waits for the pace of a host.
    async fn watched(&self, asked: Asked) -> Result<Answer, Refused> {
        const STEP: Duration = Duration::from_millis(10);
        let mut answer = self.network.answer(asked);
        loop {
            match tokio::time::timeout(STEP, &mut answer).await {
                Ok(answer) => return answer,
                Err(_) if self.network.is_waiting() => {
                    self.stand_in.waited.fetch_add(10, Ordering::Relaxed);
                }
                Err(_) => {}
            }
        }
    }
}

/// The values of an attribute, in quotes.
fn values(html: &str, attribute: &str) -> Vec<String> {
    let start = format!("{attribute}=\"");
    html.split(&start).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}
