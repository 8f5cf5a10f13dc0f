//! Determines what a body is: markup, data, text, or binary.

/// The kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageKind {
    /// HTML and XHTML.
    Html,
    /// Other XML: feeds, sitemaps, SVG.
    Xml,
    /// JSON and its relatives.
    Json,
    /// Text to read but not to take links from: plain, CSS, script, CSV.
    Text,
    /// Everything else: no text, no links.
    Binary,
}

impl PageKind {
    /// Whether it is HTML or XML, so that links can be in it.
    pub fn is_markup(self) -> bool {
        matches!(self, Self::Html | Self::Xml)
    }

    /// Whether it has text at all.
    pub fn is_textual(self) -> bool {
        self != Self::Binary
    }
}

/// The kind by the headers and the URL, without the body: Content-Type, then the file name of Content-Disposition, then
/// the extension of the URL's path (without query). `None` if none of them tells.
///
/// `application/octet-stream` and unknown types are ignored; `text/plain` is trusted.
pub fn kind_from_headers(
    content_type: Option<&str>,
    content_disposition: Option<&str>,
    path: &str,
) -> Option<PageKind> {
    content_type
        .and_then(of_media_type)
        .or_else(|| content_disposition.and_then(file_name).and_then(of_file_name))
        .or_else(|| of_file_name(path))
}

/// The kind of a body: as [`kind_from_headers`], then by its first bytes. Reads at most 1 KiB of it.
///
/// ```
/// use huntsman_html::{PageKind, sniff};
///
/// assert_eq!(sniff(Some("text/html; charset=utf-8"), None, "/a.pdf", b""), PageKind::Html);
/// assert_eq!(sniff(None, None, "/page.php", b"<!doctype html>"), PageKind::Html);
/// assert_eq!(sniff(None, None, "/report.pdf", b""), PageKind::Binary);
/// ```
pub fn sniff(
    content_type: Option<&str>,
    content_disposition: Option<&str>,
    path: &str,
    body: &[u8],
) -> PageKind {
    kind_from_headers(content_type, content_disposition, path).unwrap_or_else(|| of_body(body))
}

fn of_media_type(content_type: &str) -> Option<PageKind> {
    let essence = content_type.split([';', ',']).next().unwrap_or_default().trim().to_ascii_lowercase();
    let (class, subtype) = essence.split_once('/')?;
    Some(match (class, subtype) {
        ("text", "html") | ("application", "xhtml+xml" | "vnd.wap.xhtml+xml") => PageKind::Html,
        ("text" | "application", "xml") | ("image", "svg+xml") => PageKind::Xml,
        (_, subtype) if subtype.ends_with("+xml") => PageKind::Xml,
        ("text" | "application", "json" | "x-json") | ("application", "x-ndjson" | "jsonl" | "json-seq") => {
            PageKind::Json
        }
        (_, subtype) if subtype.ends_with("+json") => PageKind::Json,
        (
            "application",
            "javascript" | "x-javascript" | "ecmascript" | "yaml" | "x-yaml" | "toml" | "sql",
        ) => PageKind::Text,
        ("text", _) => PageKind::Text,
        ("application", "octet-stream" | "x-unknown" | "unknown" | "force-download" | "x-download") => {
            return None;
        }
        ("image" | "audio" | "video" | "font" | "model" | "application", _) => PageKind::Binary,
        _ => return None,
    })
}

/// The file name in a Content-Disposition header, `filename*` first.
fn file_name(disposition: &str) -> Option<&str> {
    let parameter = |wanted: &str| {
        let mut rest = disposition;
        // Quotes may hold semicolons, so parameters are read one after the other.
        while let Some(at) = rest.find(';') {
            rest = rest[at + 1..].trim_start();
            let (name, value) = rest.split_once('=')?;
            let value = value.trim_start();
            let value = match value.strip_prefix('"') {
                Some(quoted) => {
                    let end = quoted.find('"').unwrap_or(quoted.len());
                    rest = &quoted[end..];
                    &quoted[..end]
                }
                None => {
                    let end = value.find(';').unwrap_or(value.len());
                    rest = &value[end..];
                    value[..end].trim_end()
                }
            };
            if name.trim().eq_ignore_ascii_case(wanted) {
                return Some(value);
            }
        }
        None
    };
    parameter("filename*").or_else(|| parameter("filename"))
}

