//! Finds the licence that a page states.

use huntsman_html::{Attributes, Context, Name, Sink, Span, State, TextKind, decode, tokenize};
use serde::{Deserialize, Serialize};

/// The kind of a licence, by what it allows others to do with the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LicenceKind {
    /// CC0, the public domain mark: everything is allowed.
    PublicDomain,
    /// CC BY: allowed with attribution.
    Attribution,
    /// CC BY-SA, GFDL, GPL: allowed with attribution and under the same licence.
    ShareAlike,
    /// CC licences with NC or ND: not for works that others may change and sell.
    Restricted,
    /// An unknown licence.
    Other,
}

impl LicenceKind {
    /// Whether a text under this licence may be used in a work under CC BY-SA with attribution.
    pub fn is_free(self) -> bool {
        matches!(self, LicenceKind::PublicDomain | LicenceKind::Attribution | LicenceKind::ShareAlike)
    }

    /// The licence with this address, regardless of its version and language; `None` if it is not the address of a licence.
    pub fn of_address(address: &str) -> Option<Self> {
        let address = address.to_lowercase();
        let rest = address.split_once("://").map_or(&*address, |(_, rest)| rest).trim_start_matches("www.");
        let rest = rest.trim_start_matches("//").trim_start_matches("www.");
        if let Some(path) = rest.strip_prefix("creativecommons.org/") {
            let name = match path.split_once('/')? {
                ("publicdomain", _) => return Some(Self::PublicDomain),
                ("licenses", name) => name.split('/').next()?,
                _ => return None,
            };
            return Some(match name {
                "by" => Self::Attribution,
                "by-sa" => Self::ShareAlike,
                "publicdomain" | "zero" => Self::PublicDomain,
                "" => return None,
                _ if name.split('-').any(|part| matches!(part, "nc" | "nd")) => Self::Restricted,
                _ => Self::Other,
            });
        }
        let is_gnu = [
            "gnu.org/licenses/fdl",
            "gnu.org/licenses/gpl",
            "gnu.org/copyleft/fdl",
            "gnu.org/licenses/old-licenses/fdl",
        ];
        is_gnu.iter().any(|start| rest.starts_with(start)).then_some(Self::ShareAlike)
    }
}

/// A licence and the evidence for it on the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LicenceHint {
    /// The kind of the licence.
    pub kind: LicenceKind,
    /// The address or the words that name the licence.
    pub evidence: String,
    /// Whether it is marked as the page's own licence (`rel="license"`, `license` in JSON-LD), not just linked.
    pub is_declared: bool,
}

/// The longest address that is kept.
const MAX_ADDRESS: usize = 2048;

/// The licence hint of a page that counts most, or `None` without any. A declared licence is preferred to a link; among equal ones the most
/// restrictive is, because a page may show pieces under several licences.
///
/// It reads `rel="license"` and all other links to Creative Commons and GNU licences, and `"license"` in JSON-LD. Linear in the length of
/// the page.
pub fn licence_hint(html: &str) -> Option<LicenceHint> {
    let mut sink = Links { html, address: None, is_licence: false, is_json: false, hints: Vec::new() };
    tokenize(html, &mut sink);
    let rank = |hint: &LicenceHint| (hint.is_declared, !hint.kind.is_free());
    sink.hints.into_iter().rev().max_by_key(rank)
}

struct Links<'h> {
    html: &'h str,
    address: Option<String>,
    is_licence: bool,
    is_json: bool,
    /// At most one hint of each kind, declared or not.
    hints: Vec<LicenceHint>,
}

impl Links<'_> {
    fn keep(&mut self, address: &str, is_declared: bool) {
        let known = LicenceKind::of_address(address);
        let Some(kind) = known.or(is_declared.then_some(LicenceKind::Other)) else { return };
        if !self.hints.iter().any(|hint| hint.kind == kind && hint.is_declared == is_declared) {
            let end = address.floor_char_boundary(MAX_ADDRESS);
            self.hints.push(LicenceHint { kind, evidence: address[..end].to_owned(), is_declared });
        }
    }
}

