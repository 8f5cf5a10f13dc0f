//! A cache of the sources that were read recently.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::reading::Reading;

/// The readings of the last minutes, up to a number of bytes: articles of one site link to the same sources.
#[derive(Debug)]
pub(crate) struct Recent {
    most_bytes: usize,
    life: Duration,
    bytes: usize,
    readings: HashMap<Box<str>, (Instant, Arc<Reading>)>,
    /// When each reading was kept, the oldest first.
    order: VecDeque<(Instant, Box<str>)>,
}

impl Recent {
    pub(crate) fn new(most_bytes: usize, life: Duration) -> Self {
        Self { most_bytes, life, bytes: 0, readings: HashMap::new(), order: VecDeque::new() }
    }

    pub(crate) fn get(&self, url: &str, now: Instant) -> Option<Arc<Reading>> {
        let (at, reading) = self.readings.get(url)?;
        (now.duration_since(*at) < self.life).then(|| Arc::clone(reading))
    }

    /// Keeps a reading, and drops the oldest ones beyond the limits. A reading that would take more than a quarter of the
    /// bytes is not kept.
    pub(crate) fn keep(&mut self, url: &str, reading: &Arc<Reading>, now: Instant) {
        let bytes = weight(url, reading);
        if bytes > self.most_bytes / 4 {
            return;
        }
        if let Some((_, old)) = self.readings.insert(url.into(), (now, Arc::clone(reading))) {
            self.bytes -= weight(url, &old);
        }
        self.bytes += bytes;
        self.order.push_back((now, url.into()));
        while let Some((at, url)) = self.order.front() {
            if self.bytes <= self.most_bytes && now.duration_since(*at) < self.life {
                break;
            }
            // If the page was read again meanwhile, this is the older entry.
            if self.readings.get(url).is_some_and(|(kept, _)| kept == at)
                && let Some((_, old)) = self.readings.remove(url)
            {
                self.bytes -= weight(url, &old);
            }
            self.order.pop_front();
        }
    }
}

/// Approximate memory of an entry, in bytes.
fn weight(url: &str, reading: &Reading) -> usize {
    let text = &reading.text;
    let seen = if std::ptr::eq(text.exact(), text.text()) { 0 } else { text.text().len() };
    text.exact().len() + seen + reading.addresses.bytes() + 2 * url.len() + 256
}

#[cfg(test)]
mod tests {
    use huntsman_detect::copyvio::Text;

    use super::*;

    #[test]
    fn the_oldest_readings_go_when_their_bytes_or_their_life_are_over() {
        let reading =
            |bytes: usize| Arc::new(Reading { text: Text::new("x".repeat(bytes)), ..Reading::default() });
        let mut recent = Recent::new(10_000, Duration::from_secs(60));
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        for (second, url) in ["a", "b", "c", "d", "a", "e"].iter().enumerate() {
            recent.keep(url, &reading(2_000), at(second as u64));
        }
        let kept = |recent: &Recent, second| {
            ["a", "b", "c", "d", "e"].map(|url| recent.get(url, at(second)).is_some())
        };
        assert_eq!(kept(&recent, 6), [true, false, true, true, true]);
        recent.keep("large", &reading(3_000), at(6));
        assert!(recent.get("large", at(6)).is_none(), "one does not drive out all others");
        assert_eq!(kept(&recent, 63), [true, false, false, false, true]);
        recent.keep("f", &reading(10), at(70));
        assert_eq!((recent.readings.len(), recent.order.len()), (1, 1));
        assert_eq!(recent.bytes, weight("f", &reading(10)));
    }
}
