//! Names of links that do not say where they lead, by language.
//!
//! Single words that also name something (`continue`, `details`, `plus`) are left out: a wrong alarm costs more than a missed one.

/// Names in lower case. Those in English count on all pages, the others on pages in their language.
const NAMES: &[(&str, &[&str])] = &[
    (
        "en",
        &[
            "click here",
            "click this",
            "here",
            "this",
            "this page",
            "more",
            "read more",
            "learn more",
            "see more",
            "more info",
            "more information",
            "find out more",
            "continue reading",
        ],
    ),
    (
        "de",
        &[
            "hier",
            "hier klicken",
            "klicken sie hier",
            "mehr",
            "mehr erfahren",
            "weiterlesen",
            "mehr lesen",
            "mehr informationen",
        ],
    ),
    ("fr", &["ici", "cliquez ici", "lire la suite", "en savoir plus", "plus d'infos", "voir plus"]),
    ("es", &["aquí", "haga clic aquí", "haz clic aquí", "leer más", "más información", "ver más"]),
    ("it", &["qui", "clicca qui", "leggi di più", "leggi tutto", "scopri di più", "maggiori informazioni"]),
    ("pt", &["aqui", "clique aqui", "leia mais", "saiba mais", "ler mais"]),
    ("nl", &["hier", "klik hier", "lees meer", "lees verder", "meer informatie"]),
    ("pl", &["tutaj", "kliknij tutaj", "czytaj więcej", "więcej"]),
    ("sv", &["här", "klicka här", "läs mer"]),
    ("da", &["her", "klik her", "læs mere"]),
    ("cs", &["zde", "více", "číst dále"]),
    ("ru", &["здесь", "тут", "подробнее", "читать далее"]),
    ("uk", &["тут", "докладніше"]),
    ("ja", &["こちら", "続きを読む", "もっと見る"]),
    ("zh", &["点击这里", "更多", "阅读更多", "了解更多"]),
];

/// Whether the name of a link says nothing of its target, on a page in this language.
pub(super) fn is_weak(name: &str, lang: &str) -> bool {
    let name = crate::page::collapsed(&name.to_lowercase());
    // Of other signs a name of code may consist: `start()`, `--info`.
    let name = name.trim_matches(|c: char| c.is_whitespace() || "!.…:?»«›‹>→←".contains(c));
    NAMES.iter().filter(|(known, _)| *known == "en" || *known == lang).any(|(_, names)| names.contains(&name))
}
