//! What is known of slots beforehand: by the user's word, or because everybody uses them for the same.

use super::shape::{HOST, Name};
use huntsman_text::urlparts::name_matches;

/// What the user says about slots of URLs, whatever is learnt.
///
/// An entry is the name of a parameter, as `sid` or `utm_*` (`*` stands for anything, case does not count); a path segment by its
/// number from 0, as `/2`; or `host`.
///
/// ```
/// use huntsman_detect::avoid::{Decision, Options, PageText, Predictor, Rulings};
/// use url::Url;
///
/// let rulings = Rulings { pinned: vec!["sid".into()], forbidden: vec!["page".into()] };
/// let mut predictor = Predictor::new(Options::default()).with_rulings(rulings);
/// let url = |sid: u32| Url::parse(&format!("https://h.example/news?sid={sid}")).unwrap();
/// predictor.learn("h.example", &url(1), PageText::of([(1, "what is new today")]));
/// let Decision::Drop(reason) = predictor.decide("h.example", &url(2), false) else { panic!("it is known") };
/// assert_eq!(reason.equals.as_deref(), Some("https://h.example/news?sid=1"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rulings {
    /// They never matter: a URL is skipped once another one that differs in them only was fetched. No warm-up, no exploration.
    pub pinned: Vec<String>,
    /// They always matter: nothing is skipped because they are said not to. Wins over `pinned`.
    pub forbidden: Vec<String>,
}

/// What is known of a slot beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fixed {
    /// Nothing.
    #[default]
    No,
    /// It never matters.
    Pinned,
    /// It always matters.
    Forbidden,
    /// It is widely used to follow visitors: likely it does not matter, and little evidence is asked for.
    Tracking,
}

impl Rulings {
    pub(crate) fn is_empty(&self) -> bool {
        self.pinned.is_empty() && self.forbidden.is_empty()
    }

    pub(crate) fn of(&self, name: Name, label: &str) -> Fixed {
        if !self.is_empty() {
            let names = |patterns: &[String]| patterns.iter().any(|pattern| is_named(pattern, name, label));
            if names(&self.forbidden) {
                return Fixed::Forbidden;
            }
            if names(&self.pinned) {
                return Fixed::Pinned;
            }
        }
        if is_tracking(label) { Fixed::Tracking } else { Fixed::No }
    }
}

fn is_named(pattern: &str, name: Name, label: &str) -> bool {
    match pattern.strip_prefix('/') {
        Some(number) => number.parse().is_ok_and(|number: u32| name.is_segment() && name.0 == number),
        None if pattern == "host" && name == HOST => true,
        // Parameters of a path segment have their semicolon, and repeated ones their number.
        None => {
            let label = label.trim_start_matches(';');
            let plain = label.rsplit_once('#').map_or(label, |(plain, _)| plain);
            name.is_parameter() && name_matches(pattern, plain)
        }
    }
}

/// Names that analytics, advertising and mailing services document for their links, and those of sessions of common servers.
const TRACKING: [&str; 35] = [
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
    "cfid",
    "cftoken",
    "dclid",
    "epik",
    "fbclid",
    "gbraid",
    "gclid",
    "gclsrc",
    "igsh",
    "igshid",
    "jsessionid",
    "li_fat_id",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "msclkid",
    "oly_anon_id",
    "oly_enc_id",
    "phpsessid",
    "rb_clickid",
    "s_kwcid",
    "srsltid",
    "ttclid",
    "twclid",
    "vero_conv",
    "vero_id",
    "wbraid",
    "wickedid",
    "ysclid",
    "yclid",
    "zanpid",
];

fn is_tracking(label: &str) -> bool {
    let label = label.trim_start_matches(';');
    let starts =
        |prefix: &str| label.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    starts("utm_")
        || starts("aspsessionid")
        || starts("hsa_")
        || TRACKING.iter().any(|name| name.eq_ignore_ascii_case(label))
}
