//! A page's metadata: `meta` and `link` elements, and values derived from them.

use crate::link::has_word;

/// A `meta` element. Values have their references decoded and are otherwise as written.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Meta<'a> {
    /// `name`.
    pub name: Option<&'a str>,
    /// `http-equiv`.
    pub http_equiv: Option<&'a str>,
    /// `property`, as Open Graph uses it.
    pub property: Option<&'a str>,
    /// `charset`.
    pub charset: Option<&'a str>,
    /// `content`.
    pub content: Option<&'a str>,
    /// Offset in bytes of the tag's name in the document.
    pub offset: u32,
    /// Whether it stands in a `noscript` element that was read as markup.
    pub in_noscript: bool,
}

/// A `link` element. Values have their references decoded and white space around them stripped.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LinkElement<'a> {
    /// `rel`.
    pub rel: Option<&'a str>,
    /// `href`, not resolved.
    pub href: Option<&'a str>,
    /// `hreflang`.
    pub hreflang: Option<&'a str>,
    /// `type`.
    pub media_type: Option<&'a str>,
    /// `media`.
    pub media: Option<&'a str>,
    /// `as`: what a preloaded file is used for.
    pub destination: Option<&'a str>,
    /// Offset in bytes of the tag's name in the document.
    pub offset: u32,
    /// Whether it stands in a `noscript` element that was read as markup.
    pub in_noscript: bool,
}

impl LinkElement<'_> {
    /// Whether `rel` contains this word, in any letter case.
    pub fn has_rel(&self, word: &str) -> bool {
        self.rel.is_some_and(|rel| has_word(rel, word))
    }
}

/// A redirect by `<meta http-equiv="refresh">`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetaRefresh<'a> {
    /// Seconds to wait.
    pub delay: f64,
    /// The address, not resolved; empty if the page reloads itself.
    pub url: &'a str,
}

impl<'a> MetaRefresh<'a> {
    /// Parses the `content` of a refresh: `5; url='/next'`, also without `url=` or the semicolon.
    ///
    /// The standard's shared declarative refresh steps, but the fraction of the delay is kept as w3lib does.
    /// `None` if there is no delay, or something other than a separator follows it.
    pub fn parse(content: &'a str) -> Option<Self> {
        let content = trim_start(content);
        let digits = content.find(|c: char| !c.is_ascii_digit()).unwrap_or(content.len());
        let number = content.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(content.len());
        if digits == 0 && !content.starts_with('.') {
            return None;
        }
        let rest = &content[number..];
        let whole = &content[..digits];
        let fraction = content[digits..number].trim_start_matches('.');
        let fraction = &fraction[..fraction.find('.').unwrap_or(fraction.len())];
        let delay = format!(
            "{}.{}",
            if whole.is_empty() { "0" } else { whole },
            if fraction.is_empty() { "0" } else { fraction }
        );
        let delay = delay.parse().ok().filter(|delay: &f64| delay.is_finite())?;
        if rest.is_empty() {
            return Some(Self { delay, url: "" });
        }
        if !rest.starts_with([';', ',', ' ', '\n', '\t', '\r', '\x0C']) {
            return None;
        }
        let rest = trim_start(rest);
        let rest = trim_start(rest.strip_prefix([';', ',']).unwrap_or(rest));
        Some(Self { delay, url: refresh_url(rest) })
    }
}

fn refresh_url(rest: &str) -> &str {
    let is_named = rest.get(..3).is_some_and(|name| name.eq_ignore_ascii_case("url"));
    let value = if is_named { trim_start(&rest[3..]).strip_prefix('=').map(trim_start) } else { None };
    let value = value.unwrap_or(rest);
    let quoted = value.strip_prefix(['"', '\'']).map(|inner| {
        let quote = &value[..1];
        inner.split(quote).next().unwrap_or(inner)
    });
    quoted.unwrap_or(value).trim_matches(SPACE)
}

pub(crate) const SPACE: [char; 5] = [' ', '\n', '\t', '\r', '\x0C'];

fn trim_start(value: &str) -> &str {
    value.trim_start_matches(SPACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refresh_is_read_as_browsers_do() {
        for (content, delay, url) in [
            ("5", 5.0, ""),
            ("5; url=/next", 5.0, "/next"),
            ("5;URL='/next'", 5.0, "/next"),
            ("5;url=\"/next\" rest", 5.0, "/next"),
            ("0;url='/open", 0.0, "/open"),
            (" 0.5 , Url = /x ", 0.5, "/x"),
            (".25;url=/x", 0.25, "/x"),
            ("1.5.9;url=/x", 1.5, "/x"),
            ("3;/without-name", 3.0, "/without-name"),
            ("3 /only-space", 3.0, "/only-space"),
            ("3;url/x", 3.0, "url/x"),
            ("3;url=http://e.org/?a=1;b=2", 3.0, "http://e.org/?a=1;b=2"),
            ("3;", 3.0, ""),
            ("3;url=", 3.0, ""),
            ("3;url=\u{E4}", 3.0, "\u{E4}"),
            ("3;\u{E4}\u{E4}", 3.0, "\u{E4}\u{E4}"),
        ] {
            assert_eq!(MetaRefresh::parse(content), Some(MetaRefresh { delay, url }), "{content}");
        }
        for content in ["", "url=/x", "x5;url=/x", "5x;url=/x", "-1;url=/x"] {
            assert_eq!(MetaRefresh::parse(content), None, "{content}");
        }
        let long = "9".repeat(400);
        assert_eq!(MetaRefresh::parse(&long), None, "no infinite delay");
    }
}
