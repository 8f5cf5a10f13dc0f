//! How the static form of a page looks: as if scripts were to fill it, or whole.

use std::sync::LazyLock;

use huntsman_crawler::Page;
use regex::Regex;

/// Fewer words are few.
const FEW_WORDS: usize = 50;
/// Bytes of script in the page for each word of its text, above which the script is much.
const SCRIPT_PER_WORD: usize = 200;

/// How the static form of a page looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Looks {
    /// Scripts are likely to fill it.
    Empty,
    /// It may be whole.
    Full,
}

/// An element of the names that frameworks mount a page into, with nothing in it.
static MOUNT: LazyLock<Regex> = LazyLock::new(|| {
    let id = r#"\bid\s*=\s*["']?(?:root|app|__next|__nuxt|___gatsby|q-app|react-root|svelte|main-app|application|mount)\b["']?"#;
    let own = "app-root|app-main|my-app|ember-app";
    let pattern = format!(
        r"(?i)<(?:(?:div|main|section)\b[^>]*{id}[^>]*>\s*</(?:div|main|section)|(?:{own})\b[^>]*>\s*</(?:{own}))\s*>"
    );
    Regex::new(&pattern).expect("the pattern is constant")
});

/// A text for browsers without scripts that says that they are needed.
static NOSCRIPT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?is)<noscript\b[^>]*>[^<]{0,300}(?:<[^<]{0,300}){0,3}?\bjava ?script\b")
        .expect("the pattern is constant")
});

/// A script of the page itself.
static SCRIPT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?is)<script\b([^>]*)>(.*?)</script"#).expect("the pattern is constant"));

impl Looks {
    /// How a page in its static form looks.
    pub(super) fn of(page: &Page) -> Self {
        let html = page.body_text();
        let words = page.words().len();
        if MOUNT.is_match(html) || (words < 4 * FEW_WORDS && NOSCRIPT.is_match(html)) {
            return Self::Empty;
        }
        if words >= FEW_WORDS {
            return Self::Full;
        }
        let mut script = 0;
        for found in SCRIPT.captures_iter(html) {
            // One from elsewhere is of unknown size.
            let is_elsewhere = found[1].contains("src");
            script += if is_elsewhere { FEW_WORDS * SCRIPT_PER_WORD } else { found[2].len() };
        }
        if script > SCRIPT_PER_WORD * words.max(1) { Self::Empty } else { Self::Full }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Full => "full",
        }
    }

    pub(super) fn of_name(name: &str) -> Option<Self> {
        [Self::Empty, Self::Full].into_iter().find(|looks| looks.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use huntsman_crawler::{Request, Response};
    use url::Url;

    use super::*;

    fn looks(body: &str) -> Looks {
        let url = Url::parse("http://a.test/").unwrap();
        Looks::of(&Page::new(Request::get(url.clone()), Response::html(url, body.to_owned())))
    }

    #[test]
    fn what_scripts_fill_looks_empty() {
        let long = "word ".repeat(60);
        for (page, expected) in [
            ("<div id=root></div><script src=/a.js></script>".to_owned(), Looks::Empty),
            (format!("<p>{long}</p><div class=x id='__next'> </div>"), Looks::Empty),
            ("<app-root></app-root>".to_owned(), Looks::Empty),
            (
                "<noscript>You need to enable JavaScript to run this app.</noscript><p>Loading".to_owned(),
                Looks::Empty,
            ),
            ("<noscript><p>Please enable <b>JavaScript</b></p></noscript>".to_owned(), Looks::Empty),
            ("<p>Loading</p><script src=/bundle.js></script>".to_owned(), Looks::Empty),
            (format!("<p>Loading</p><script>{}</script>", "x();".repeat(200)), Looks::Empty),
            (format!("<p>{long}</p><script src=/a.js></script>"), Looks::Full),
            (format!("<div id=root><p>{long}</p></div>"), Looks::Full),
            (format!("<p>{long}{long}{long}{long}</p><noscript>JavaScript is off</noscript>"), Looks::Full),
            ("<p>A short page without a script.</p>".to_owned(), Looks::Full),
            ("<p>Hello</p><script>ga()</script>".to_owned(), Looks::Full),
        ] {
            assert_eq!(looks(&page), expected, "{page}");
        }
    }
}
