//! A private copy of a page for a browser.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use huntsman_crawler::{Error, Page, PageKind, Result};

/// A copy of a page that was made for a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The file.
    pub path: PathBuf,
    /// Whether a browser was started with it.
    pub in_browser: bool,
}

/// Writes a copy of a page into a new private folder among the temporary files, and opens it in a browser: the program that the variable
/// `BROWSER` names, or that of the desktop. The copy of HTML has a `base`, so that images and styles come from the site, and no scripts run in
/// it: it shows what a crawl sees, and a file of this machine is not a place for scripts of strangers.
///
/// # Errors
/// The copy cannot be written.
pub fn view(page: &Page) -> Result<Opened> {
    let (name, content) = match page.kind() {
        PageKind::Html => ("page.html", for_browser(page).into_bytes()),
        PageKind::Xml => ("page.xml", page.response().body.to_vec()),
        PageKind::Json => ("page.json", page.response().body.to_vec()),
        PageKind::Text => ("page.txt", page.response().body.to_vec()),
        PageKind::Binary => ("page.bin", page.response().body.to_vec()),
    };
    let failed = |error: io::Error| Error::from(error).context("writing a copy of the page");
    let path = new_folder().map_err(failed)?.join(name);
    huntsman_files::write(&path, content).map_err(failed)?;
    // Nothing but markup is handed to a program that the desktop chooses by the kind of the file.
    let in_browser = page.kind() == PageKind::Html && browser().is_some_and(|browser| starts(browser, &path));
    Ok(Opened { path, in_browser })
}

/// A folder with a new name, which nothing else has made.
fn new_folder() -> io::Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("huntsman-view-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        match huntsman_files::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            // Another process may have had this number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 10_000 => {}
            Err(error) => return Err(error),
        }
    }
}

/// The program that opens pages; `None` if there is no desktop.
fn browser() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(programs) = set("BROWSER") {
        return std::env::split_paths(&programs).next();
    }
    if cfg!(target_os = "macos") {
        return Some(PathBuf::from("open"));
    }
    (set("DISPLAY").is_some() || set("WAYLAND_DISPLAY").is_some()).then(|| PathBuf::from("xdg-open"))
}

fn starts(program: PathBuf, path: &Path) -> bool {
    let mut command = Command::new(program);
    command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}

/// The page with what it needs as a file: its encoding, its base, and a rule against scripts.
fn for_browser(page: &Page) -> String {
    let text = page.body_text();
    let base: String = page.base().as_str().chars().map(in_attribute).collect();
    let added = format!(
        "<meta charset=\"utf-8\"><meta http-equiv=\"Content-Security-Policy\" content=\"script-src 'none'; object-src 'none'\"><base href=\"{base}\">"
    );
    let at = place(text);
    format!("{}{added}{}", &text[..at], &text[at..])
}

fn in_attribute(c: char) -> String {
    match c {
        '&' => "&amp;".to_owned(),
        '"' => "&quot;".to_owned(),
        '<' => "&lt;".to_owned(),
        c => c.to_string(),
    }
}

/// Where elements of the head may stand: behind a document type at the beginning. Everything else could be inside a comment or a script; behind
/// the document type a browser opens the head by itself.
fn place(text: &str) -> usize {
    let begin = text.len() - text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).len();
    let is_type = text.get(begin..begin + 9).is_some_and(|head| head.eq_ignore_ascii_case("<!doctype"));
    match text[begin..].find('>') {
        Some(end) if is_type => begin + end + 1,
        _ => begin,
    }
}

#[cfg(test)]
mod tests {
    use huntsman_crawler::{Request, Response};

    use super::*;

    fn page(html: &str) -> Page {
        let request = Request::parse("http://h.example/a/b?c=1&d=\"2").unwrap();
        Page::new(request.clone(), Response::html(request.url, html.to_owned()))
    }

    #[test]
    fn the_copy_has_a_base_in_its_head_and_keeps_the_document_type() {
        let copy = for_browser(&page("\n<!DOCTYPE html><!-- <head> --><html lang=en><head><title>T</title>"));
        assert!(copy.starts_with("\n<!DOCTYPE html><meta charset=\"utf-8\"><meta http-equiv="), "{copy}");
        assert!(copy.contains("<base href=\"http://h.example/a/b?c=1&amp;d=%222\"><!-- <head>"), "{copy}");
        assert!(copy.contains("script-src 'none'"));
        let copy = for_browser(&page("<base href=/other/><p>x"));
        assert!(
            copy.starts_with("<meta charset") && copy.contains("<base href=\"http://h.example/other/\">"),
            "{copy}"
        );
    }

    #[test]
    fn a_copy_is_private_and_no_copy_overwrites_another() {
        let mut binary = page("\0\u{1}");
        binary = Page::new(
            binary.request().clone(),
            Response::new(binary.url().clone(), http_ok(), vec![0, 159, 1]),
        );
        let (one, two) = (view(&binary).unwrap(), view(&binary).unwrap());
        assert!(one.path != two.path && !one.in_browser);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&one.path), mode(one.path.parent().unwrap())), (0o600, 0o700));
        }
        for opened in [one, two] {
            std::fs::remove_dir_all(opened.path.parent().unwrap()).unwrap();
        }
    }

    fn http_ok() -> http::StatusCode {
        http::StatusCode::OK
    }
}
