//! The language of a text: as its page declares it, else guessed from the beginning of the text.

use std::fmt;

/// A language, by its ISO 639 code: two letters where there is such a code (`en`), else three (`haw`).
///
/// Scripts and regions are not part of it: `en-US` and `en-GB` are one language here. A macrolanguage and its most usual member are one
/// language, too: `cmn` is `zh`, `pes` is `fa`, `nb` is `no`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lang([u8; 3]);

impl Lang {
    /// The unknown language: `und`, as in BCP 47.
    pub const UNKNOWN: Lang = Lang(*b"und");

    /// The language of a BCP 47 tag or ISO 639 code: `en-US`, `en_us`, `eng`, `ger`.
    ///
    /// `None` if the text names no language: empty, `und`, `mul`, `x-default`, a country instead of a language (`jp`), words.
    ///
    /// ```
    /// use huntsman_text::lang::Lang;
    ///
    /// assert_eq!(Lang::parse("en-US").unwrap().code(), "en");
    /// assert_eq!(Lang::parse("ger").unwrap().code(), "de");
    /// assert_eq!(Lang::parse("x-default"), None);
    /// ```
    pub fn parse(tag: &str) -> Option<Lang> {
        let primary = tag.trim().split(['-', '_']).next().unwrap_or_default();
        if !primary.bytes().all(|b| b.is_ascii_alphabetic()) {
            return None;
        }
        let lower = primary.to_ascii_lowercase();
        let lower = lower.as_str();
        match lower.len() {
            2 => {
                let code = alias(lower).unwrap_or(lower);
                TWO_LETTERS.iter().any(|(two, _)| *two == code).then(|| Lang::from_code(code))
            }
            3 if matches!(lower, "und" | "mul" | "mis" | "zxx") => None,
            3 => {
                let two = TWO_LETTERS.iter().find(|(_, three)| three.split(' ').any(|code| code == lower));
                Some(Lang::from_code(two.map_or(lower, |(two, _)| alias(two).unwrap_or(two))))
            }
            _ => None,
        }
    }

    /// The code: two letters, or three where there is no shorter one.
    pub fn code(&self) -> &str {
        let length = if self.0[2] == 0 { 2 } else { 3 };
        std::str::from_utf8(&self.0[..length]).expect("codes are ASCII letters")
    }

    /// The two-letter code; `None` for languages without one.
    pub fn two_letters(&self) -> Option<&str> {
        Some(self.code()).filter(|code| code.len() == 2)
    }

    fn from_code(code: &str) -> Lang {
        let mut letters = [0; 3];
        letters[..code.len()].copy_from_slice(code.as_bytes());
        Lang(letters)
    }
}

impl fmt::Debug for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lang({})", self.code())
    }
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// How a language was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The page says so.
    Declared,
    /// It was guessed from the text.
    Text,
    /// Neither: the language is [`Lang::UNKNOWN`].
    None,
}

/// A language, with its source and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Detected {
    /// The language.
    pub lang: Lang,
    /// From 0 to 1: 1 for a declared language, the guesser's own confidence for a guessed one. Related languages in one script (Hindi and
    /// Marathi, the Scandinavian ones) get low values for short texts.
    pub confidence: f64,
    /// How the language was found.
    pub source: Source,
}

/// Bytes of a text that the guesser reads. It reads 9 MB/s: 2 KiB cost about 0.2 ms, several times the scan of a page.
const SAMPLE: usize = 2048;
/// Bytes that it reads if the first sample gave no reliable answer.
const LONG_SAMPLE: usize = 4096;

/// Detects the language of `text`: the `declared` one (the `lang` attribute of a page or `Content-Language`) if it names a language, else
/// the guess from the first 2 KiB of the text, or from 4 KiB if the first guess is not reliable.
///
/// ```
/// use huntsman_text::lang::{Source, detect};
///
/// assert_eq!(detect("whatever", Some("de-AT")).lang.code(), "de");
/// let guessed = detect("Der schnelle braune Fuchs springt über den faulen Hund und läuft davon.", None);
/// assert_eq!((guessed.lang.code(), guessed.source), ("de", Source::Text));
/// ```
pub fn detect(text: &str, declared: Option<&str>) -> Detected {
    // Content-Language may list several; the first is the main one.
    let declared = declared.and_then(|tags| Lang::parse(tags.split(',').next().unwrap_or_default()));
    if let Some(lang) = declared {
        return Detected { lang, confidence: 1.0, source: Source::Declared };
    }
    let text = text.trim_start();
    let guess = |length: usize| whatlang::detect(&text[..text.floor_char_boundary(length)]);
    let mut info = guess(SAMPLE);
    if text.len() > SAMPLE && !info.as_ref().is_some_and(whatlang::Info::is_reliable) {
        info = guess(LONG_SAMPLE);
    }
    match info {
        Some(info) => Detected {
            lang: Lang::parse(info.lang().code()).unwrap_or(Lang::UNKNOWN),
            confidence: info.confidence(),
            source: Source::Text,
        },
        None => Detected { lang: Lang::UNKNOWN, confidence: 0.0, source: Source::None },
    }
}

