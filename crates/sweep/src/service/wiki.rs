//! Wikis whose articles can be named by title: maps a project, a language and a title to addresses.

use std::collections::BTreeMap;
use std::sync::Arc;

use huntsman_crawler::{Error, Result};
use huntsman_detect::copyvio::mirror_hints;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

/// Projects that have a wiki for each language at `{lang}.{project}.org`.
const PROJECTS: [(&str, &str); 8] = [
    ("wikipedia", "Wikipedia"),
    ("wiktionary", "Wiktionary"),
    ("wikibooks", "Wikibooks"),
    ("wikinews", "Wikinews"),
    ("wikiquote", "Wikiquote"),
    ("wikisource", "Wikisource"),
    ("wikiversity", "Wikiversity"),
    ("wikivoyage", "Wikivoyage"),
];

/// Languages that are listed for these projects; others are accepted as well.
const LANGUAGES: [(&str, &str); 24] = [
    ("ar", "Arabic"),
    ("bn", "Bangla"),
    ("cs", "Czech"),
    ("da", "Danish"),
    ("de", "German"),
    ("el", "Greek"),
    ("en", "English"),
    ("es", "Spanish"),
    ("fa", "Persian"),
    ("fi", "Finnish"),
    ("fr", "French"),
    ("he", "Hebrew"),
    ("hi", "Hindi"),
    ("it", "Italian"),
    ("ja", "Japanese"),
    ("ko", "Korean"),
    ("nl", "Dutch"),
    ("pl", "Polish"),
    ("pt", "Portuguese"),
    ("ru", "Russian"),
    ("sv", "Swedish"),
    ("tr", "Turkish"),
    ("uk", "Ukrainian"),
    ("zh", "Chinese"),
];

/// Characters that MediaWiki does not escape in the path of a page.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'!')
    .remove(b'*')
    .remove(b'(')
    .remove(b')')
    .remove(b',')
    .remove(b':')
    .remove(b';')
    .remove(b'@')
    .remove(b'/');

/// Maximum length of a title in bytes, as in MediaWiki.
const MOST_TITLE: usize = 255;

/// The redirect keywords behind `#` in the wikis of the languages above, from MediaWiki's message files.
const REDIRECTS: [&str; 26] = [
    "redirect",
    "weiterleitung",
    "redirection",
    "redirección",
    "redireccion",
    "redirecionamento",
    "rinvia",
    "rinvio",
    "doorverwijzing",
    "patrz",
    "przekieruj",
    "tam",
    "omdirigering",
    "omdiriger",
    "ohjaus",
    "uudelleenohjaus",
    "přesměruj",
    "ανακατευθυνση",
    "перенаправление",
    "перенаправлення",
    "yönlendirme",
    "重定向",
    "転送",
    "넘겨주기",
    "تحويل",
    "הפניה",
];

/// The wikis whose pages may be requested, by project and language. The default has those of Wikimedia: any language of
/// Wikipedia, Wiktionary, Wikibooks, Wikinews, Wikiquote, Wikisource, Wikiversity and Wikivoyage.
#[derive(Clone, Debug, Default)]
pub struct Wikis(BTreeMap<(String, String), Wiki>);

/// A MediaWiki wiki.
#[derive(Clone, Debug, PartialEq)]
pub struct Wiki {
    /// The address of its scripts, without a slash at the end: `https://en.wikipedia.org/w`.
    script: String,
    /// The address of its pages, with a slash at the end, if it is known.
    pages: Option<String>,
    /// The host, with the port if it is not the default one; mirrors of its pages link to it.
    host: String,
    script_path: String,
}

impl Wikis {
    /// The wikis that the operator names as `PROJECT:LANG=SCRIPT_URL`, such as `manual:en=https://wiki.example/w`, in
    /// addition to those of Wikimedia.
    ///
    /// # Errors
    /// A name does not have this form; the error is one of usage and begins with the name.
    pub fn new(named: &[String]) -> Result<Self> {
        let mut wikis = Self::default();
        for text in named {
            let wrong = |why: &str| {
                Error::usage(format!(
                    "{text}: {why}; use PROJECT:LANG=URL such as manual:en=https://wiki.example/w"
                ))
            };
            let (name, url) = text.split_once('=').ok_or_else(|| wrong("there is no ="))?;
            let (project, lang) = name.split_once(':').ok_or_else(|| wrong("there is no : before the ="))?;
            if !is_name(project) || !is_name(lang) {
                return Err(wrong("a project and a language have letters, digits and -"));
            }
            let url = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
            let wiki =
                Wiki::at(&url).ok_or_else(|| wrong("its address is http or https, without a query"))?;
            wikis.0.insert((project.to_ascii_lowercase(), lang.to_ascii_lowercase()), wiki);
        }
        Ok(wikis)
    }

