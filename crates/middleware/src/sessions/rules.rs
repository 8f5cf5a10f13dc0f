//! What a program adds to sessions: how a new one is set up, and which pages are blocks.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use huntsman_crawler::{Context, Error, Page, Request, Response, Result};

use super::{Loan, SettingUp};

type SetUp = dyn Fn(NewSession) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync;
type IsBlocked = dyn Fn(&Response) -> bool + Send + Sync;

/// The rules of a program for its [`Sessions`](super::Sessions), besides the settings.
///
/// ```
/// use huntsman_crawler::{CrawlerBuilder, Error, Form, Output, Page, Request, Result, spider_fn};
/// use huntsman_middleware::{Defaults, NewSession, SessionRules, Sessions};
///
/// async fn log_in(session: NewSession) -> Result<()> {
///     let page = Request::parse("https://site.example/login")?;
///     let form = session
///         .read(page, |page| Form::of(page, "#login")?.set("user", "ann")?.set("password", "secret")?.request())
///         .await?;
///     session
///         .read(form, |page| match page.text().contains("Log out") {
///             true => Ok(()),
///             false => Err(Error::msg("the password was refused")),
///         })
///         .await
/// }
///
/// let rules = SessionRules::new()
///     .on_new_session(log_in)
///     .blocked_if(|response| response.body.windows(7).any(|part| part == b"captcha"));
/// let spider = spider_fn(["https://site.example/"], |_: &Page, _: &mut Output<()>| -> Result<()> { Ok(()) });
/// let crawl = CrawlerBuilder::new(spider)
///     .plugin(Defaults)
///     .set("session_pool_size", 3)
///     .component(move |settings| Sessions::with_rules(settings, rules));
/// ```
#[derive(Clone, Default)]
pub struct SessionRules {
    pub(crate) set_up: Option<Arc<SetUp>>,
    pub(crate) is_blocked: Option<Arc<IsBlocked>>,
}

impl SessionRules {
    /// Rules that add nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A function that is awaited before a new session is used: it logs in, or takes a cookie from a start page. Other requests of the session
    /// wait for it. If it gives an error, the session is retired, and its request is retried in another one.
    pub fn on_new_session<F>(mut self, set_up: impl Fn(NewSession) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        self.set_up = Some(Arc::new(move |session| Box::pin(set_up(session))));
        self
    }

    /// A function that says whether a response is a block, besides those of `session_blocked_codes`: a captcha with status 200, or an empty page.
    /// It gets the decoded body, and must be quick: it runs before the page goes to its worker.
    pub fn blocked_if(mut self, is_blocked: impl Fn(&Response) -> bool + Send + Sync + 'static) -> Self {
        self.is_blocked = Some(Arc::new(is_blocked));
        self
    }
}

impl fmt::Debug for SessionRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRules")
            .field("set_up", &self.set_up.is_some())
            .field("is_blocked", &self.is_blocked.is_some())
            .finish()
    }
}

/// A session that is being set up. Its requests have the cookies, the proxy and the headers of the session; they go through the queue's
/// rules, robots.txt and the slot of their host as other requests.
#[derive(Clone, Debug)]
pub struct NewSession {
    pub(crate) loan: Loan,
    pub(crate) cx: Context,
}

impl NewSession {
    /// The name of the session: that which the spider gave it, or one that begins with `#`.
    pub fn name(&self) -> &str {
        &self.loan.name
    }

    /// The context of the crawl.
    pub fn context(&self) -> &Context {
        &self.cx
    }

    /// Sends a request in the session, and returns the response, of any status. Redirects are followed.
    ///
    /// # Errors
    /// The download failed, or a middleware dropped the request.
    pub async fn fetch(&self, mut request: Request) -> Result<Response> {
        request.extensions.insert(SettingUp(self.loan.clone()));
        Ok(self.cx.download(request).await?)
    }

    /// Sends a request in the session, and reads the page with a function: one that makes the next request of it, or that checks that the login
    /// worked.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch); or the status is not 2xx; or the function gives an error.
    pub async fn read<T>(&self, request: Request, read: impl FnOnce(&Page) -> Result<T> + Send) -> Result<T> {
        let response = self.fetch(request.clone()).await?;
        if !response.status.is_success() {
            let message = format!("{} answered {} to a new session", response.url, response.status);
            return Err(Error::msg(message));
        }
        read(&Page::new(request, response))
    }
}
