//! What is known of a page so far.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use bytes::Bytes;

use crate::{ConsoleLine, SubRequest};

/// Lines of the console that are kept, and characters of each.
const LINES: usize = 100;
const LINE: usize = 1000;
/// Addresses of windows and of pages to go to that are kept.
const POPUPS: usize = 100;
/// Frames whose addresses are kept.
const FRAMES: usize = 1000;
/// Requests that are never asked, such as images, for each one that may be. With more the page ends.
const UNASKED: usize = 20;

/// What is known of a page so far.
pub(super) struct State {
    /// Address of the document, with its fragment.
    pub(super) url: String,
    pub(super) is_loaded: bool,
    /// The document of the page, as the network gave it.
    pub(super) document: Option<Document>,
    /// Why there is no document.
    pub(super) refused: Option<String>,
    /// Whether the first document is still on its way.
    pub(super) is_opening: bool,
    /// Whether the page may go to other addresses, because a step may have asked for that.
    pub(super) may_leave: bool,
    pub(super) requests: Vec<SubRequest>,
    /// Requests that may still be asked.
    pub(super) left: usize,
    /// Requests that were never asked, and may still come.
    pub(super) unasked_left: usize,
    pub(super) in_flight: usize,
    /// Since when no request is in flight, or something happened that may bring one.
    pub(super) idle_since: Instant,
    pub(super) bytes: u64,
    /// Whether a bound has cut something.
    pub(super) is_cut: bool,
    /// Whether it asked for so much that it is ended.
    pub(super) is_flood: bool,
    pub(super) crash: Option<String>,
    pub(super) frames: Frames,
    pub(super) console: Vec<ConsoleLine>,
    pub(super) popups: Vec<String>,
    pub(super) refused_direct: u32,
    /// Cookies of answers, by name and value.
    pub(super) given_cookies: Vec<(String, String)>,
    /// The cookies at the last request, by what makes each another one; `None` before the first.
    pub(super) cookies: Option<HashSet<(String, String)>>,
}

/// The document of a page, as the network gave it.
#[derive(Clone)]
pub(super) struct Document {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

impl State {
    pub(super) fn new(requests: usize) -> Self {
        Self {
            url: String::new(),
            is_loaded: false,
            document: None,
            refused: None,
            is_opening: true,
            may_leave: false,
            requests: Vec::new(),
            left: requests,
            unasked_left: requests.saturating_mul(UNASKED),
            in_flight: 0,
            idle_since: Instant::now(),
            bytes: 0,
            is_cut: false,
            is_flood: false,
            crash: None,
            frames: Frames::default(),
            console: Vec::new(),
            popups: Vec::new(),
            refused_direct: 0,
            given_cookies: Vec::new(),
            cookies: None,
        }
    }

    pub(super) fn new_document(&mut self, url: String) {
        // The empty page before the first document is none.
        if self.document.is_some() {
            self.url = url;
        }
        self.is_loaded = false;
    }

    pub(super) fn loaded(&mut self) {
        self.is_loaded = self.document.is_some();
        self.idle_since = Instant::now();
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_loaded && self.in_flight == 0
    }

    pub(super) fn note_popup(&mut self, url: String) {
        if self.popups.len() < POPUPS && !url.is_empty() && !self.popups.contains(&url) {
            self.popups.push(url);
        }
    }

    pub(super) fn note_line(&mut self, level: String, words: impl Iterator<Item = String>) {
        if self.console.len() < LINES {
            let text: String = words.collect::<Vec<_>>().join(" ").chars().take(LINE).collect();
            self.console.push(ConsoleLine { level, text });
        }
    }
}

/// Addresses of frames, and what they are in.
#[derive(Default)]
pub(super) struct Frames {
    frames: HashMap<String, Frame>,
}

#[derive(Default)]
struct Frame {
    parent: String,
    url: String,
}

impl Frames {
    pub(super) fn attach(&mut self, id: String, parent: String) {
        if self.frames.len() < FRAMES {
            self.frames.entry(id).or_default().parent = parent;
        }
    }

    pub(super) fn navigate(&mut self, id: String, url: String) {
        if self.frames.len() < FRAMES || self.frames.contains_key(&id) {
            self.frames.entry(id).or_default().url = url;
        }
    }

    pub(super) fn detach(&mut self, id: &str) {
        self.frames.remove(id);
    }

    /// The address of a frame.
    pub(super) fn url(&self, id: &str) -> Option<&str> {
        self.frames.get(id).map(|frame| frame.url.as_str()).filter(|url| !url.is_empty())
    }

    /// The address of what a frame is in.
    pub(super) fn url_around(&self, id: &str) -> Option<&str> {
        self.url(&self.frames.get(id)?.parent)
    }
}
