//! Checks the addresses of the start URLs before a crawl begins, and gives advice if they cannot be fetched.

use huntsman_crawler::{FetchErrorKind, HttpDownloader, Settings};
use huntsman_middleware::HttpProxySettings;
use url::Url;

use super::exit::{Failure, Outcome};

/// Maximum number of start URLs that are checked.
const LOOKED_AT: usize = 20;

/// Checks that at least one start URL has an address that may be connected to. If none has, the crawl is not started:
/// it could only record that.
///
/// # Errors
/// No start URL has such an address; every URL is named with the reason and what to do.
pub async fn look_at(urls: &[Url], settings: &Settings, downloader: &HttpDownloader) -> Outcome<()> {
    // A proxy resolves host names itself.
    let proxies: HttpProxySettings = settings.of()?;
    if proxies.proxy.is_some() || proxies.proxy_from_env || urls.len() > LOOKED_AT {
        return Ok(());
    }
    let mut refusals = Vec::new();
    for url in urls {
        match downloader.check(url).await {
            Ok(()) => return Ok(()),
            Err(error) => {
                refusals.push(format!("{url}: {error}{}", advice(error.kind().name(), url)));
            }
        }
    }
    if refusals.is_empty() { Ok(()) } else { Err(Failure::crawl(refusals.join("\n"))) }
}

/// What to do for a reason (`robots: Disallow: /x`) why a URL was not fetched, if a flag or the user can do something
/// about it.
pub fn advice(reason: &str, url: &Url) -> String {
    let is = |kind: FetchErrorKind| reason.split(':').next() == Some(kind.name());
    if is(FetchErrorKind::AddressRefused) {
        let (host, port) = (url.host_str().unwrap_or(""), url.port_or_known_default().unwrap_or(80));
        format!("; if you mean it: --allow-address {host}:{port}")
    } else if is(FetchErrorKind::Dns) {
        "; check the name and the network".to_owned()
    } else if reason == "robots" || reason.starts_with("robots:") {
        "; --ignore-robots fetches it all the same".to_owned()
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_the_flag_that_helps() {
        let url = Url::parse("http://[::1]/x").unwrap();
        assert!(advice("address_refused: ::1", &url).ends_with("--allow-address [::1]:80"));
        assert!(advice("robots: Disallow: /", &url).contains("--ignore-robots"));
        assert_eq!(advice("robots_unreachable: refused", &url), "");
    }
}
