//! Words by which pages say that they are missing.

/// A page with more words of its own than this tells of something else.
pub(crate) const MAX_WORDS: usize = 200;

/// Phrases, in lower case, by which error pages of several languages say so.
const PHRASES: &[&str] = &[
    "not found",
    "page doesn't exist",
    "page doesn’t exist",
    "page does not exist",
    "no longer available",
    "nicht gefunden",
    "existiert nicht",
    "introuvable",
    "n'existe pas",
    "n’existe pas",
    "no encontrada",
    "no se encuentra",
    "non trovata",
    "não encontrada",
    "niet gevonden",
    "nie znaleziono",
    "не найдена",
    "見つかりません",
    "找不到",
];

/// Whether a text says that something is missing.
pub(crate) fn says_missing(text: &str) -> bool {
    let text = text.to_lowercase();
    PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// Whether a title or a heading says so, or has the number of the error. The number alone may be that of a road.
pub(crate) fn is_headline(text: &str) -> bool {
    says_missing(text) || text.split(|c: char| !c.is_alphanumeric()).any(|word| word == "404")
}