/// The current code for one that is obsolete, or that means the same here.
fn alias(two: &str) -> Option<&'static str> {
    match two {
        "iw" => Some("he"),
        "in" => Some("id"),
        "ji" => Some("yi"),
        "jw" => Some("jv"),
        "mo" => Some("ro"),
        // CLDR treats both as one; pages in Bokmål declare either.
        "nb" => Some("no"),
        _ => None,
    }
}

/// ISO 639-1 codes, each with its three-letter codes: the one of ISO 639-3, the bibliographic one of ISO 639-2 if it differs, and the one
/// of the usual member of a macrolanguage (`cmn`, `pes`, `arb`).
#[rustfmt::skip]
const TWO_LETTERS: [(&str, &str); 183] = [
    ("aa", "aar"), ("ab", "abk"), ("ae", "ave"), ("af", "afr"), ("ak", "aka"), ("am", "amh"), ("an", "arg"),
    ("ar", "ara arb"), ("as", "asm"), ("av", "ava"), ("ay", "aym"), ("az", "aze azj"), ("ba", "bak"), ("be", "bel"),
    ("bg", "bul"), ("bi", "bis"), ("bm", "bam"), ("bn", "ben"), ("bo", "bod tib"), ("br", "bre"), ("bs", "bos"),
    ("ca", "cat"), ("ce", "che"), ("ch", "cha"), ("co", "cos"), ("cr", "cre"), ("cs", "ces cze"), ("cu", "chu"),
    ("cv", "chv"), ("cy", "cym wel"), ("da", "dan"), ("de", "deu ger"), ("dv", "div"), ("dz", "dzo"), ("ee", "ewe"),
    ("el", "ell gre"), ("en", "eng"), ("eo", "epo"), ("es", "spa"), ("et", "est ekk"), ("eu", "eus baq"),
    ("fa", "fas per pes"), ("ff", "ful"), ("fi", "fin"), ("fj", "fij"), ("fo", "fao"), ("fr", "fra fre"),
    ("fy", "fry"), ("ga", "gle"), ("gd", "gla"), ("gl", "glg"), ("gn", "grn"), ("gu", "guj"), ("gv", "glv"),
    ("ha", "hau"), ("he", "heb"), ("hi", "hin"), ("ho", "hmo"), ("hr", "hrv"), ("ht", "hat"), ("hu", "hun"),
    ("hy", "hye arm"), ("hz", "her"), ("ia", "ina"), ("id", "ind"), ("ie", "ile"), ("ig", "ibo"), ("ii", "iii"),
    ("ik", "ipk"), ("io", "ido"), ("is", "isl ice"), ("it", "ita"), ("iu", "iku"), ("ja", "jpn"), ("jv", "jav"),
    ("ka", "kat geo"), ("kg", "kon"), ("ki", "kik"), ("kj", "kua"), ("kk", "kaz"), ("kl", "kal"), ("km", "khm"),
    ("kn", "kan"), ("ko", "kor"), ("kr", "kau"), ("ks", "kas"), ("ku", "kur"), ("kv", "kom"), ("kw", "cor"),
    ("ky", "kir"), ("la", "lat"), ("lb", "ltz"), ("lg", "lug"), ("li", "lim"), ("ln", "lin"), ("lo", "lao"),
    ("lt", "lit"), ("lu", "lub"), ("lv", "lav lvs"), ("mg", "mlg"), ("mh", "mah"), ("mi", "mri mao"),
    ("mk", "mkd mac"), ("ml", "mal"), ("mn", "mon"), ("mr", "mar"), ("ms", "msa may zsm"), ("mt", "mlt"),
    ("my", "mya bur"), ("na", "nau"), ("nd", "nde"), ("ne", "nep npi"), ("ng", "ndo"), ("nl", "nld dut"),
    ("nn", "nno"), ("no", "nor nob"), ("nr", "nbl"), ("nv", "nav"), ("ny", "nya"), ("oc", "oci"), ("oj", "oji"),
    ("om", "orm"), ("or", "ori ory"), ("os", "oss"), ("pa", "pan"), ("pi", "pli"), ("pl", "pol"), ("ps", "pus"),
    ("pt", "por"), ("qu", "que"), ("rm", "roh"), ("rn", "run"), ("ro", "ron rum"), ("ru", "rus"), ("rw", "kin"),
    ("sa", "san"), ("sc", "srd"), ("sd", "snd"), ("se", "sme"), ("sg", "sag"), ("sh", "hbs"), ("si", "sin"),
    ("sk", "slk slo"), ("sl", "slv"), ("sm", "smo"), ("sn", "sna"), ("so", "som"), ("sq", "sqi alb"), ("sr", "srp"),
    ("ss", "ssw"), ("st", "sot"), ("su", "sun"), ("sv", "swe"), ("sw", "swa swh"), ("ta", "tam"), ("te", "tel"),
    ("tg", "tgk"), ("th", "tha"), ("ti", "tir"), ("tk", "tuk"), ("tl", "tgl fil"), ("tn", "tsn"), ("to", "ton"),
    ("tr", "tur"), ("ts", "tso"), ("tt", "tat"), ("tw", "twi"), ("ty", "tah"), ("ug", "uig"), ("uk", "ukr"),
    ("ur", "urd"), ("uz", "uzb uzn"), ("ve", "ven"), ("vi", "vie"), ("vo", "vol"), ("wa", "wln"), ("wo", "wol"),
    ("xh", "xho"), ("yi", "yid"), ("yo", "yor"), ("za", "zha"), ("zh", "zho chi cmn"), ("zu", "zul"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_name_languages() {
        for (tag, code) in [
            ("en", "en"),
            ("en-US", "en"),
            ("EN_us", "en"),
            (" pt-BR ", "pt"),
            ("zh-Hant-TW", "zh"),
            ("eng", "en"),
            ("ger", "de"),
            ("deu", "de"),
            ("cmn", "zh"),
            ("nb", "no"),
            ("nob", "no"),
            ("nn", "nn"),
            ("iw", "he"),
            ("haw", "haw"),
            ("sr-Latn", "sr"),
            ("tlh", "tlh"),
        ] {
            assert_eq!(Lang::parse(tag).map(|lang| lang.to_string()).as_deref(), Some(code), "{tag}");
        }
        for tag in [
            "",
            " ",
            "-",
            "und",
            "mul",
            "zxx",
            "x-default",
            "i-klingon",
            "*",
            "english",
            "jp",
            "cn",
            "e",
            "e1",
            "é",
        ] {
            assert_eq!(Lang::parse(tag), None, "{tag}");
        }
        assert_eq!(Lang::parse("haw").unwrap().two_letters(), None);
        assert_eq!(Lang::parse("eng").unwrap().two_letters(), Some("en"));
        assert_eq!(Lang::UNKNOWN.code(), "und");
    }

    #[test]
    fn the_table_is_sorted_and_has_each_code_once() {
        assert!(TWO_LETTERS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let mut three: Vec<&str> = TWO_LETTERS.iter().flat_map(|(_, codes)| codes.split(' ')).collect();
        let count = three.len();
        three.sort_unstable();
        three.dedup();
        assert_eq!(three.len(), count);
        assert!(three.iter().all(|code| code.len() == 3));
    }

    #[test]
    fn every_language_of_the_guesser_has_two_letters() {
        for lang in whatlang::Lang::all() {
            let parsed = Lang::parse(lang.code()).unwrap();
            assert!(parsed.two_letters().is_some(), "{}", lang.code());
        }
    }

    #[test]
    fn a_declared_language_is_believed() {
        let german = "Das ist ein deutscher Satz mit vielen deutschen Worten darin.";
        let detected = detect(german, Some("fr"));
        assert_eq!(
            (detected.lang.code(), detected.confidence, detected.source),
            ("fr", 1.0, Source::Declared)
        );
        for useless in ["", "x-default", "und", "*", "DE-formal!"] {
            let detected = detect(german, Some(useless));
            assert_eq!(detected.lang.code(), "de", "{useless}");
        }
        assert_eq!(detect(german, Some("en, de")).lang.code(), "en");
    }

    #[test]
    fn texts_are_recognised() {
        for (code, text) in [
            ("en", "The quick brown fox jumps over the lazy dog, and then it runs away from all of them."),
            ("fr", "Le renard brun rapide saute par-dessus le chien paresseux et s'enfuit dans la forêt."),
            ("es", "El rápido zorro marrón salta sobre el perro perezoso y después se va corriendo."),
            ("ru", "Быстрая коричневая лиса прыгает через ленивую собаку и убегает в лес."),
            ("el", "Η γρήγορη καφέ αλεπού πηδάει πάνω από το τεμπέλικο σκυλί."),
            ("ja", "すばやい茶色の狐はのろまな犬を飛び越えた。"),
            ("zh", "敏捷的棕色狐狸跳过了懒惰的狗，然后跑进了森林。"),
            ("he", "השועל החום המהיר קופץ מעל הכלב העצלן ובורח ליער"),
        ] {
            let detected = detect(text, None);
            assert_eq!((detected.lang.code(), detected.source), (code, Source::Text), "{text}");
            assert!((0.0..=1.0).contains(&detected.confidence));
        }
    }

    #[test]
    fn texts_without_letters_have_no_language() {
        for text in ["", "   ", "12345 !!! 678"] {
            let detected = detect(text, None);
            assert_eq!(
                (detected.lang, detected.confidence, detected.source),
                (Lang::UNKNOWN, 0.0, Source::None)
            );
        }
    }

    #[test]
    fn samples_end_between_characters() {
        for text in ["é".repeat(5000), "日本".repeat(3000), "😀a".repeat(3000)] {
            let _ = detect(&text, None);
            let _ = detect(&format!("x{text}"), None);
        }
    }
}