fn of_file_name(path: &str) -> Option<PageKind> {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let (stem, extension) = name.rsplit_once('.')?;
    if stem.is_empty() {
        return None;
    }
    let extension = extension.to_ascii_lowercase();
    Some(match extension.as_str() {
        "html" | "htm" | "xhtml" | "xht" | "shtml" => PageKind::Html,
        "xml" | "rss" | "atom" | "rdf" | "svg" | "xsl" | "xslt" | "opml" | "kml" | "gpx" => PageKind::Xml,
        "json" | "jsonl" | "ndjson" | "geojson" | "webmanifest" => PageKind::Json,
        "txt" | "text" | "css" | "js" | "mjs" | "csv" | "tsv" | "md" | "rst" | "log" | "yaml" | "yml"
        | "toml" | "ini" | "c" | "h" | "rs" | "py" | "vtt" | "srt" | "tex" => PageKind::Text,
        _ if BINARY.contains(&extension.as_str()) => PageKind::Binary,
        _ => return None, // php, aspx or a version number do not tell the kind
    })
}

const BINARY: &[&str] = &[
    "7z", "aac", "ai", "aiff", "apk", "avi", "avif", "bin", "bmp", "bz2", "cab", "class", "deb", "dll",
    "dmg", "doc", "docx", "eot", "eps", "epub", "exe", "flac", "flv", "gif", "gz", "heic", "ico", "img",
    "iso", "jar", "jpeg", "jpg", "jxl", "m4a", "m4v", "mid", "mkv", "mobi", "mov", "mp3", "mp4", "mpeg",
    "mpg", "msi", "odp", "ods", "odt", "ogg", "ogv", "opus", "otf", "pdf", "pkg", "png", "pps", "ppt",
    "pptx", "ps", "psd", "rar", "rpm", "so", "sqlite", "swf", "tar", "tgz", "tif", "tiff", "ttf", "wasm",
    "wav", "webm", "webp", "wma", "wmv", "woff", "woff2", "xls", "xlsx", "xz", "zip", "zst",
];

const SNIFF_LIMIT: usize = 1024;

fn of_body(body: &[u8]) -> PageKind {
    if body.starts_with(b"\xFF\xFE") || body.starts_with(b"\xFE\xFF") {
        return of_utf16(body);
    }
    let start = &body[..body.len().min(SNIFF_LIMIT)];
    let start = start.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(start);
    const SIGNATURES: [&[u8]; 6] = [b"%PDF-", b"%!PS-", b"PK\x03\x04", b"\x1F\x8B", b"\x89PNG", b"GIF8"];
    // Bytes that do not occur in text, by the MIME sniffing standard.
    let is_binary = |&byte: &u8| matches!(byte, 0..=8 | 0x0B | 0x0E..=0x1A | 0x1C..=0x1F);
    if SIGNATURES.iter().any(|signature| start.starts_with(signature)) || start.iter().any(is_binary) {
        return PageKind::Binary;
    }
    of_text(start)
}

/// The kind of a text with a UTF-16 mark, by its ASCII characters.
fn of_utf16(body: &[u8]) -> PageKind {
    let start = &body[2..body.len().min(SNIFF_LIMIT)];
    let ascii: Vec<u8> = start.iter().copied().filter(|&byte| byte != 0).collect();
    of_text(&ascii)
}

fn of_text(start: &[u8]) -> PageKind {
    let mut text = start.trim_ascii_start();
    // There may be comments before the first tag.
    while let Some(comment) = text.strip_prefix(b"<!--") {
        match memchr::memmem::find(comment, b"-->") {
            Some(end) => text = comment[end + 3..].trim_ascii_start(),
            None => return PageKind::Html,
        }
    }
    match text.first() {
        Some(b'<') if begins(text, b"<?xml") => {
            let is_html = memchr::memmem::find(text, b"<html").is_some()
                || memchr::memmem::find(text, b"<!DOCTYPE html").is_some();
            if is_html { PageKind::Html } else { PageKind::Xml }
        }
        Some(b'<') if HTML_STARTS.iter().any(|tag| begins(&text[1..], tag)) => PageKind::Html,
        Some(b'<') if XML_STARTS.iter().any(|tag| begins(&text[1..], tag)) => PageKind::Xml,
        Some(b'<') => {
            let tag = |name: &[u8]| text.windows(name.len()).any(|window| window.eq_ignore_ascii_case(name));
            if tag(b"<html") || tag(b"<body") || tag(b"<a ") { PageKind::Html } else { PageKind::Text }
        }
        Some(b'{') if matches!(text[1..].trim_ascii_start().first(), Some(b'"' | b'}')) => PageKind::Json,
        Some(b'[') if is_json_value(text[1..].trim_ascii_start()) => PageKind::Json,
        _ => {
            let has = |name: &[u8]| text.windows(name.len()).any(|window| window.eq_ignore_ascii_case(name));
            if has(b"<html") || has(b"<!doctype html") { PageKind::Html } else { PageKind::Text }
        }
    }
}

