//! Text that occurs on many sites, and is therefore no evidence that one of them copied another.

use std::fmt;

use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_64;

use super::document::{Document, Token};

/// The number of words in a counted window.
const WINDOW: usize = 5;

/// Windows of words and the number of hosts on which each occurs: licences, menus, cookie banners, famous quotations.
///
/// Pages are added with [`Boilerplate::observe`], and [`super::Article::compare_knowing`] looks passages up. A window is boilerplate if at
/// least [`Boilerplate::hosts`] hosts have it.
///
/// Memory is bounded: 24 bytes per window, and at most as many windows as [`new`](Self::new) was given. When it is full, windows that only
/// one host had are forgotten; if that does not help, no new ones are added. A window remembers only the last host that had it, so the
/// pages of one host should be added together; if a host comes again later, it counts again.
pub struct Boilerplate {
    hosts: u32,
    max_windows: usize,
    windows: HashMap<u64, Seen>,
    is_full: bool,
}

#[derive(Clone, Copy)]
struct Seen {
    last: u32,
    hosts: u32,
}

impl Boilerplate {
    /// An empty set. A window is boilerplate if at least `hosts` hosts (2 or more) have it, and at most `max_windows` are remembered.
    pub fn new(hosts: u32, max_windows: usize) -> Self {
        Self { hosts: hosts.max(2), max_windows, windows: HashMap::new(), is_full: false }
    }

    /// The number of hosts from which on a window is boilerplate.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// The number of windows that are remembered.
    pub fn len(&self) -> usize {
        self.windows.len()
    }

    /// Whether no windows are remembered.
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Adds a page. Linear in its length.
    pub fn observe(&mut self, host: &str, page: &Document<'_>) {
        let host = xxh3_64(host.as_bytes()) as u32;
        for window in page.tokens.windows(WINDOW).map(window_hash) {
            if self.windows.len() >= self.max_windows && !self.is_full && !self.windows.contains_key(&window)
            {
                self.windows.retain(|_, seen| seen.hosts > 1);
                // Otherwise every new window would walk over all windows again.
                self.is_full = self.windows.len() * 10 > self.max_windows * 9;
            }
            let has_room = self.windows.len() < self.max_windows;
            match self.windows.get_mut(&window) {
                Some(seen) if seen.last != host => {
                    *seen = Seen { last: host, hosts: seen.hosts.saturating_add(1) }
                }
                Some(_) => {}
                None if has_room => {
                    self.windows.insert(window, Seen { last: host, hosts: 1 });
                }
                None => {}
            }
        }
    }

    /// Whether at least half of the windows of a passage are boilerplate.
    pub(super) fn is_common(&self, tokens: &[Token]) -> bool {
        let windows = tokens.windows(WINDOW).map(window_hash);
        let count = windows.len();
        let is_common = |window: &u64| self.windows.get(window).is_some_and(|seen| seen.hosts >= self.hosts);
        count > 0 && windows.filter(is_common).count() * 2 >= count
    }
}

fn window_hash(window: &[Token]) -> u64 {
    window
        .iter()
        .fold(0, |hash: u64, token| (hash ^ token.hash).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31))
}

impl fmt::Debug for Boilerplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Boilerplate")
            .field("hosts", &self.hosts)
            .field("windows", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BANNER: &str = "we and our many partners use cookies to make this site better for you";

    #[test]
    fn what_enough_hosts_have_is_boilerplate() {
        let mut boilerplate = Boilerplate::new(3, 1000);
        let page = Document::new(BANNER);
        for (host, is_common) in [("a", false), ("b", false), ("b", false), ("c", true)] {
            boilerplate.observe(host, &page);
            assert_eq!(boilerplate.is_common(&page.tokens), is_common, "{host}");
        }
        assert!(!boilerplate.is_common(&Document::new("a text that nobody else has at all").tokens));
    }

    #[test]
    fn memory_is_bounded_and_what_many_have_is_kept() {
        let mut boilerplate = Boilerplate::new(2, 40);
        for host in 0..50 {
            let own: String = (0..12).map(|word| format!("w{host}x{word} ")).collect();
            boilerplate.observe(&format!("h{host}"), &Document::new(&format!("{BANNER}. {own}")));
            assert!(boilerplate.len() <= 40);
        }
        assert!(boilerplate.is_common(&Document::new(BANNER).tokens));
    }
}
