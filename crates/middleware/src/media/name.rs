//! Names of stored files. They are made of digits and of endings from a table, so no URL leads out of the folder.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use sha1::{Digest, Sha1};
use url::Url;

/// The folder of the files within that of the user, as in Scrapy.
pub(super) const FULL: &str = "full";

/// Media types and the ending of their files. A type that servers also send for files they do not know is not here: then the URL decides.
const TYPES: [(&str, &str); 44] = [
    ("application/epub+zip", "epub"),
    ("application/gzip", "gz"),
    ("application/json", "json"),
    ("application/msword", "doc"),
    ("application/pdf", "pdf"),
    ("application/postscript", "ps"),
    ("application/rtf", "rtf"),
    ("application/vnd.ms-excel", "xls"),
    ("application/vnd.ms-powerpoint", "ppt"),
    ("application/vnd.oasis.opendocument.spreadsheet", "ods"),
    ("application/vnd.oasis.opendocument.text", "odt"),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("application/x-7z-compressed", "7z"),
    ("application/x-bzip2", "bz2"),
    ("application/x-tar", "tar"),
    ("application/x-xz", "xz"),
    ("application/xml", "xml"),
    ("application/zip", "zip"),
    ("application/zstd", "zst"),
    ("audio/flac", "flac"),
    ("audio/mpeg", "mp3"),
    ("audio/mp4", "m4a"),
    ("audio/ogg", "ogg"),
    ("audio/wav", "wav"),
    ("image/avif", "avif"),
    ("image/bmp", "bmp"),
    ("image/gif", "gif"),
    ("image/jpeg", "jpg"),
    ("image/png", "png"),
    ("image/svg+xml", "svg"),
    ("image/tiff", "tiff"),
    ("image/webp", "webp"),
    ("image/x-icon", "ico"),
    ("text/calendar", "ics"),
    ("text/css", "css"),
    ("text/csv", "csv"),
    ("text/html", "html"),
    ("text/xml", "xml"),
    ("video/mp4", "mp4"),
    ("video/mpeg", "mpg"),
    ("video/webm", "webm"),
    ("video/quicktime", "mov"),
];

/// Endings that URLs have beside those of the table.
const ENDINGS: [&str; 6] = ["jpeg", "htm", "txt", "tif", "tgz", "md"];

/// The name of a file without its ending: the SHA-1 of the URL in hexadecimal digits.
pub(super) fn stem(url: &Url) -> String {
    Sha1::digest(url.as_str()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name within the folder of the user.
pub(super) fn path(stem: &str, ending: &str) -> String {
    let dot = if ending.is_empty() { "" } else { "." };
    format!("{FULL}/{stem}{dot}{ending}")
}

/// The ending that belongs to the type of a response; if that says nothing, the ending of the URL, if it is a known one.
pub(super) fn ending(headers: &HeaderMap, url: &Url) -> &'static str {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let given = given.split(';').next().unwrap_or_default().trim();
    let by_type = TYPES.iter().find(|(kind, _)| kind.eq_ignore_ascii_case(given)).map(|(_, ending)| *ending);
    by_type.or_else(|| url_ending(url)).unwrap_or_default()
}

/// The ending of the format of an image by its first bytes.
pub(super) fn image_ending(body: &[u8]) -> Option<&'static str> {
    match body {
        [0xFF, 0xD8, 0xFF, ..] => Some("jpg"),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some("png"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("webp"),
        _ => None,
    }
}

/// All endings that a file of this URL may have, the likely one first.
pub(super) fn endings(url: &Url) -> impl Iterator<Item = &'static str> {
    let first = url_ending(url);
    let others = TYPES.iter().map(|(_, ending)| *ending).chain(ENDINGS).chain([""]);
    first.into_iter().chain(others.filter(move |ending| Some(*ending) != first))
}

fn url_ending(url: &Url) -> Option<&'static str> {
    let (_, given) = url.path().rsplit('/').next()?.rsplit_once('.')?;
    let known = TYPES.iter().map(|(_, ending)| *ending).chain(ENDINGS);
    known.into_iter().find(|ending| ending.eq_ignore_ascii_case(given))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending_of(url: &str, kind: &str) -> &'static str {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, kind.parse().unwrap());
        ending(&headers, &url.parse().unwrap())
    }

    #[test]
    fn the_name_is_that_of_scrapy() {
        // hashlib.sha1(b"http://www.example.com/image.jpg").hexdigest()
        let url: Url = "http://www.example.com/image.jpg".parse().unwrap();
        assert_eq!(path(&stem(&url), "jpg"), "full/3afec3b4765f8f0a07b78f98c07b83f013567a0a.jpg");
    }

    #[test]
    fn the_type_decides_on_the_ending_and_the_url_if_there_is_none() {
        for (url, kind, expected) in [
            ("http://a.test/i.php?id=7", "image/jpeg", "jpg"),
            ("http://a.test/a.jpg", "IMAGE/PNG; q=1", "png"),
            ("http://a.test/a.PDF", "application/octet-stream", "pdf"),
            ("http://a.test/a.tar.gz", "binary/octet-stream", "gz"),
            ("http://a.test/a.txt", "text/plain", "txt"),
            ("http://a.test/a.exe", "application/octet-stream", ""),
            ("http://a.test/a.jpg/..%2F..%2Fetc", "application/octet-stream", ""),
            ("http://a.test/", "", ""),
        ] {
            assert_eq!(ending_of(url, kind), expected, "{url} {kind}");
        }
    }

    #[test]
    fn no_url_and_no_type_leads_out_of_the_folder() {
        for url in [
            "http://a.test/../../etc/passwd",
            "http://a.test/%2e%2e/x.jpg",
            "http://a.test/a.b/../.jpg",
            "http://a.test/\\..\\x",
        ] {
            let url: Url = url.parse().unwrap();
            for kind in ["../../x", "image/../../jpeg", "text/html"] {
                let path = path(&stem(&url), ending_of(url.as_str(), kind));
                let (name, ending) = path["full/".len()..].split_once('.').unwrap_or((&path[5..], ""));
                assert!(name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{path}");
                assert!(ending.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{path}");
            }
        }
    }

    #[test]
    fn every_ending_is_looked_for_once_and_that_of_the_url_first() {
        let all: Vec<&str> = endings(&"http://a.test/a.Png".parse().unwrap()).collect();
        assert_eq!(all[0], "png");
        assert!(
            all.contains(&"")
                && all.contains(&"jpeg")
                && all.iter().filter(|one| **one == "png").count() == 1
        );
    }
}
