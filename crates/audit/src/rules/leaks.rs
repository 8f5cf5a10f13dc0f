//! What servers tell by mistake: lists of files, and errors with the insides of programs.

use memchr::memmem;
use percent_encoding::percent_decode_str;

use crate::page::{AuditedPage, collapsed};

/// Bytes before the number of a line that may belong to the same error of PHP.
const MAX_ERROR: usize = 1_000;
/// Errors of one page that are told.
const MAX_ERRORS: usize = 20;
/// Bytes of an error page that are looked at.
const MAX_BODY: usize = 1 << 20;

/// Whether a page is the list of files that a web server makes of a folder: its title is the one that Apache, nginx, lighttpd, Python, Jetty or
/// IIS write, and names the path of its URL.
pub(super) fn is_listing(page: &AuditedPage<'_>) -> bool {
    let path = percent_decode_str(page.url().path()).decode_utf8_lossy();
    let path = path.trim_end_matches('/');
    let host = page.url().host_str().unwrap_or_default();
    let Some(title) = page.title() else { return false };
    let starts = ["index of ", "directory listing for ", "directory: ", "directory listing of "];
    let lower = title.to_ascii_lowercase();
    let named = starts.iter().find_map(|start| title.get(lower.starts_with(start).then_some(start.len())?..));
    let named = named.or_else(|| title.strip_prefix(host)?.strip_prefix(" - "));
    let is_folder = page.url().path().ends_with('/');
    is_folder
        && named.is_some_and(|named| named.starts_with('/') && named.trim().trim_end_matches('/') == path)
}

/// The errors that PHP wrote into a page, as it marks them up: `<b>Warning</b>: ... in <b>file</b> on line <b>12</b>`. Pages that only show such
/// an error escape its tags.
pub(super) fn php_errors(text: &str) -> Vec<(u32, String)> {
    const LINE: &str = "</b> on line <b>";
    const KINDS: [&str; 6] = [
        "<b>Warning</b>:",
        "<b>Notice</b>:",
        "<b>Fatal error</b>:",
        "<b>Parse error</b>:",
        "<b>Deprecated</b>:",
        "<b>Strict Standards</b>:",
    ];
    let mut errors = Vec::new();
    for at in memmem::find_iter(text.as_bytes(), LINE).take(MAX_ERRORS) {
        let rest = text.get(at + LINE.len()..).unwrap_or_default();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let from = (at.saturating_sub(MAX_ERROR)..=at).find(|at| text.is_char_boundary(*at)).unwrap_or(at);
        let before = &text[from..at];
        let start = KINDS.iter().filter_map(|kind| before.rfind(kind)).max();
        if let (true, Some(start)) = (digits > 0 && rest[digits..].starts_with("</b>"), start) {
            let message = format!("{}{LINE}{}", &before[start..], &rest[..digits]);
            let message = collapsed(&message.replace("<b>", "").replace("</b>", ""));
            // The place is that of the name of the tag.
            errors.push(((from + start + 1) as u32, message));
        }
    }
    errors
}

/// What an error page tells of the program that made it; `None` if nothing is known as such.
pub(crate) fn of_error_page(body: &[u8]) -> Option<&'static str> {
    const MARKS: [(&str, &str); 13] = [
        ("Traceback (most recent call last)", "a stack trace of Python"),
        ("<code>DEBUG = True</code>", "a debug page of Django"),
        ("Werkzeug Debugger", "a debug page of Werkzeug"),
        ("goroutine 1 [running]:", "a stack trace of Go"),
        ("Stack trace:\n#0 ", "a stack trace of PHP"),
        ("<b>Fatal error</b>:", "an error of PHP"),
        ("Microsoft .NET Framework Version:", "an error page of ASP.NET"),
        ("java.lang.", "a stack trace of Java"),
        ("at java.base/", "a stack trace of Java"),
        ("at Object.&lt;anonymous&gt; (", "a stack trace of Node.js"),
        ("at Object.<anonymous> (", "a stack trace of Node.js"),
        ("You have an error in your SQL syntax", "an error of a database"),
        ("SQLSTATE[", "an error of a database"),
    ];
    let body = &body[..body.len().min(MAX_BODY)];
    MARKS.iter().find(|(mark, _)| memmem::find(body, mark.as_bytes()).is_some()).map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_php_is_told_from_text_about_one() {
        let page = "<p>é</p><br />\n<b>Warning</b>:  Undefined variable $a in <b>/srv/a.php</b> on line <b>12</b><br />";
        assert_eq!(
            php_errors(page),
            [(17, "Warning: Undefined variable $a in /srv/a.php on line 12".to_owned())]
        );
        for page in [
            "&lt;b>Warning&lt;/b>: in &lt;b>a.php&lt;/b> on line &lt;b>12&lt;/b>",
            "Look <b>there</b> on line <b>12</b>",
            "<b>Warning</b>: in <b>a</b> on line <b>x</b>",
        ] {
            assert!(php_errors(page).is_empty(), "{page}");
        }
    }

    #[test]
    fn plain_error_pages_tell_nothing() {
        assert_eq!(of_error_page(b"<h1>500</h1><p>Something went wrong. We were told of it.</p>"), None);
        assert!(of_error_page(b"<pre>Traceback (most recent call last):\n  File").is_some());
    }
}