/// Whether the text can continue a JSON array; `[1] a footnote` cannot.
fn is_json_value(text: &[u8]) -> bool {
    match text.first() {
        Some(b'{' | b'[' | b'"' | b']') => true,
        Some(b'-' | b'0'..=b'9') => {
            let rest = text.iter().position(|byte| !byte.is_ascii_digit() && !b"+-.eE".contains(byte));
            rest.is_some_and(|at| text[at..].trim_ascii_start().first() == Some(&b','))
        }
        _ => [&b"true"[..], b"false", b"null"].iter().any(|word| text.starts_with(word)),
    }
}

fn begins(text: &[u8], with: &[u8]) -> bool {
    text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
}

const HTML_STARTS: [&[u8]; 20] = [
    b"!doctype html",
    b"html",
    b"head",
    b"body",
    b"script",
    b"iframe",
    b"h1",
    b"div",
    b"font",
    b"table",
    b"a ",
    b"style",
    b"title",
    b"b>",
    b"br",
    b"p>",
    b"p ",
    b"meta",
    b"base",
    b"link ",
];

const XML_STARTS: [&[u8]; 8] =
    [b"rss", b"feed", b"urlset", b"sitemapindex", b"rdf:RDF", b"svg", b"opml", b"!DOCTYPE svg"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sign_that_tells_decides() {
        use PageKind::{Binary, Html, Json, Text, Xml};
        let pdf = Some("application/pdf");
        let bytes = Some("application/octet-stream");
        for (content_type, disposition, path, wanted) in [
            (Some("text/html; charset=utf-8"), Some("attachment; filename=x.pdf"), "/x.png", Some(Html)),
            (Some("TEXT/HTML"), None, "/", Some(Html)),
            (Some("application/xhtml+xml"), None, "/", Some(Html)),
            (Some("application/rss+xml"), None, "/", Some(Xml)),
            (Some("text/xml"), None, "/", Some(Xml)),
            (Some("image/svg+xml"), None, "/", Some(Xml)),
            (Some("application/ld+json"), None, "/", Some(Json)),
            (Some("text/css"), None, "/", Some(Text)),
            (Some("application/javascript"), None, "/", Some(Text)),
            (Some("text/plain"), None, "/page.html", Some(Text)),
            (pdf, None, "/page.html", Some(Binary)),
            (Some("image/png"), None, "/page.html", Some(Binary)),
            (bytes, Some("attachment; filename=\"a;b.html\""), "/x.pdf", Some(Html)),
            (bytes, Some("attachment; filename=a.txt; filename*=UTF-8''b.json"), "/x.pdf", Some(Json)),
            (bytes, Some("inline"), "/feed.RSS", Some(Xml)),
            (bytes, None, "/file.zip", Some(Binary)),
            (Some("nonsense"), None, "/a.b/page.htm", Some(Html)),
            (None, None, "/index.php", None),
            (None, None, "/v1.2", None),
            (None, None, "/.html", None),
            (None, None, "/", None),
        ] {
            assert_eq!(
                kind_from_headers(content_type, disposition, path),
                wanted,
                "{content_type:?} {disposition:?} {path}"
            );
        }
        assert_eq!(sniff(pdf, None, "/", b"<html>"), Binary);
    }

    #[test]
    fn the_first_bytes_decide_last() {
        use PageKind::{Binary, Html, Json, Text, Xml};
        for (body, wanted) in [
            (&b"<!DOCTYPE html>"[..], Html),
            (b"\xEF\xBB\xBF \n<HTML>", Html),
            (b"<!-- note --> <p>text", Html),
            (b"<?xml version='1.0'?><rss>", Xml),
            (b"<?xml version='1.0'?><!DOCTYPE html PUBLIC '-//W3C//DTD XHTML'><html>", Html),
            (b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>", Xml),
            (b"<svg>", Xml),
            (b"<center><a href=x>", Html),
            (b"<grin> she said", Text),
            (b"\xFF\xFE<\0h\0t\0m\0l\0>\0", Html),
            (b"{\"a\": 1}", Json),
            (b"[1, 2]", Json),
            (b"[{}]", Json),
            (b"[1] A footnote", Text),
            (b"{braces}", Text),
            (b"plain words", Text),
            (b"", Text),
            (b"%PDF-1.7", Binary),
            (b"\x89PNG\r\n", Binary),
            (b"PK\x03\x04", Binary),
            (b"\x00\x01\x02", Binary),
        ] {
            assert_eq!(sniff(None, None, "/", body), wanted, "{:?}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn odd_headers_do_not_panic() {
        for disposition in
            ["", ";", "=;", "; filename=\"", ";filename", "a; filename=\"\u{E4}\";\u{E4}=\u{E4}"]
        {
            let _ = kind_from_headers(Some("/"), Some(disposition), "\u{E4}.\u{E4}");
        }
    }
}
