//! What was tried on a page: queries with their results, from which an item is derived.

use huntsman_crawler::{Page, Result};

use crate::command::Complaint;

/// The language of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Css,
    XPath,
    Json,
}

/// A query that was tried.
#[derive(Clone, Debug)]
pub(crate) struct Tried {
    pub(crate) language: Language,
    pub(crate) query: String,
    /// The name that the field was given.
    pub(crate) name: Option<String>,
    /// The regular expression that was applied to the values.
    pub(crate) re: Option<String>,
    /// What it found last, after the regular expression.
    pub(crate) found: Vec<String>,
    /// Whether all values are addresses of pages.
    pub(crate) are_urls: bool,
}

impl Language {
    /// The key in an item, and the command.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Css => "css",
            Self::XPath => "xpath",
            Self::Json => "json",
        }
    }

    /// All values on a page.
    pub(crate) fn values(self, page: &Page, query: &str) -> Result<Vec<String>> {
        Ok(match self {
            Self::Css => page.css(query)?.get_all().to_vec(),
            Self::XPath => page.xpath(query)?.get_all().to_vec(),
            Self::Json => page.json_path(query)?.get_all()?,
        })
    }
}

/// Splits `h1::text as title` into query and name. What is no name of a field belongs to the query.
pub(crate) fn named(argument: &str) -> (&str, Option<&str>) {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    match argument.rsplit_once(" as ") {
        Some((query, name)) if is_name(name.trim()) => (query.trim(), Some(name.trim())),
        _ => (argument, None),
    }
}

/// The complaint about a query that is not valid: the query, a mark under the place, and the reason.
pub(crate) fn invalid(query: &str, error: &huntsman_crawler::Error) -> Complaint {
    let message = error.to_string();
    let place = message.split_once(", character ").and_then(|(_, rest)| {
        let (number, reason) = rest.split_once(": ")?;
        Some((number.parse::<usize>().ok()?.checked_sub(1)?, reason))
    });
    match place {
        Some((at, reason)) => {
            let mark = format!("{}^ {reason}", " ".repeat(at));
            Complaint::usage(format!("  {query}\n  {mark}"))
        }
        None => Complaint::usage(message),
    }
}

#[cfg(test)]
mod tests {
    use huntsman_crawler::{Request, Response};

    use super::*;

    #[test]
    fn a_name_stands_at_the_end() {
        assert_eq!(named("h1::text as title"), ("h1::text", Some("title")));
        assert_eq!(named("//a[. = ' as b']"), ("//a[. = ' as b']", None));
        assert_eq!(named("h1"), ("h1", None));
    }

    #[test]
    fn an_error_points_at_its_place() {
        let request = Request::parse("http://h/").unwrap();
        let page = Page::new(request.clone(), Response::html(request.url, "<p>x"));
        for (language, query, mark) in [
            (Language::Css, "p::txt", "  p::txt\n   ^ there is no pseudo-element"),
            (Language::XPath, "//a[", "  //a[\n      ^ "),
        ] {
            let complaint = invalid(query, &language.values(&page, query).unwrap_err());
            assert!(complaint.is_usage && complaint.message.starts_with(mark), "{complaint}");
        }
    }
}
