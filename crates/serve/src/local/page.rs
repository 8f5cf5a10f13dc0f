//! The page at `/`: a frame without data, its style and its script. The script gets all data from the API.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::Html;
use axum::routing::get;
use maud::{DOCTYPE, Markup, html};

/// The policy of the page: it loads nothing but its own style and script, and no other page can show it in a frame.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What all pages have: the way from the code of the link to a token, requests, and tables that show text as text.
const COMMON: &str = include_str!("common.js");
const STYLE: &str = include_str!("style.css");

/// A page for people over the API of a [`LocalServer`](super::LocalServer).
#[derive(Clone, Debug)]
pub struct LocalPage {
    /// Its title.
    pub title: &'static str,
    /// What stands on it before the script runs.
    pub content: Markup,
    /// The script that fills it. It finds `call(path, body)`, `every(seconds, work)` and `table(id, rows)`.
    pub script: &'static str,
}

impl LocalPage {
    pub(super) fn routes(self) -> Router {
        let shell = self.shell().into_string();
        let script = format!("{COMMON}\n{}", self.script);
        Router::new()
            .route("/", get(async move || Html(shell)))
            .route(
                "/page.js",
                get(async move || ([(CONTENT_TYPE, "text/javascript; charset=utf-8")], script)),
            )
            .route("/style.css", get(async || ([(CONTENT_TYPE, "text/css; charset=utf-8")], STYLE)))
    }

    fn shell(&self) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    title { (self.title) }
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    link rel="stylesheet" href="/style.css";
                    script src="/page.js" defer {}
                }
                body {
                    p #message role="status" { "This page needs its script." }
                    main hidden { (self.content) }
                }
            }
        }
    }
}
