//! Building blocks of HTML pages: text from the web, links, and the frame of a self-contained page.
//!
//! Templates are functions with maud's `html!`, which are checked at compile time; every value is escaped unless it
//! is `Markup`.

use maud::{DOCTYPE, Markup, PreEscaped, Render, html};

use crate::render::{escape, shorten};

/// Text from the web, escaped for text and for attributes in double or single quotes. Control characters and
/// characters that reorder text are shown by their numbers.
#[derive(Clone, Copy, Debug)]
pub struct Web<'t>(
    /// The text.
    pub &'t str,
);

/// As [`Web`], but keeps line ends. Of a line end of two characters only the last one is kept.
#[derive(Clone, Copy, Debug)]
pub struct WebLines<'t>(
    /// The text.
    pub &'t str,
);

impl Render for Web<'_> {
    fn render_to(&self, out: &mut String) {
        for (at, piece) in escape(self.0).split('\'').enumerate() {
            if at > 0 {
                out.push_str("&#39;");
            }
            piece.render_to(out);
        }
    }
}

impl Render for WebLines<'_> {
    fn render_to(&self, out: &mut String) {
        for (at, line) in self.0.split('\n').enumerate() {
            if at > 0 {
                out.push('\n');
            }
            Web(line.strip_suffix('\r').unwrap_or(line)).render_to(out);
        }
    }
}

/// An address as text; it is a link only if browsers may safely follow it.
pub fn address(url: &str) -> Markup {
    let shown = shorten(url, 110);
    html! {
        @if url.starts_with("http://") || url.starts_with("https://") {
            a href=(Web(url)) rel="noreferrer nofollow" { (Web(&shown)) }
        } @else {
            (Web(&shown))
        }
    }
}

/// A self-contained page: it loads nothing, and its policy forbids everything that it does not need.
pub fn file(title: &str, style: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (Web(title)) }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                style { (PreEscaped(style)) }
            }
            body { main { (content) } }
        }
        "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_the_web_is_neither_markup_nor_steers() {
        let evil = "\"><script>'&\u{202e}";
        assert_eq!(Web(evil).render().0, "&quot;&gt;&lt;script&gt;&#39;&amp;\\u{202e}");
        assert_eq!(WebLines("a\r\n<\tb\n").render().0, "a\n&lt;\\tb\n");
    }

    #[test]
    fn only_web_addresses_are_links() {
        assert_eq!(address("javascript:alert('1')").0, "javascript:alert(&#39;1&#39;)");
        assert_eq!(
            address("http://a.example/?x=\"&y").0,
            "<a href=\"http://a.example/?x=&quot;&amp;y\" rel=\"noreferrer nofollow\">http://a.example/?x=&quot;&amp;y</a>"
        );
    }
}