impl Sink for Links<'_> {
    fn text(&mut self, raw: Span, _kind: TextKind) {
        if !self.is_json {
            return;
        }
        // The value of the first `"license"`, a string or an object with an address in it.
        let json = raw.of(self.html).replace("\\/", "/");
        let Some(at) = json.find("\"license\"") else { return };
        let rest = &json[at + 9..];
        let value = &rest[..rest.find(['}', ',', ']']).unwrap_or(rest.len())];
        let address = value.split('"').find(|piece| piece.contains("//"));
        if let Some(address) = address {
            self.keep(address, true);
        }
    }

    fn open(&mut self, name: Name) -> Attributes {
        const A: u64 = Name::pack("a");
        const LINK: u64 = Name::pack("link");
        const SCRIPT: u64 = Name::pack("script");
        (self.address, self.is_licence, self.is_json) = (None, false, false);
        if matches!(name.key(), A | LINK | SCRIPT) { Attributes::Wanted } else { Attributes::Skipped }
    }

    fn attr(&mut self, name: Name, value: Span) {
        const HREF: u64 = Name::pack("href");
        const REL: u64 = Name::pack("rel");
        const TYPE: u64 = Name::pack("type");
        let value = decode(value.of(self.html), Context::Attribute);
        match name.key() {
            HREF => self.address = self.address.take().or(Some(value.trim().to_owned())),
            REL => {
                self.is_licence |=
                    value.split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case("license"))
            }
            TYPE => self.is_json = value.trim().eq_ignore_ascii_case("application/ld+json"),
            _ => {}
        }
    }

    fn opened(&mut self, name: Name, _self_closing: bool) -> State {
        if let Some(address) = self.address.take() {
            let is_declared = self.is_licence;
            self.keep(&address, is_declared);
        }
        const SCRIPT: u64 = Name::pack("script");
        const STYLE: u64 = Name::pack("style");
        match name.key() {
            SCRIPT => State::Script,
            STYLE => State::Rawtext,
            _ => State::Data,
        }
    }

    fn close(&mut self, _name: Name) {
        self.is_json = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stand_for_licences() {
        for (address, kind) in [
            ("https://creativecommons.org/licenses/by/4.0/", Some(LicenceKind::Attribution)),
            ("//creativecommons.org/licenses/by-sa/3.0/de/", Some(LicenceKind::ShareAlike)),
            ("http://www.creativecommons.org/licenses/by-nc-sa/2.0", Some(LicenceKind::Restricted)),
            ("https://creativecommons.org/publicdomain/zero/1.0/", Some(LicenceKind::PublicDomain)),
            ("https://www.gnu.org/licenses/fdl-1.3.html", Some(LicenceKind::ShareAlike)),
            ("https://creativecommons.org/", None),
            ("https://a.example/creativecommons.org/licenses/by/4.0/", None),
        ] {
            assert_eq!(LicenceKind::of_address(address), kind, "{address}");
        }
    }

    #[test]
    fn what_a_page_declares_goes_before_what_it_links() {
        let html = "<a href='https://creativecommons.org/licenses/by-nd/4.0/'>photo</a>\
                    <a rel='nofollow license' href='https://creativecommons.org/licenses/by/4.0/'>text</a>";
        let hint = licence_hint(html).unwrap();
        assert_eq!((hint.kind, hint.is_declared), (LicenceKind::Attribution, true));
        assert!(hint.kind.is_free());
        let json = r#"<script type="application/ld+json">{"license": "https:\/\/creativecommons.org\/licenses\/by-nc\/4.0\/"}</script>"#;
        assert_eq!(licence_hint(json).unwrap().kind, LicenceKind::Restricted);
        assert_eq!(licence_hint("<link rel=license href=/terms>").unwrap().kind, LicenceKind::Other);
        assert_eq!(licence_hint("<p>All rights reserved</p><a href=/licence>x</a>"), None);
    }
}
