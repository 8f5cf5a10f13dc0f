//! The politeness rules of a crawl, read from its settings, and the rules of single slots.

use std::collections::BTreeMap;
use std::time::Duration;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::autothrottle::AutoThrottle;
use crate::host::HostKey;
use crate::settings::{EngineSettings, LatencyEstimate, SlotSettings, seconds};

/// The greatest jitter: it lengthens a gap by at most a hundred times the delay. A larger setting is a mistake.
const MAX_JITTER: f64 = 100.0;

/// Rules that apply to all slots.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) delay: Duration,
    pub(super) concurrency: u32,
    pub(super) jitter: f64,
    /// `None` unless AutoThrottle is on.
    pub(super) throttle: Option<AutoThrottle>,
    pub(super) estimate: LatencyEstimate,
    /// Longest delay that a host can be given because of its responses.
    pub(super) max_delay: Duration,
    pub(super) retry_after_max: Duration,
    /// Number of consecutive failures after which a host is down; `None` switches this off.
    pub(super) max_failures: Option<u32>,
    pub(super) cooldown: Duration,
    pub(super) max_cooldowns: u32,
    seed: u64,
    exact: BTreeMap<String, SlotSettings>,
    /// Rules by the suffix after `*.`.
    suffixes: BTreeMap<String, SlotSettings>,
}

/// Rules of one slot that replace those of the crawl.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SlotRules {
    pub(super) delay: Option<Duration>,
    pub(super) concurrency: Option<u32>,
    pub(super) jitter: Option<f64>,
    pub(super) crawl_delay: Option<Duration>,
    /// Whether a rule was learnt while the crawl ran, so that it could not be restored from the settings.
    pub(super) is_learnt: bool,
}

impl Rules {
    pub(super) fn new(settings: &EngineSettings, seed: u64) -> Self {
        let mut exact = BTreeMap::new();
        let mut suffixes = BTreeMap::new();
        for (pattern, own) in &settings.download_slots {
            let pattern = pattern.to_ascii_lowercase();
            match pattern.strip_prefix("*.") {
                Some(suffix) => suffixes.insert(suffix.to_owned(), *own),
                None => exact.insert(pattern, *own),
            };
        }
        let throttle = AutoThrottle {
            start_delay: seconds(settings.autothrottle_start_delay),
            max_delay: seconds(settings.autothrottle_max_delay),
            target_concurrency: settings.autothrottle_target_concurrency,
            min_delay: seconds(settings.download_delay),
        };
        // The settings are checked when a crawl is built; a rule that divides by zero is ignored even if they were
        // not.
        let throttle = (settings.autothrottle_enabled && throttle.validate().is_ok()).then_some(throttle);
        Self {
            delay: seconds(settings.download_delay),
            concurrency: limit(settings.concurrent_requests_per_domain),
            jitter: jitter(settings.download_delay_jitter),
            throttle,
            estimate: settings.autothrottle_estimate,
            max_delay: seconds(settings.autothrottle_max_delay),
            retry_after_max: seconds(settings.retry_after_max),
            max_failures: (settings.host_max_failures > 0).then_some(settings.host_max_failures),
            cooldown: seconds(settings.host_down_cooldown),
            max_cooldowns: settings.host_max_cooldowns,
            seed,
            exact,
            suffixes,
        }
    }

    /// The `download_slots` entry of a slot: the one with its exact name, else the longest matching `*.suffix`.
    pub(super) fn own(&self, host: &HostKey) -> Option<Box<SlotRules>> {
        let found = self.exact.get(host.as_str()).or_else(|| {
            let dots = host.as_str().match_indices('.');
            dots.filter_map(|(dot, _)| self.suffixes.get(&host.as_str()[dot + 1..])).next()
        })?;
        Some(Box::new(SlotRules {
            delay: found.delay.map(seconds),
            concurrency: found.concurrency.map(limit),
            jitter: found.jitter.map(jitter),
            ..SlotRules::default()
        }))
    }

    /// The random part of the gap after the `start`th start of a slot, uniform in [0, 1).
    ///
    /// It is SplitMix64 seeded with a hash of seed, host and start number, and not one random stream for the crawl,
    /// so a repeated crawl draws the same gaps whatever the order of its hosts.
    pub(super) fn draw(&self, host: &HostKey, start: u32) -> f32 {
        let seed = xxh3_64_with_seed(host.as_str().as_bytes(), self.seed).wrapping_add(u64::from(start));
        let bits = SplitMix64::seed_from_u64(seed).next_u64() >> 40;
        bits as f32 / (1u32 << 24) as f32
    }
}

/// A number of requests from a setting, where 0 means no limit.
pub(super) fn limit(setting: usize) -> u32 {
    match setting {
        0 => u32::MAX,
        n => u32::try_from(n).unwrap_or(u32::MAX),
    }
}

fn jitter(setting: f64) -> f64 {
    if setting.is_finite() { setting.clamp(0.0, MAX_JITTER) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_name_wins_and_then_the_longest_suffix() {
        let mut settings = EngineSettings::default();
        let slot = |delay| SlotSettings { delay: Some(delay), ..SlotSettings::default() };
        for (pattern, delay) in
            [("a.b.example", 1.0), ("*.b.example", 2.0), ("*.example", 3.0), ("B.Example", 4.0)]
        {
            settings.download_slots.insert(pattern.into(), slot(delay));
        }
        let rules = Rules::new(&settings, 0);
        let delay =
            |host: &str| rules.own(&HostKey::new(host)).and_then(|own| own.delay).map(|d| d.as_secs());
        assert_eq!(delay("a.b.example"), Some(1));
        assert_eq!(delay("x.b.example"), Some(2));
        assert_eq!(delay("y.x.b.example"), Some(2));
        assert_eq!(delay("b.example"), Some(4));
        assert_eq!(delay("c.example"), Some(3));
        assert_eq!(delay("example"), None);
        assert_eq!(delay("notexample"), None);
    }

    #[test]
    fn draws_repeat_with_the_seed_and_differ_without() {
        let rules = Rules::new(&EngineSettings::default(), 7);
        let host = HostKey::new("a.example");
        let draws: Vec<f32> = (0..100).map(|n| rules.draw(&host, n)).collect();
        assert!(draws.iter().all(|u| (0.0..1.0).contains(u)));
        let mean = draws.iter().sum::<f32>() / 100.0;
        assert!((0.4..0.6).contains(&mean), "{mean}");
        let again = Rules::new(&EngineSettings::default(), 7);
        assert_eq!(again.draw(&host, 3), draws[3]);
        assert_ne!(again.draw(&HostKey::new("b.example"), 3), draws[3]);
        assert_ne!(Rules::new(&EngineSettings::default(), 8).draw(&host, 3), draws[3]);
    }

    #[test]
    fn senseless_settings_are_bounded() {
        let settings = EngineSettings {
            download_delay: f64::NAN,
            download_delay_jitter: f64::INFINITY,
            concurrent_requests_per_domain: 0,
            autothrottle_enabled: true,
            autothrottle_target_concurrency: 0.0,
            ..EngineSettings::default()
        };
        let rules = Rules::new(&settings, 0);
        assert_eq!((rules.delay, rules.jitter, rules.concurrency), (Duration::ZERO, 0.0, u32::MAX));
        assert!(rules.throttle.is_none());
    }
}
