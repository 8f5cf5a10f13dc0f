//! Tags of languages (BCP 47), as far as audits judge them.

/// Codes of two letters of ISO 639-1.
const TWO_LETTERS: &str = "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik in io is it iu iw ja ji jv jw ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mo mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu";

/// Whether a tag is well formed, and its language one of those that there are. Languages of three letters are all accepted: there are 8,000, and
/// more every year.
pub(super) fn is_valid(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let primary = parts.next().unwrap_or_default().to_ascii_lowercase();
    let is_language = match primary.len() {
        2 => is_two_letters(&primary),
        3 => primary.bytes().all(|byte| byte.is_ascii_lowercase()),
        // Tags of private use and the registered ones of old.
        1 => return matches!(&*primary, "x" | "i") && tag.len() > 2,
        _ => false,
    };
    let is_part =
        |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_language && parts.all(is_part) && has_known_region(tag)
}

/// Whether this is a code of two letters of a language, in lower case.
pub(super) fn is_two_letters(code: &str) -> bool {
    TWO_LETTERS.split(' ').any(|known| known == code)
}

/// Whether a region of two letters is one that there is, as far as common mistakes go.
fn has_known_region(tag: &str) -> bool {
    let region = tag.split('-').skip(1).find(|part| part.len() == 2);
    region.is_none_or(|region| !matches!(&*region.to_ascii_lowercase(), "uk" | "en"))
}

/// The language of a tag without region, in lower case.
pub(super) fn primary(tag: &str) -> String {
    tag.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_judged_by_form_and_language() {
        for tag in ["en", "en-GB", "zh-Hant-TW", "gsw", "de-CH-1996", "x-klingon", "es-419", "EN-us"] {
            assert!(is_valid(tag), "{tag}");
        }
        for tag in ["english", "en_US", "xx", "en-", "e", "en-UK", "12", "de-toolongpart"] {
            assert!(!is_valid(tag), "{tag}");
        }
    }
}
