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

/// Codes of countries and their parts with two letters (ISO 3166-1), and Kosovo's, which is assigned by its users.
const REGIONS: &str = "ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bl bm bn bo bq br bs bt bv bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg eh er es et fi fj fk fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mf mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug um us uy uz va vc ve vg vi vn vu wf ws xk ye yt za zm zw";

/// Whether search engines understand a value of `hreflang`: a language, and after it perhaps a script and a region; or `x-default`.
pub(super) fn is_hreflang(tag: &str) -> bool {
    let tag = tag.to_ascii_lowercase();
    let region = tag.split('-').skip(1).find(|part| part.len() == 2);
    let is_region = region.is_none_or(|region| REGIONS.split(' ').any(|known| known == region));
    tag == "x-default" || (is_valid(&tag) && is_region && primary(&tag).len() > 1)
}

/// The language of a tag without region, in lower case.
pub(super) fn primary(tag: &str) -> String {
    tag.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternates_have_languages_with_regions_that_there_are() {
        for tag in ["en", "en-GB", "zh-Hant-TW", "x-default", "X-Default", "es-419", "fil-PH", "sq-XK"] {
            assert!(is_hreflang(tag), "{tag}");
        }
        for tag in ["en-UK", "en-EU", "en_GB", "jp", "gb", "x-klingon", "english", "en-XX", "", "us-en"] {
            assert!(!is_hreflang(tag), "{tag}");
        }
        assert_eq!(REGIONS.split(' ').count(), 250);
    }

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