    /// The wiki of a project in a language; case and surrounding blanks are ignored. `None` if there is none.
    pub fn find(&self, project: &str, lang: &str) -> Option<Wiki> {
        let (project, lang) = (project.trim().to_ascii_lowercase(), lang.trim().to_ascii_lowercase());
        if let Some(wiki) = self.0.get(&(project.clone(), lang.clone())) {
            return Some(wiki.clone());
        }
        let is_known = PROJECTS.iter().any(|(code, _)| *code == project);
        (is_known && is_name(&lang)).then(|| Wiki::of_wikimedia(&format!("{lang}.{project}.org")))
    }

    /// Languages with their names, as in the response to `action=sites`.
    pub fn languages(&self) -> Vec<(String, String)> {
        let known = LANGUAGES.iter().map(|(code, name)| ((*code).to_owned(), format!("{code} ({name})")));
        let mut all: BTreeMap<String, String> = known.collect();
        for (_, lang) in self.0.keys() {
            all.entry(lang.clone()).or_insert_with(|| lang.clone());
        }
        all.into_iter().collect()
    }

    /// Projects with their names, as in the response to `action=sites`.
    pub fn projects(&self) -> Vec<(String, String)> {
        let known = PROJECTS.iter().map(|(code, name)| ((*code).to_owned(), (*name).to_owned()));
        let mut all: BTreeMap<String, String> = known.collect();
        for (project, _) in self.0.keys() {
            all.entry(project.clone()).or_insert_with(|| project.clone());
        }
        all.into_iter().collect()
    }
}

impl Wiki {
    /// Normalises the title of a page: blanks instead of underscores, and none at the ends. `None` if no page of
    /// MediaWiki can have the title: it is empty, has more than 255 bytes, or a character such as `[`.
    pub fn title(text: &str) -> Option<String> {
        let title = text.replace('_', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        let is_bad = |c: char| {
            c.is_control() || matches!(c, '#' | '<' | '>' | '[' | ']' | '|' | '{' | '}' | '\u{fffd}')
        };
        let is_good = !title.is_empty() && title.len() <= MOST_TITLE && !title.contains(is_bad);
        is_good.then_some(title)
    }

    fn of_wikimedia(host: &str) -> Self {
        Self {
            script: format!("https://{host}/w"),
            pages: Some(format!("https://{host}/wiki/")),
            host: host.to_owned(),
            script_path: "/w".to_owned(),
        }
    }

    fn at(script: &Url) -> Option<Self> {
        if !matches!(script.scheme(), "http" | "https")
            || script.query().is_some()
            || script.fragment().is_some()
        {
            return None;
        }
        let name = script.host_str()?;
        let host = script.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        let script_path = script.path().trim_end_matches('/').to_owned();
        let script = script.as_str().trim_end_matches('/').to_owned();
        Some(Self { script, pages: None, host, script_path })
    }

    /// The address of the wikitext of a page.
    pub(crate) fn source_of(&self, title: &str) -> Option<Url> {
        let query = [("title", underscored(title)), ("action", "raw".to_owned())];
        Url::parse_with_params(&format!("{}/index.php", self.script), query).ok()
    }

    /// The address of the wikitext of a revision.
    pub(crate) fn source_of_revision(&self, oldid: u64) -> Option<Url> {
        let query = [("oldid", oldid.to_string()), ("action", "raw".to_owned())];
        Url::parse_with_params(&format!("{}/index.php", self.script), query).ok()
    }

    /// The address of the page for people.
    pub(crate) fn page(&self, title: &str) -> String {
        let name = utf8_percent_encode(&underscored(title), PATH).to_string();
        match &self.pages {
            Some(pages) => format!("{pages}{name}"),
            None => format!("{}/index.php?title={name}", self.script),
        }
    }

    /// The address of a revision's page for people.
    pub(crate) fn revision(&self, oldid: u64) -> String {
        format!("{}/index.php?oldid={oldid}", self.script)
    }

    /// Strings that occur in links from mirrors of a page.
    pub(crate) fn mirror_hints(&self, title: &str) -> Arc<[String]> {
        let page = self.page(title);
        let path = page.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]));
        mirror_hints(&self.host, &self.script_path, path.unwrap_or("/")).into()
    }
}

