//! DownloadTimeout: the time a whole request may take, as meta `download_timeout` for the downloader.

use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, Hooks, OnRequest, Request, Result, Settings, meta, seconds,
};

use crate::added;

/// Gives each request the time limit of the settings, unless its own meta `download_timeout` (seconds) sets one. A
/// limit that is not a positive number is replaced, because a request without any limit could hold a connection
/// forever.
#[derive(Debug)]
pub struct DownloadTimeout {
    seconds: f64,
}

impl DownloadTimeout {
    /// Creates the component from the settings; `None` if `download_timeout` is 0: then the downloader's own limits apply.
    ///
    /// # Errors
    /// None today.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let seconds = settings.download_timeout;
        Ok((seconds > 0.0).then_some(Self { seconds }))
    }
}

impl Component for DownloadTimeout {
    const NAME: &'static str = "download_timeout";
    type Settings = ();

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.downloader(350)
    }
}

impl DownloaderMiddleware for DownloadTimeout {
    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        let own = request.meta_value(meta::DOWNLOAD_TIMEOUT);
        if own.is_none_or(|own| own.is_zero()) {
            added::set_meta(request, meta::DOWNLOAD_TIMEOUT, seconds(self.seconds));
        }
        Ok(OnRequest::Continue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_limit_of_the_request_wins_if_it_is_one() {
        let settings = Settings::default();
        let timeout = DownloadTimeout::from_settings(&settings).unwrap().unwrap();
        let cx = Context::detached(settings);
        for (own, expected) in [(None, 30.0), (Some(5.0), 5.0), (Some(-1.0), 30.0), (Some(0.0), 30.0)] {
            let mut request = Request::parse("http://h/").unwrap();
            if let Some(own) = own {
                request = request.meta("download_timeout", own);
            }
            timeout.process_request(&mut request, &cx).await.unwrap();
            assert_eq!(request.meta_value(meta::DOWNLOAD_TIMEOUT), Some(seconds(expected)));
        }
    }

    #[test]
    fn no_limit_in_the_settings_leaves_it_out() {
        let mut settings = Settings::default();
        settings.download_timeout = 0.0;
        assert!(DownloadTimeout::from_settings(&settings).unwrap().is_none());
    }
}
