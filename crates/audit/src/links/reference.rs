//! References: what a source links to, and where the link stands.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde::Serialize;
use url::Url;

/// A link or an image of a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct Reference {
    /// The file as it was named or found, or the URL of the page.
    pub source: String,
    /// Line in the source, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The address as written.
    pub href: String,
    /// The text of the link, if there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What the address means.
    #[serde(skip)]
    pub target: Target,
}

/// What an address means where it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Target {
    /// An http or https URL, perhaps with a fragment.
    Web(Url),
    /// A file beside the source, with the fragment after percent-decoding.
    File(PathBuf, Option<String>),
    /// An e-mail address.
    Mail(String),
    /// An address that can lead nowhere, and why.
    Unusable(String),
    /// An address of a kind that is not checked, such as `tel:` or `data:`.
    Other,
}

/// Where relative addresses of a source lead.
#[derive(Clone, Debug)]
pub(crate) enum Base {
    /// To URLs.
    Url(Url),
    /// To files: beside this file, or below the folder of the site if the address begins with a slash.
    File {
        /// The file with the reference.
        file: PathBuf,
        /// The folder of the site.
        root: Option<PathBuf>,
    },
}

impl Base {
    /// What an address means here.
    pub(crate) fn resolve(&self, href: &str) -> Target {
        let href = href.trim();
        match Url::parse(href) {
            Ok(url) => of_url(url, href),
            Err(url::ParseError::RelativeUrlWithoutBase) => self.relative(href),
            Err(error) => Target::Unusable(error.to_string()),
        }
    }

    fn relative(&self, href: &str) -> Target {
        match self {
            Self::Url(base) => match base.join(href) {
                Ok(url) => of_url(url, href),
                Err(error) => Target::Unusable(error.to_string()),
            },
            Self::File { file, root } => file_target(file, root.as_deref(), href),
        }
    }

    /// The base after a `base` element.
    pub(crate) fn changed(self, href: Option<&str>) -> Self {
        match (href.map(|href| self.resolve(href)), self) {
            (Some(Target::Web(url)), _) => Self::Url(url),
            // The name of a file in a folder stands for the folder.
            (Some(Target::File(path, _)), Self::File { root, .. }) => {
                Self::File { file: path.join("-"), root }
            }
            (_, unchanged) => unchanged,
        }
    }
}

fn of_url(url: Url, href: &str) -> Target {
    match url.scheme() {
        "http" | "https" => Target::Web(url),
        "mailto" => Target::Mail(percent_decode_str(url.path()).decode_utf8_lossy().into_owned()),
        "file" => match url.to_file_path() {
            Ok(path) => Target::File(path, fragment(href)),
            Err(()) => Target::Unusable("no path of this system".to_owned()),
        },
        _ => Target::Other,
    }
}

fn file_target(file: &Path, root: Option<&Path>, href: &str) -> Target {
    let path = href.split(['?', '#']).next().unwrap_or_default();
    let path = percent_decode_str(path).decode_utf8_lossy().into_owned();
    if href.starts_with("//") {
        return Target::Unusable(
            "an address without a scheme means nothing in a file; write https:".to_owned(),
        );
    }
    if path.is_empty() {
        return Target::File(file.to_owned(), fragment(href));
    }
    match (path.strip_prefix('/'), root) {
        (None, _) => Target::File(file.parent().unwrap_or(Path::new("")).join(path), fragment(href)),
        (Some(below), Some(root)) => Target::File(root.join(below), fragment(href)),
        (Some(_), None) => Target::Unusable(
            "an address from the root of a site; name the folder of the site by --root-dir, or its address by --base".to_owned(),
        ),
    }
}

/// The fragment of an address after percent-decoding; `None` if it has none.
pub(crate) fn fragment(href: &str) -> Option<String> {
    let (_, fragment) = href.split_once('#')?;
    (!fragment.is_empty()).then(|| percent_decode_str(fragment).decode_utf8_lossy().into_owned())
}

