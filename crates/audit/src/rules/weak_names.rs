//! Names of links that do not say where they lead, by language.

/// In lower case, without punctuation at the ends.
const NAMES: &[&str] = &[
    // English
    "click here",
    "click",
    "here",
    "this",
    "this page",
    "go",
    "start",
    "more",
    "read more",
    "learn more",
    "see more",
    "more info",
    "more information",
    "find out more",
    "details",
    "link",
    "continue",
    "continue reading",
    "info",
    // German
    "hier",
    "hier klicken",
    "klicken sie hier",
    "mehr",
    "mehr erfahren",
    "weiterlesen",
    "mehr lesen",
    "mehr informationen",
    "weiter",
    // French
    "ici",
    "cliquez ici",
    "lire la suite",
    "en savoir plus",
    "plus",
    "plus d'infos",
    "voir plus",
    // Spanish
    "aquí",
    "haga clic aquí",
    "haz clic aquí",
    "leer más",
    "más información",
    "más",
    "ver más",
    // Italian
    "qui",
    "clicca qui",
    "leggi di più",
    "leggi tutto",
    "scopri di più",
    "maggiori informazioni",
    // Portuguese
    "aqui",
    "clique aqui",
    "leia mais",
    "saiba mais",
    "ler mais",
    // Dutch
    "klik hier",
    "lees meer",
    "lees verder",
    "meer",
    "meer informatie",
    // Polish, Swedish, Danish, Czech
    "kliknij tutaj",
    "czytaj więcej",
    "więcej",
    "tutaj",
    "läs mer",
    "klicka här",
    "här",
    "læs mere",
    "klik her",
    "více",
    "číst dále",
    "zde",
    // Russian, Ukrainian, Japanese, Chinese
    "здесь",
    "подробнее",
    "читать далее",
    "тут",
    "докладніше",
    "こちら",
    "続きを読む",
    "詳細",
    "もっと見る",
    "点击这里",
    "更多",
    "阅读更多",
    "了解更多",
];

/// Whether the name of a link says nothing of its target.
pub(super) fn is_weak(name: &str) -> bool {
    let name = name.to_lowercase();
    let name = name.trim_matches(|c: char| !c.is_alphanumeric());
    NAMES.contains(&name)
}
