//! UserAgent: identifies the crawler in every request.

use http::{HeaderValue, header};
use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, Error, Hooks, OnRequest, Request, Result, Settings,
};

use crate::added;

/// Sets `User-Agent` to the `user_agent` setting unless the request has one.
#[derive(Debug)]
pub struct UserAgent {
    value: HeaderValue,
}

impl UserAgent {
    /// Creates the component from the settings; `None` if the setting is empty.
    ///
    /// # Errors
    /// The setting is not allowed as a header value.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        if settings.user_agent.is_empty() {
            return Ok(None);
        }
        let value = HeaderValue::from_str(&settings.user_agent)
            .map_err(|_| Error::usage("setting user_agent: not allowed as a header value"))?;
        Ok(Some(Self { value }))
    }
}

impl Component for UserAgent {
    const NAME: &'static str = "user_agent";
    type Settings = ();

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.downloader(500)
    }
}

impl DownloaderMiddleware for UserAgent {
    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        added::set_if_absent(request, header::USER_AGENT, self.value.clone());
        Ok(OnRequest::Continue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_user_agent_of_the_request_is_kept() {
        let settings = Settings::default();
        let user_agent = UserAgent::from_settings(&settings).unwrap().unwrap();
        let cx = Context::detached(settings);
        let mut plain = Request::parse("http://h/").unwrap();
        user_agent.process_request(&mut plain, &cx).await.unwrap();
        assert!(plain.headers["user-agent"].to_str().unwrap().starts_with("huntsman/"));
        let mut own = Request::parse("http://h/").unwrap().header("User-Agent", "mine/1").unwrap();
        user_agent.process_request(&mut own, &cx).await.unwrap();
        assert_eq!(own.headers["user-agent"], "mine/1");
    }
}