/// Whether an e-mail address can exist: one `@` between a local part and a domain with a dot, without blanks.
pub(crate) fn is_mail_address(address: &str) -> bool {
    let mut addresses = address.split(',').map(str::trim);
    addresses.all(|address| {
        let Some((local, domain)) = address.rsplit_once('@') else { return false };
        let is_label = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.chars().all(|c| c.is_alphanumeric() || c == '-')
        };
        let is_quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
        let is_word = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
        let is_local = is_quoted
            || (!local.is_empty()
                && local.chars().all(is_word)
                && !local.starts_with('.')
                && !local.ends_with('.')
                && !local.contains(".."));
        is_local && local.len() <= 64 && domain.contains('.') && domain.split('.').all(is_label)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_file(href: &str) -> Target {
        let base = Base::File { file: PathBuf::from("docs/guide/a.md"), root: Some(PathBuf::from("site")) };
        base.resolve(href)
    }

    fn file(path: &str, fragment: Option<&str>) -> Target {
        Target::File(PathBuf::from(path), fragment.map(str::to_owned))
    }

    #[test]
    fn relative_addresses_of_a_file_are_files_beside_it() {
        assert_eq!(in_file("b.md#second%20part"), file("docs/guide/b.md", Some("second part")));
        assert_eq!(in_file("../%C3%A9.md?plain=1"), file("docs/guide/../é.md", None));
        assert_eq!(in_file("#here"), file("docs/guide/a.md", Some("here")));
        assert_eq!(in_file("/index.html"), file("site/index.html", None));
        assert!(matches!(in_file("//cdn.example/x.js"), Target::Unusable(_)));
        let without_root = Base::File { file: PathBuf::from("a.md"), root: None };
        assert!(
            matches!(without_root.resolve("/x"), Target::Unusable(reason) if reason.contains("--root-dir"))
        );
    }

    #[test]
    fn addresses_with_a_scheme_mean_the_same_everywhere() {
        assert_eq!(
            in_file("https://a.example/x#y"),
            Target::Web(Url::parse("https://a.example/x#y").unwrap())
        );
        assert_eq!(in_file("mailto:ann%40x@a.example?subject=Hi"), Target::Mail("ann@x@a.example".into()));
        assert_eq!(in_file("file:///etc/hosts#x"), file("/etc/hosts", Some("x")));
        assert_eq!(in_file("tel:+4930123"), Target::Other);
        assert!(matches!(in_file("https://[::1/"), Target::Unusable(_)));
    }

    #[test]
    fn a_base_element_moves_relative_addresses() {
        let page = Base::Url(Url::parse("https://a.example/x/y").unwrap());
        let moved = page.changed(Some("/z/"));
        assert_eq!(moved.resolve("b"), Target::Web(Url::parse("https://a.example/z/b").unwrap()));
        let file_base = Base::File { file: PathBuf::from("s/a.html"), root: None }.changed(Some("sub/"));
        assert_eq!(file_base.resolve("b.html"), file("s/sub/b.html", None));
        let named =
            Base::File { file: PathBuf::from("s/a.html"), root: None }.changed(Some("https://a.example/"));
        assert_eq!(named.resolve("b"), Target::Web(Url::parse("https://a.example/b").unwrap()));
    }

    #[test]
    fn addresses_of_mail_are_judged_by_their_form() {
        for good in [
            "ann@a.example",
            "ann.b+c@sub.a.example",
            "\"a b\"@a.example",
            "a@a.example, b@b.example",
            "ü@ä.example",
        ] {
            assert!(is_mail_address(good), "{good}");
        }
        for bad in [
            "ann",
            "ann@",
            "@a.example",
            "a b@a.example",
            "a..b@a.example",
            "a@local",
            "a@-x.example",
            "a@a.example,",
        ] {
            assert!(!is_mail_address(bad), "{bad}");
        }
    }
}
