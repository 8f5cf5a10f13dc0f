//! A spider and its items without their types, so that the engine is compiled once, not again for every spider.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::context::Context;
use crate::error::{Error, Result};
use crate::output::{Output, Resolve};
use crate::page::Page;
use crate::request::Request;
use crate::spider::Spider;
use crate::start::Start;

/// At least one item of a callback. Only the spider and the pipelines of the crawl know their type.
pub(crate) struct GivenItems(Box<dyn Any + Send>);

impl GivenItems {
    /// `None` if there is no item.
    fn of<I: Send + 'static>(items: Vec<I>) -> Option<Self> {
        (!items.is_empty()).then(|| Self(Box::new(items)))
    }

    /// The items, for the pipelines.
    pub(crate) fn into_vec<I: 'static>(self) -> Vec<I> {
        let items = self.0.downcast::<Vec<I>>();
        // A `CrawlerBuilder` takes pipelines of the item type of its spider only.
        *items.expect("the pipelines of a crawl have the item type of its spider")
    }
}

/// Where the output of a running callback goes.
pub(crate) struct Outlet {
    pub(crate) context: Context,
    /// Sends full batches.
    pub(crate) flush: Box<dyn FnMut(Option<GivenItems>, Vec<Request>)>,
    pub(crate) resolve: Resolve,
}

/// The result of a callback, and what it gave since its last full batch.
pub(crate) struct Called {
    /// The outer error is the payload of a panic.
    pub(crate) result: std::thread::Result<Result<()>>,
    pub(crate) items: Option<GivenItems>,
    pub(crate) requests: Vec<Request>,
    /// Number of items in all batches.
    pub(crate) given: u64,
}

impl Called {
    fn of<I: Send + 'static>(result: std::thread::Result<Result<()>>, out: Output<I>) -> Self {
        let given = out.items_given();
        let (items, requests) = out.into_parts();
        Self { result, items: GivenItems::of(items), requests, given }
    }
}

/// Object-safe version of [`Spider`]. A panic of a callback is caught.
pub(crate) trait DynSpider: Send + Sync {
    fn name(&self) -> &str;
    fn start(&self) -> Start;
    fn callbacks(&self) -> &[&str];
    fn allowed_domains(&self) -> Vec<String>;
    /// Calls the callback of a page. Its output begins with `followed`, the requests that middlewares made from the page.
    fn parse(&self, page: &Page, followed: Vec<Request>, outlet: Outlet) -> Called;
    fn failed(&self, request: &Request, error: &Error, cx: Context) -> Called;
}

impl<S: Spider> DynSpider for S {
    fn name(&self) -> &str {
        Spider::name(self)
    }

    fn start(&self) -> Start {
        Spider::start(self)
    }

    fn callbacks(&self) -> &[&str] {
        Spider::callbacks(self)
    }

    fn allowed_domains(&self) -> Vec<String> {
        Spider::allowed_domains(self)
    }

    fn parse(&self, page: &Page, followed: Vec<Request>, outlet: Outlet) -> Called {
        let Outlet { context, mut flush, resolve } = outlet;
        let flush = move |items, requests| flush(GivenItems::of(items), requests);
        let mut out = Output::streaming(context, Box::new(flush), resolve);
        followed.into_iter().for_each(|request| out.request(request));
        page.forget_label_reads();
        let result = catch_unwind(AssertUnwindSafe(|| Spider::parse(self, page, &mut out)));
        Called::of(result, out)
    }

    fn failed(&self, request: &Request, error: &Error, cx: Context) -> Called {
        let mut out = Output::new(cx);
        let result = catch_unwind(AssertUnwindSafe(|| Spider::failed(self, request, error, &mut out)));
        Called::of(result, out)
    }
}
