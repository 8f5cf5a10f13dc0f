//! Documents designed to be slow, generated for a given size; shared by the test and the bench.

/// A name and a function from the size in bytes to a document of about that size.
pub(crate) type Input = (&'static str, Box<dyn Fn(usize) -> String>);

fn repeated(prefix: String, unit: String) -> Box<dyn Fn(usize) -> String> {
    Box::new(move |size| prefix.clone() + &unit.repeat(size.saturating_sub(prefix.len()) / unit.len()))
}

/// `unit` with `%` replaced by a running number, and `suffix` at the end.
fn numbered(prefix: &'static str, unit: &'static str, suffix: &'static str) -> Box<dyn Fn(usize) -> String> {
    Box::new(move |size| {
        let mut page = prefix.to_owned();
        let mut at = 0_u64;
        while page.len() < size {
            page += &unit.replace('%', &at.to_string());
            at += 1;
        }
        page + suffix
    })
}

/// All inputs.
pub(crate) fn inputs() -> Vec<Input> {
    let plain: [(&'static str, String, &'static str); 51] = [
        ("less-than signs", String::new(), "<"),
        ("ampersands", String::new(), "&"),
        ("amp without semicolon", String::new(), "&amp"),
        ("unknown long references", String::new(), "&CounterClockwiseContourIntegra"),
        ("numeric references", String::new(), "&#x26"),
        ("one endless number", "&#".into(), "9"),
        ("nuls", String::new(), "\0"),
        ("carriage returns", String::new(), "\r"),
        ("spaces", String::new(), " "),
        ("letters and spaces", String::new(), "a "),
        ("letters and newlines", String::new(), "a\n"),
        ("one word", String::new(), "a"),
        ("one word of another script", String::new(), "\u{65E5}"),
        ("nested div", String::new(), "<div>"),
        ("nested div with ids", String::new(), "<div id=a class=b>"),
        ("nested b", String::new(), "<b>"),
        ("nested a", String::new(), "<a href>"),
        ("links", String::new(), "<a href=/x>y</a>"),
        ("nested svg", String::new(), "<svg>"),
        ("math ends in 600 svg", "<svg>".repeat(600), "</math>"),
        ("title ends in 600 svg", "<svg>".repeat(600), "</title>"),
        ("svg and foreignObject", String::new(), "<svg><foreignObject>"),
        ("break-outs", String::new(), "<svg><p>"),
        ("paragraphs and b", String::new(), "<p><b>"),
        ("p in 600 spans of div", "<div>".repeat(600), "<p>"),
        ("stray ends in 600 divs", "<div>".repeat(600), "</p>"),
        ("li in 600 blockquotes", format!("<li>{}", "<blockquote>".repeat(500)), "<li></li>"),
        ("p under 500 sections", format!("<p>{}", "<section>".repeat(500)), "<section></section>"),
        ("dd after 500 divs", format!("<dd>{}", "<div>".repeat(500)), "<dt></dt>"),
        ("nested tables", String::new(), "<table><tr><td>"),
        ("stray div ends in a cell", "<div><table><td>".into(), "</div>"),
        ("nested nav", String::new(), "<nav>"),
        ("nav ends in 600 headers", "<header>".repeat(600), "</nav>"),
        ("nested template", String::new(), "<template>"),
        ("nested noscript", String::new(), "<noscript>"),
        ("open comment", "<!--".into(), "->"),
        ("comments", String::new(), "<!---->"),
        ("comment starts", String::new(), "<!--"),
        ("bogus comments", String::new(), "<!>"),
        ("doctypes", String::new(), "<!doctype"),
        ("open script", "<script>".into(), "<!--<script"),
        ("script ends that are none", "<script>".into(), "</scripx"),
        ("escaped script", "<script><!--".into(), "<script></script>"),
        ("open title", "<title>".into(), "</titl"),
        ("open textarea", "<textarea>".into(), "</textarea"),
        ("cdata in svg", "<svg>".into(), "<![CDATA[]]>"),
        ("cdata brackets", "<svg><![CDATA[".into(), "]]"),
        ("unclosed tags", String::new(), "<a "),
        ("one tag of equals signs", "<a ".into(), "="),
        ("one open quote", "<a href=\"".into(), "<a href='"),
        ("metas", String::new(), "<meta name>"),
    ];
    let mut inputs: Vec<Input> =
        plain.into_iter().map(|(name, prefix, unit)| (name, repeated(prefix, unit.to_owned()))).collect();
    inputs.extend([
        ("ampersands in a value", numbered("<a href='", "&&&&", "'>") as _),
        ("references in a value", numbered("<a rel='", "&copy&amp;&notin;", "' href>")),
        ("white space in a title", numbered("<title>", " % ", "</title>")),
        ("many attributes", numbered("<a ", "a%=b ", ">")),
        ("many quoted attributes", numbered("<a ", "a%='&amp;' ", ">")),
        ("many wanted attributes", numbered("<a ", "href=% ", ">")),
        ("many tag names", numbered("", "<x%>", "")),
        ("many blocks", numbered("", "<p id=p%>%", "")),
        ("many references in links", numbered("", "<a href=&amp>", "")),
        ("srcset candidates", numbered("<img srcset='", "/%.png 1x, ", "'>")),
        ("srcset parentheses", numbered("<img srcset='", "%(, ", "'>")),
        ("srcset commas", numbered("<img srcset='", ",,,,%,,,", "'>")),
        ("long names", numbered("", "<aaaaaaaaaaaaaaaaaaaaaaa%>", "")),
        ("long attribute names", numbered("<a ", "aaaaaaaaaaaaaaaaaaaaaaa% ", ">")),
    ]);
    inputs
}
