//! Tags of languages (BCP 47), as far as audits judge them.

/// Codes of two letters of ISO 639-1.
const TWO_LETTERS: &str = "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik in io is it iu iw ja ji jv jw ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mo mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu";

/// Scripts of the registry (ISO 15924).
const SCRIPTS: &str = "adlm afak aghb ahom arab aran armi armn avst bali bamu bass batk beng berf bhks blis bopo brah brai bugi buhd cakm cans cari cham cher chis chrs cirt copt cpmn cprt cyrl cyrs deva diak dogr dsrt dupl egyd egyh egyp elba elym ethi gara geok geor glag gong gonm goth gran grek gujr gukh guru hanb hang hani hano hans hant hatr hebr hira hluw hmng hmnp hntl hrkt hung inds ital jamo java jpan jurc kali kana kawi khar khmr khoj kitl kits knda kore kpel krai kthi lana laoo latf latg latn leke lepc limb lina linb lisu loma lyci lydi mahj maka mand mani marc maya medf mend merc mero mlym modi mong moon mroo mtei mult mymr nagm nand narb nbat newa nkdb nkgb nkoo nshu ogam olck onao orkh orya osge osma ougr palm pauc pcun pelm perm phag phli phlp phlv phnx piqd plrd prti psin ranj rjng rohg roro runr samr sara sarb saur seal sgnw shaw shrd shui sidd sidt sind sinh sogd sogo sora soyo sund sunu sylo syrc syre syrj syrn tagb takr tale talu taml tang tavt tayo telu teng tfng tglg thaa thai tibt tirh tnsa todr tols toto tutg ugar vaii visp vith wara wcho wole xpeo xsux yezi yiii zanb zinh zmth zsye zsym zxxx zyyy zzzz";

/// Regions of the registry besides [`REGIONS`]: reserved ones, those of old, and groups of countries (UN M.49).
const FURTHER_REGIONS: &str = "ac an bu cp cq cs dd dg ea eu ez fx ic nt su ta tp un yd yu zr 001 002 003 005 009 011 013 014 015 017 018 019 021 029 030 034 035 039 053 054 057 061 142 143 145 150 151 154 155 202 419";

/// Tags that were registered before there was a grammar.
const OLD_TAGS: [&str; 4] = ["en-gb-oed", "sgn-be-fr", "sgn-be-nl", "sgn-ch-de"];

/// Whether a tag is well formed (RFC 5646, section 2.1), and its language, script and region are in the registry. Languages of three letters and
/// variants are all accepted: there are thousands, and more every year.
pub(super) fn is_valid(tag: &str) -> bool {
    let tag = tag.to_ascii_lowercase();
    if OLD_TAGS.contains(&&*tag) {
        return true;
    }
    let mut parts = tag.split('-').peekable();
    let is_letters = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase());
    let primary = parts.next().unwrap_or_default();
    match primary.len() {
        2 if is_two_letters(primary) => {}
        3 if is_letters(primary) => {}
        // Tags of private use and the registered ones of old.
        1 => return matches!(primary, "x" | "i") && parts.peek().is_some() && parts.all(is_part),
        _ => return false,
    }
    for _ in 0..3 {
        parts.next_if(|part| part.len() == 3 && is_letters(part));
    }
    if let Some(script) = parts.next_if(|part| part.len() == 4 && is_letters(part))
        && !(is_known(SCRIPTS, script) || ("qaaa"..="qabx").contains(&script))
    {
        return false;
    }
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_region =
        |part: &str| (part.len() == 2 && is_letters(part)) || (part.len() == 3 && is_number(part));
    if let Some(region) = parts.next_if(|part| is_region(part))
        && !(is_known(REGIONS, region) || is_known(FURTHER_REGIONS, region) || is_private(region))
    {
        return false;
    }
    let is_variant = |part: &str| match part.len() {
        4 => is_part(part) && part.starts_with(|c: char| c.is_ascii_digit()),
        length => (5..=8).contains(&length) && is_part(part),
    };
    while parts.next_if(|part| is_variant(part)).is_some() {}
    // Extensions begin with a single letter or digit, and have a part at least; all parts behind an x are private.
    while let Some(singleton) = parts.next() {
        if singleton.len() != 1 || !is_part(singleton) {
            return false;
        }
        if singleton == "x" {
            return parts.peek().is_some() && parts.all(is_part);
        }
        if parts.next_if(|part| part.len() > 1 && is_part(part)).is_none() {
            return false;
        }
        while parts.next_if(|part| part.len() > 1 && is_part(part)).is_some() {}
    }
    true
}

fn is_part(part: &str) -> bool {
    (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_known(list: &str, wanted: &str) -> bool {
    list.split(' ').any(|known| known == wanted)
}

/// Regions that the registry leaves to their users.
fn is_private(region: &str) -> bool {
    matches!(region, "aa" | "zz") || ("qm"..="qz").contains(&region) || ("xa"..="xz").contains(&region)
}

/// Whether this is a code of two letters of a language, in lower case.
pub(super) fn is_two_letters(code: &str) -> bool {
    is_known(TWO_LETTERS, code)
}

/// Codes of countries and their parts with two letters (ISO 3166-1), and Kosovo's, which is assigned by its users.
const REGIONS: &str = "ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bl bm bn bo bq br bs bt bv bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg eh er es et fi fj fk fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mf mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug um us uy uz va vc ve vg vi vn vu wf ws xk ye yt za zm zw";

/// Whether search engines understand a value of `hreflang`: a language, and after it perhaps a script and a region; or `x-default`.
pub(super) fn is_hreflang(tag: &str) -> bool {
    let tag = tag.to_ascii_lowercase();
    let region = tag.split('-').skip(1).find(|part| part.len() == 2);
    let is_region = region.is_none_or(|region| is_known(REGIONS, region));
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
        for tag in [
            "en",
            "en-GB",
            "zh-Hant-TW",
            "gsw",
            "de-CH-1996",
            "x-klingon",
            "es-419",
            "EN-us",
            "zh-yue-HK",
            "sr-Latn-RS",
            "sl-rozaj-biske",
            "de-1901",
            "en-u-ca-gregory",
            "en-x-us",
            "ar-t-en-x-a",
            "i-navajo",
            "en-GB-oed",
            "en-ZZ",
        ] {
            assert!(is_valid(tag), "{tag}");
        }
        for tag in [
            "english",
            "en_US",
            "xx",
            "en-",
            "e",
            "en-UK",
            "12",
            "de-toolongpart",
            "en-Zzzy",
            "sr-Latm",
            "en-999",
            "en-a",
            "en-x",
            "x",
            "en-US-GB",
            "en-u-x-a",
            "en-EN",
        ] {
            assert!(!is_valid(tag), "{tag}");
        }
    }
}
