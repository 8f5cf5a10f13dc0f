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
/// IIS write, and names the path of its URL. Behind a server that passes requests on, paths differ; there the link to the parent directory tells.
pub(super) fn is_listing(page: &AuditedPage<'_>) -> bool {
    let path = percent_decode_str(page.url().path()).decode_utf8_lossy();
    let path = path.trim_end_matches('/');
    let host = page.url().host_str().unwrap_or_default();
    let Some(title) = page.title() else { return false };
    let starts = ["index of ", "directory listing for ", "directory: ", "directory listing of "];
    let lower = title.to_ascii_lowercase();
    let named = starts.iter().find_map(|start| title.get(lower.starts_with(start).then_some(start.len())?..));
    let named = named.or_else(|| title.strip_prefix(host)?.strip_prefix(" - "));
    let Some(named) = named.filter(|named| named.starts_with('/')) else { return false };
    let is_folder = page.url().path().ends_with('/');
    (is_folder && named.trim().trim_end_matches('/') == path) || has_parent(page)
}

/// Whether a page has a link to the parent directory, as lists of files have one.
fn has_parent(page: &AuditedPage<'_>) -> bool {
    let is_parent = |name: &str| {
        let name = name.trim().trim_matches(['[', ']']).trim_start_matches("To ");
        name.eq_ignore_ascii_case("parent directory") || matches!(name, ".." | "../")
    };
    page.facts().links.iter().any(|link| is_parent(&link.name))
}

/// The first stack trace in the text of a page that was answered as any other, with its offset. Pages that write of errors, or show code, are none:
/// a question about a program, its manual and its list of changes quote such traces.
pub(super) fn trace(page: &AuditedPage<'_>) -> Option<(u32, String)> {
    let text = page.page().scanned().1;
    let (at, what) = trace_in(text)?;
    // One element with code may be that of the trace.
    let has_code = ["<pre", "<code", "<samp"].iter().map(|tag| count_folded(text, tag)).sum::<usize>() > 1;
    let own = page.own_text();
    let before = &own[..trace_in(own).map_or(own.len(), |(at, _)| at)];
    let headings = page.facts().headings.iter().map(|heading| heading.text.as_str());
    let is_subject = page.title().into_iter().chain(headings).chain([before]).any(writes_of_errors);
    (!has_code && !is_subject).then(|| (at as u32, what.to_owned()))
}

/// Number of places where a tag begins, in any case.
fn count_folded(text: &str, tag: &str) -> usize {
    let starts = memmem::find_iter(text.as_bytes(), b"<");
    starts
        .filter(|at| text[*at..].get(..tag.len()).is_some_and(|found| found.eq_ignore_ascii_case(tag)))
        .count()
}

/// Whether a text has a word of those that write about programs that fail.
fn writes_of_errors(text: &str) -> bool {
    const WORDS: [&str; 12] = [
        "bug",
        "crash",
        "crashed",
        "debug",
        "debugging",
        "error",
        "errors",
        "exception",
        "exceptions",
        "fails",
        "stacktrace",
        "traceback",
    ];
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).any(|word| WORDS.contains(&&*word))
}

/// The first stack trace of a text: where its line stands, and of what it is.
fn trace_in(text: &str) -> Option<(usize, &'static str)> {
    /// Bytes behind the first line of a trace in which the second one stands.
    const NEXT: usize = 300;
    let behind = |at: usize| {
        let end = (at + NEXT).min(text.len());
        &text[at..text.floor_char_boundary(end)]
    };
    let find = |mark: &str| memmem::find(text.as_bytes(), mark.as_bytes());
    // Examples name no file of a server.
    let python = find("Traceback (most recent call last):").filter(|at| {
        let next = behind(*at);
        let mut files =
            next.split("File ").skip(1).map(|file| file.trim_start_matches("&quot;").trim_start_matches('"'));
        files.any(|file| file.starts_with('/') || file.get(1..3) == Some(":\\"))
    });
    let java = find(".java:").and_then(|at| {
        let line = text[..at].rfind("at ")?;
        // `at org.example.Mill.turn(Mill.java:42)`
        let frame = &text[line + 3..at];
        let is_frame = frame.contains('.') && frame.contains('(') && !frame.contains(char::is_whitespace);
        let start = text.floor_char_boundary(line.saturating_sub(NEXT));
        let head = &text[start..line];
        let kind =
            ["Exception", "Error"].iter().filter_map(|kind| head.find(kind)).min().filter(|_| is_frame)?;
        // The trace begins with the name of the exception: `org.example.MillException: no grain`
        let before =
            head[..kind].trim_end_matches(|c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '$'));
        Some(start + before.len())
    });
    let node = ["at Object.&lt;anonymous&gt; (/", "at Object.<anonymous> (/"].into_iter().find_map(find);
    let go = find("goroutine 1 [running]:");
    let net = find("   at System.").filter(|at| behind(*at).contains(":line "));
    [
        (python, "a stack trace of Python"),
        (java, "a stack trace of Java"),
        (node, "a stack trace of Node.js"),
        (go, "a stack trace of Go"),
        (net, "a stack trace of .NET"),
    ]
    .into_iter()
    .find_map(|(at, what)| Some((at?, what)))
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
    fn traces_are_told_by_their_first_lines() {
        let told = |text: &str| trace_in(text).map(|(_, what)| what);
        for (text, expected) in [
            (
                "Traceback (most recent call last):\n  File \"/srv/a.py\", line 3, in <module>",
                "a stack trace of Python",
            ),
            (
                "java.lang.NullPointerException: null<br>\n&nbsp;at org.a.Wheel.turn(Wheel.java:42)",
                "a stack trace of Java",
            ),
            ("TypeError: x\n    at Object.<anonymous> (/srv/app.js:3:1)", "a stack trace of Node.js"),
            ("panic: x\n\ngoroutine 1 [running]:\nmain.main()", "a stack trace of Go"),
            ("System.Exception: x\n   at System.Mill.Turn() in C:\\a.cs:line 12", "a stack trace of .NET"),
        ] {
            assert_eq!(told(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "Traceback (most recent call last): this line begins a trace.",
            "Traceback (most recent call last):\n  File \"<stdin>\", line 1, in <module>",
            "Look at Wheel.java:42 for the cause of the exception",
            "An Exception at home (see Wheel.java: 42)",
            "at the mill (Mill.java:7)",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
    }

    #[test]
    fn words_about_errors_are_found_whole() {
        for text in ["An ERROR occurred", "it crashed.", "Debugging a mill", "(exceptions)"] {
            assert!(writes_of_errors(text), "{text}");
        }
        for text in ["", "The ladybug, an exceptional beetle", "terrors of the sea"] {
            assert!(!writes_of_errors(text), "{text}");
        }
    }

    #[test]
    fn plain_error_pages_tell_nothing() {
        assert_eq!(of_error_page(b"<h1>500</h1><p>Something went wrong. We were told of it.</p>"), None);
        assert!(of_error_page(b"<pre>Traceback (most recent call last):\n  File").is_some());
    }
}
