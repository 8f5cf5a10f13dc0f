//! Prior knowledge about slots: the user's overrides, and parameters whose use is the same everywhere.

use super::shape::{HOST, Name};
use huntsman_text::urlparts::name_matches;

/// The user's overrides about slots of URLs, which take precedence over what is learnt.
///
/// An entry is the name of a parameter, such as `sid` or `utm_*` (`*` stands for anything, case is ignored); the number of a path segment
/// from 0, such as `/2`; or `host`.
///
/// ```
/// use huntsman_detect::avoid::{Attempt, Decision, Options, PageText, Predictor, Overrides};
/// use url::Url;
///
/// let overrides = Overrides { pinned: vec!["sid".into()], forbidden: vec!["page".into()] };
/// let mut predictor = Predictor::new(Options::default()).with_overrides(overrides);
/// let url = |sid: u32| Url::parse(&format!("https://h.example/news?sid={sid}")).unwrap();
/// predictor.learn("h.example", &url(1), PageText::of([(1, "what is new today")]));
/// let Decision::Drop(reason) = predictor.decide("h.example", &url(2), Attempt::Regular) else { panic!("it is known") };
/// assert_eq!(reason.equals.as_deref(), Some("https://h.example/news?sid=1"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Slots that never matter: a URL is skipped once another one that differs only in them was fetched. No warm-up, no exploration.
    pub pinned: Vec<String>,
    /// Slots that always matter: no URL is skipped on the assumption that they do not. Takes precedence over `pinned`.
    pub forbidden: Vec<String>,
}

/// Prior knowledge about a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PriorKnowledge {
    /// None.
    #[default]
    None,
    /// The slot never matters.
    Pinned,
    /// The slot always matters.
    Forbidden,
    /// The slot is widely used to track visitors: it probably does not matter, and little evidence is needed.
    Tracking,
}

impl Overrides {
    pub(crate) fn is_empty(&self) -> bool {
        self.pinned.is_empty() && self.forbidden.is_empty()
    }

    pub(crate) fn of(&self, name: Name, label: &str) -> PriorKnowledge {
        if !self.is_empty() {
            let names = |patterns: &[String]| patterns.iter().any(|pattern| is_named(pattern, name, label));
            if names(&self.forbidden) {
                return PriorKnowledge::Forbidden;
            }
            if names(&self.pinned) {
                return PriorKnowledge::Pinned;
            }
        }
        if is_tracking(label) { PriorKnowledge::Tracking } else { PriorKnowledge::None }
    }
}

fn is_named(pattern: &str, name: Name, label: &str) -> bool {
    match pattern.strip_prefix('/') {
        Some(number) => number.parse().is_ok_and(|number: u32| name.is_segment() && name.0 == number),
        None if pattern == "host" && name == HOST => true,
        // Labels of parameters of a path segment contain the semicolon, and those of repeated parameters a number.
        None => {
            let label = label.trim_start_matches(';');
            let plain = label.rsplit_once('#').map_or(label, |(plain, _)| plain);
            name.is_parameter() && name_matches(pattern, plain)
        }
    }
}

/// Names that analytics, advertising and mailing services document for their links, and names of session parameters of common servers.
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
