//! The spider of a simulated crawl, and its user's middleware: both fail where a page says so.

use std::panic::resume_unwind;
use std::sync::Arc;

use huntsman_crawler::{
    Context, DownloaderMiddleware, Error, OnResponse, Output, Page, Request, Response, Result, Spider, Start,
};

use super::web::{Kind, Web};

/// Follows every link of a [`Simulation`](super::Simulation)'s web and returns the items of its pages.
#[derive(Debug)]
pub struct Visitor {
    web: Arc<Web>,
}

impl Visitor {
    pub(super) fn new(web: Arc<Web>) -> Self {
        Self { web }
    }
}

/// Panics without invoking the panic hook, so no message is printed.
pub(super) fn panics(what: &str) -> ! {
    resume_unwind(Box::new(what.to_owned()))
}

impl Spider for Visitor {
    type Item = String;

    fn start(&self) -> Start {
        Start::urls(self.web.seeds())
    }

    fn parse(&self, page: &Page, out: &mut Output<String>) -> Result<()> {
        let items = self.web.items(page.url());
        let half = items.len() / 2;
        items[..half].iter().for_each(|item| out.item(item.clone()));
        out.follow_links(page);
        match self.web.kind(page.url()) {
            Some(Kind::CallbackError) => return Err(Error::msg("as the page wants it")),
            Some(Kind::CallbackPanic) => panics("as the page wants it"),
            _ => {}
        }
        items[half..].iter().for_each(|item| out.item(item.clone()));
        Ok(())
    }

    fn failed(&self, request: &Request, _: &Error, out: &mut Output<String>) -> Result<()> {
        out.item(format!("failed {}", request.requested_url()));
        Ok(())
    }
}

/// A middleware that fails on the responses of some pages.
pub(super) struct FaultyMiddleware(pub(super) Arc<Web>);

impl DownloaderMiddleware for FaultyMiddleware {
    fn name(&self) -> &'static str {
        "clumsy"
    }

    fn order(&self) -> i32 {
        560
    }

    async fn process_response(&self, request: &Request, _: &mut Response, _: &Context) -> Result<OnResponse> {
        match self.0.kind(&request.url) {
            Some(Kind::MiddlewareError) => Err(Error::msg("as the page wants it")),
            Some(Kind::MiddlewarePanic) => panics("as the page wants it"),
            _ => Ok(OnResponse::Continue),
        }
    }
}