/// The title that a page redirects to, if the page is a redirect.
pub(crate) fn redirect(wikitext: &str) -> Option<String> {
    let rest = wikitext.trim_start().strip_prefix('#')?;
    let (word, rest) = rest.split_once("[[")?;
    let word = word.trim().trim_end_matches(':').trim_end().to_lowercase();
    if !REDIRECTS.contains(&word.as_str()) {
        return None;
    }
    let (target, _) = rest.split_once("]]")?;
    let target = target.split('|').next().unwrap_or_default();
    let target = target.split('#').next().unwrap_or_default();
    Wiki::title(target.trim().trim_start_matches(':'))
}

fn underscored(title: &str) -> String {
    title.replace(' ', "_")
}

/// Whether the text may be part of a host name.
fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=40).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_addresses_of_wikimedia_or_of_the_operator() {
        let wikis = Wikis::new(&["Manual:de=http://127.0.0.1:8000/w/".to_owned()]).unwrap();
        let english = wikis.find("wikipedia", "en").unwrap();
        assert_eq!(
            english.source_of("Old mill & co").unwrap().as_str(),
            "https://en.wikipedia.org/w/index.php?title=Old_mill_%26_co&action=raw"
        );
        assert_eq!(english.page("AC/DC (Ü)"), "https://en.wikipedia.org/wiki/AC/DC_(%C3%9C)");
        assert!(english.mirror_hints("Old mill").contains(&"en.m.wikipedia.org/wiki/Old_mill".to_owned()));
        let manual = wikis.find("manual", "DE").unwrap();
        assert_eq!(
            manual.source_of_revision(7).unwrap().as_str(),
            "http://127.0.0.1:8000/w/index.php?oldid=7&action=raw"
        );
        assert_eq!(manual.page("A b"), "http://127.0.0.1:8000/w/index.php?title=A_b");
        assert!(manual.mirror_hints("A b").contains(&"127.0.0.1:8000/w/api.php".to_owned()));
        for (project, lang) in [
            ("manual", "en"),
            ("wikipedia", "evil.example/"),
            ("wikipedia", ""),
            ("google", "en"),
            ("wikipedia", "-a"),
        ] {
            assert_eq!(wikis.find(project, lang), None, "{project}:{lang}");
        }
        assert!(wikis.languages().contains(&("en".to_owned(), "en (English)".to_owned())));
        assert!(wikis.projects().contains(&("manual".to_owned(), "manual".to_owned())));
    }

    #[test]
    fn a_wrong_name_of_a_wiki_is_an_error() {
        for text in [
            "manual",
            "manual:en",
            "manual=https://a.example/w",
            "a b:en=https://a.example/w",
            "m:en=ftp://a.example/w",
            "m:en=https://a.example/w?x",
        ] {
            let refused = Wikis::new(&[text.to_owned()]).unwrap_err().to_string();
            assert!(refused.starts_with(text) && refused.contains("wiki.example"), "{refused}");
        }
    }

    #[test]
    fn titles_are_those_of_mediawiki() {
        assert_eq!(Wiki::title(" Old__mill ").as_deref(), Some("Old mill"));
        for bad in ["", " _ ", "a[b", "a|b", "a\nb\u{1}", "#x", &"x".repeat(256)] {
            assert_eq!(Wiki::title(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_redirect_is_a_known_word_before_a_link() {
        for (text, target) in [
            ("#REDIRECT [[Old mill]]", Some("Old mill")),
            ("\n#redirect:[[:Old_mill#History|x]] {{R}}", Some("Old mill")),
            ("#WEITERLEITUNG [[Mühle]]", Some("Mühle")),
            ("# [[Old mill]] is a mill", None),
            ("#First [[Old mill]]", None),
            ("#REDIRECT [[#Section]]", None),
            ("#REDIRECT [[Old mill", None),
            ("Text #REDIRECT [[Old mill]]", None),
        ] {
            assert_eq!(redirect(text).as_deref(), target, "{text}");
        }
    }
}
