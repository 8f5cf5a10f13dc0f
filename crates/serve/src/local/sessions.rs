//! One-time codes of links, and the tokens that pages got for them. Both are in memory only, and few.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::access::is_same;

/// How long a link can be opened.
const LINK_TIME: Duration = Duration::from_secs(300);
/// Most links and most pages at once; the oldest one makes room for a new one.
const MOST: usize = 16;

/// The links and pages of a server; clones share them.
#[derive(Clone, Default)]
pub(super) struct Sessions(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    codes: VecDeque<(String, Instant)>,
    tokens: VecDeque<String>,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sessions")
    }
}

/// 256 random bits in hexadecimal digits, from a generator that is seeded by the system and fit for secrets.
pub(super) fn random_token() -> String {
    let halves: [u128; 2] = [rand::random(), rand::random()];
    halves.iter().map(|half| format!("{half:032x}")).collect()
}

impl Sessions {
    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A code for a new link.
    pub(super) fn new_code(&self) -> String {
        let code = random_token();
        self.with(|state| push(&mut state.codes, (code.clone(), Instant::now())));
        code
    }

    /// The token of a page for a code, which is used up by this.
    pub(super) fn exchange(&self, code: &str) -> Option<String> {
        self.with(|state| {
            state.codes.retain(|(_, made)| made.elapsed() < LINK_TIME);
            let at = state.codes.iter().position(|(known, _)| is_same(known.as_bytes(), code.as_bytes()))?;
            state.codes.remove(at);
            let token = random_token();
            push(&mut state.tokens, token.clone());
            Some(token)
        })
    }

    /// Whether a page has this token.
    pub(super) fn admits(&self, token: &str) -> bool {
        self.with(|state| state.tokens.iter().any(|known| is_same(known.as_bytes(), token.as_bytes())))
    }
}

fn push<T>(all: &mut VecDeque<T>, new: T) {
    if all.len() >= MOST {
        all.pop_front();
    }
    all.push_back(new);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_link_opens_the_page_once_and_in_time() {
        let sessions = Sessions::default();
        let code = sessions.new_code();
        assert!(!sessions.admits(&code), "a code is no token");
        assert!(sessions.exchange("0").is_none());
        let token = sessions.exchange(&code).unwrap();
        assert!(sessions.exchange(&code).is_none(), "it is used up");
        assert!(sessions.admits(&token) && !sessions.admits(&token[1..]) && !sessions.admits(""));

        let code = sessions.new_code();
        tokio::time::advance(LINK_TIME).await;
        assert!(sessions.exchange(&code).is_none(), "it is too old");
        assert!(sessions.admits(&token), "the page stays open");
    }

    #[tokio::test]
    async fn the_oldest_page_makes_room_for_the_newest() {
        let sessions = Sessions::default();
        let tokens: Vec<String> =
            (0..=MOST).map(|_| sessions.exchange(&sessions.new_code()).unwrap()).collect();
        assert!(
            !sessions.admits(&tokens[0]) && sessions.admits(&tokens[1]) && sessions.admits(&tokens[MOST])
        );
        assert!(tokens.iter().all(|token| token.len() == 64));
    }
}
