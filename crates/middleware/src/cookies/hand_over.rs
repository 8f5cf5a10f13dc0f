//! Cookies that go with their hosts to the next process, if the queue is shared.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use huntsman_crawler::{Component, HandOver, HostKey, HostNote, Request, Timestamp};

use super::{CookieJar, Cookies, jar_name};
use crate::origin;

/// Hosts whose cookies have changed; `None` unless the queue is shared.
#[derive(Debug, Default)]
pub(super) struct Changed(Mutex<Option<BTreeSet<ChangedHost>>>);

/// A slot, a host in it, and the name of the jar.
type ChangedHost = (HostKey, String, String);

impl Changed {
    fn lock(&self) -> MutexGuard<'_, Option<BTreeSet<ChangedHost>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the answer to a request has changed cookies.
    pub(super) fn note(&self, request: &Request) {
        if let Some(changed) = &mut *self.lock() {
            changed.insert((request.host(), origin::host(&request.url).to_owned(), jar_name(request)));
        }
    }
}

/// The cookies that a host gets go with it, those of each jar.
impl HandOver for Cookies {
    fn begin(&self) {
        *self.changed.lock() = Some(BTreeSet::new());
    }

    fn learnt(&self) -> Vec<HostNote> {
        let changed = self.changed.lock().as_mut().map(std::mem::take).unwrap_or_default();
        let note = |(slot, host, name): ChangedHost| {
            let mut own = CookieJar::new();
            self.jars.with(&name, |jar| {
                let is_sent = |domain: &str, host_only: bool| {
                    let rest = host.strip_suffix(domain);
                    rest == Some("") || !host_only && rest.is_some_and(|rest| rest.ends_with('.'))
                };
                for cookie in jar.iter().filter(|cookie| is_sent(&cookie.domain, cookie.host_only)) {
                    own.insert(cookie.clone(), Timestamp(0));
                }
            });
            let about = format!("{} {host} {name}", Self::NAME);
            HostNote { host: slot, about, value: own.to_json().into_bytes() }
        };
        changed.into_iter().map(note).collect()
    }

    fn take_over(&self, note: &HostNote) {
        let name = note.about.strip_prefix(Self::NAME).and_then(|rest| rest.strip_prefix(' '));
        let (Some((_, name)), Ok(text)) =
            (name.and_then(|rest| rest.split_once(' ')), std::str::from_utf8(&note.value))
        else {
            return;
        };
        if let Ok(own) = CookieJar::from_json(text) {
            self.jars.with(name, |jar| {
                for cookie in own.iter() {
                    jar.insert(cookie.clone(), Timestamp::wall());
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use huntsman_crawler::Settings;
    use url::Url;

    use super::*;

    fn cookies() -> Cookies {
        Cookies::from_settings(&Settings::default()).unwrap().unwrap()
    }

    #[test]
    fn the_cookies_of_a_host_go_with_it_to_another_process() {
        let (first, second) = (cookies(), cookies());
        let request = Request::parse("http://shop.example/").unwrap().meta("cookiejar", "user 1");
        first.changed.note(&request);
        assert!(first.learnt().is_empty(), "nobody takes anything over");
        first.begin();
        let now = Timestamp::wall();
        let store = |url: &str, cookie: &str| {
            let url = Url::parse(url).unwrap();
            first.jars.with("user 1", |jar| jar.store(&url, cookie, now));
        };
        store("http://shop.example/", "own=1");
        store("http://www.shop.example/", "of-all=2; Domain=shop.example");
        store("http://www.shop.example/", "elsewhere=3");
        first.changed.note(&request);
        let notes = first.learnt();
        assert_eq!((notes.len(), notes[0].host.as_str()), (1, "shop.example"));
        assert!(first.learnt().is_empty(), "it is told once");
        let damaged = HostNote { value: b"[{".to_vec(), ..notes[0].clone() };
        let of_another = HostNote { about: "robots_txt http://shop.example".to_owned(), ..notes[0].clone() };
        for note in [&damaged, &of_another, &notes[0]] {
            second.take_over(note);
        }
        let sent = second.jars.with("user 1", |jar| jar.header(&request.url, now));
        let mut sent: Vec<String> = sent.unwrap().split("; ").map(str::to_owned).collect();
        sent.sort_unstable();
        assert_eq!(sent, ["of-all=2", "own=1"]);
    }
}
