//! Tables of tags and address schemes (MediaWiki's `Sanitizer`, its extension tags and `DefaultSettings`, as of 2020, which
//! `mwparserfromhell` 0.7 follows). Names are lower case.

/// Tags whose content is not markup.
pub(super) const VERBATIM: [&str; 17] = [
    "categorytree",
    "ce",
    "chem",
    "gallery",
    "graph",
    "hiero",
    "imagemap",
    "inputbox",
    "math",
    "nowiki",
    "pre",
    "score",
    "section",
    "source",
    "syntaxhighlight",
    "templatedata",
    "timeline",
];

/// Tags whose content is not text.
pub(super) const INVISIBLE: [&str; 10] = [
    "categorytree",
    "gallery",
    "graph",
    "imagemap",
    "inputbox",
    "math",
    "score",
    "section",
    "templatedata",
    "timeline",
];

/// Tags without content.
pub(super) const VOID: [&str; 6] = ["br", "wbr", "hr", "meta", "link", "img"];

/// Tags that may be left open up to the end of the page.
pub(super) const OPEN_END: [&str; 6] = ["li", "dt", "dd", "th", "td", "tr"];

/// Schemes of addresses, and whether they require `//`.
pub(super) const SCHEMES: [(&str, bool); 27] = [
    ("bitcoin", false),
    ("ftp", true),
    ("ftps", true),
    ("geo", false),
    ("git", true),
    ("gopher", true),
    ("http", true),
    ("https", true),
    ("irc", true),
    ("ircs", true),
    ("magnet", false),
    ("mailto", false),
    ("mms", true),
    ("news", false),
    ("nntp", true),
    ("redis", true),
    ("sftp", true),
    ("sip", false),
    ("sips", false),
    ("sms", false),
    ("ssh", true),
    ("svn", true),
    ("tel", false),
    ("telnet", true),
    ("urn", false),
    ("worldwind", true),
    ("xmpp", false),
];

/// The length of the known scheme with its colon (and slashes) that `text` begins with.
pub(super) fn scheme_len(text: &str) -> Option<usize> {
    // The longest scheme has nine letters.
    let colon = text.bytes().take(10).position(|byte| byte == b':')?;
    let slashes = text[colon + 1..].starts_with("//");
    let name = &text[..colon];
    let known =
        SCHEMES.iter().any(|(scheme, needed)| scheme.eq_ignore_ascii_case(name) && (slashes || !needed));
    known.then_some(colon + if slashes { 3 } else { 1 })
}
