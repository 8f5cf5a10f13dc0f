//! Advice about pages that were not fetched, with the flags of the commands that crawl sites.

use url::Url;

use crate::command::reachable;

pub(crate) use crate::command::reachable::look_at;

/// Advice for a reason (`robots: Disallow: /x`) why a URL was not fetched, if a flag or the user can do something
/// about it.
pub(crate) fn advice(reason: &str, url: &Url) -> String {
    match reason.starts_with("offsite") {
        true => "; start there, or let the crawl go there with --allow-host or --scope domain".to_owned(),
        false => reachable::advice(reason, url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_url_that_leads_elsewhere_names_the_flags_of_the_scope() {
        let url = Url::parse("http://[::1]/x").unwrap();
        assert!(advice("offsite: redirects to http://b/", &url).contains("--allow-host"));
        assert!(advice("robots: Disallow: /", &url).contains("--ignore-robots"));
    }
}
