//! Finds the entries of an XML document in its text, piece by piece: names and nesting, without a tree.

use quick_xml::errors::{Error as XmlError, SyntaxError};
use quick_xml::events::{BytesStart, Event};
use xxhash_rust::xxh3::xxh3_64;

use super::FeedReport;
use crate::lenient_xml;

/// Elements that nest deeper are read, but entries among them are not found.
const MAX_DEPTH: usize = 1_000;
/// Number of damaged places after which the rest is left out.
const MAX_DAMAGES: u64 = 10_000;
/// Greatest number of declared namespaces in force at one place, and greatest length of their URIs. Each entry gets those that it uses, so
/// these bound by how much an entry can grow.
const MAX_DECLARED: usize = 64;
const MAX_URI: usize = 200;
/// Greatest number of declarations of an entry itself that are looked at.
const MAX_OWN: usize = 1_000;
/// Truncated markup of other kinds than an open tag, comment or section is shorter than this.
const SHORT: usize = 16;

/// An entry as it was found.
pub(super) struct Found {
    /// Its markup, with the namespaces that are declared above it.
    pub(super) markup: String,
    /// The line where it begins.
    pub(super) line: u64,
}

/// The elements that are entries.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    /// Those with this name, as it is written.
    Written(String),
    /// Those with this name in this namespace.
    Within { uri: String, local: String },
}

/// A namespace that an open element declares, as it is written.
#[derive(Clone, PartialEq)]
pub(super) struct Declared {
    /// The number of open elements above it.
    level: usize,
    /// Empty for the default namespace.
    pub(super) prefix: String,
    pub(super) uri: String,
}

/// An entry whose end was not found yet.
struct OpenEntry {
    level: usize,
    line: u64,
    /// Its markup up to this window.
    markup: String,
    /// Where its markup goes on in the window.
    from: usize,
    /// Length of the `<` and the name at the front of its markup.
    head: usize,
    /// The attributes of it that declare namespaces.
    own: Vec<String>,
}

/// The state of a document that is being read.
pub(super) struct Scan {
    wanted: Wanted,
    max_entry: usize,
    /// Hashes of the names of the open elements.
    open: Vec<u64>,
    /// Number of open elements beyond the limit.
    deeper: u64,
    declared: Vec<Declared>,
    entry: Option<OpenEntry>,
    /// Number of lines before `counted_to` in the window.
    line: u64,
    counted_to: usize,
    /// Up to this size the window may grow for markup that does not end in it.
    pub(super) most: usize,
    has_element: bool,
    damages: u64,
    pub(super) is_done: bool,
}

impl Scan {
    pub(super) fn new(wanted: Wanted, max_entry: usize) -> Self {
        Self {
            wanted,
            max_entry,
            open: Vec::new(),
            deeper: 0,
            declared: Vec::new(),
            entry: None,
            line: 1,
            counted_to: 0,
            most: max_entry,
            has_element: false,
            damages: 0,
            is_done: false,
        }
    }

    /// The namespaces that are declared above an entry that is found now.
    pub(super) fn declared(&self) -> &[Declared] {
        &self.declared
    }

    pub(super) fn has_element(&self) -> bool {
        self.has_element
    }

    /// Reads the complete parts of a piece of text. Returns the number of bytes read; the caller must put the rest at the front of the next
    /// piece, which is larger if nothing was read.
    pub(super) fn read(
        &mut self,
        window: &str,
        is_last: bool,
        found: &mut impl FnMut(&Self, Found, &mut FeedReport),
        report: &mut FeedReport,
    ) -> usize {
        self.counted_to = 0;
        let used = self.events(window, is_last, found, report);
        self.count_lines(window, used);
        if let Some(entry) = &mut self.entry {
            entry.markup.push_str(&window[entry.from.min(used)..used]);
            entry.from = 0;
            if entry.markup.len() > self.max_entry {
                report.problem(entry.line, || {
                    format!(
                        "an entry that begins here has more than {} bytes: it is left out",
                        self.max_entry
                    )
                });
                // Entries may be inside, if only its end is missing.
                self.entry = None;
            }
        }
        used
    }

    fn events(
        &mut self,
        window: &str,
        is_last: bool,
        found: &mut impl FnMut(&Self, Found, &mut FeedReport),
        report: &mut FeedReport,
    ) -> usize {
        let mut reader = lenient_xml::reader(window);
        loop {
            let before = window.len() - reader.get_ref().len();
            let event = reader.read_event();
            let after = window.len() - reader.get_ref().len();
            match event {
                Ok(Event::Eof) => return window.len(),
                Ok(Event::Start(start)) => self.start(&start, window, before, report),
                Ok(Event::Empty(start)) => self.empty(&start, window, before..after, found, report),
                Ok(Event::End(end)) => {
                    self.end(end.name().into_inner(), window, before..after, found, report);
                }
                Ok(_) => {}
                Err(cause) => {
                    let is_open = matches!(&cause, XmlError::Syntax(kind) if !matches!(kind, SyntaxError::InvalidBangMarkup));
                    let may_go_on = is_open || window.len() - before < SHORT;
                    // A window of the full size may lack a part of its last character.
                    if !is_last && may_go_on && (before > 0 || window.len() + 4 <= self.most) {
                        return before;
                    }
                    if !is_last && before == 0 && is_open {
                        // So that markup of this kind costs no more than twice the text in all.
                        self.most /= 2;
                    }
                    let looked_at = window.len() - before;
                    self.damage(window, before, report, || {
                        format!("{cause} ({looked_at} bytes were looked at)")
                    });
                    if self.is_done {
                        return window.len();
                    }
                    return lenient_xml::behind_damage(window, before);
                }
            }
            if self.is_done {
                return window.len();
            }
        }
    }

    /// Counts a damaged place. After too many the rest is left out: behind each of them text may be looked at again.
    fn damage(&mut self, window: &str, at: usize, report: &mut FeedReport, what: impl FnOnce() -> String) {
        let line = self.line_at(window, at);
        report.problem(line, what);
        self.damages += 1;
        if self.damages >= MAX_DAMAGES {
            report.problem(line, || "too much is damaged: the rest is left out".to_owned());
            self.is_done = true;
        }
    }

    /// Handles the end of the document.
    pub(super) fn finish(&mut self, report: &mut FeedReport) {
        if let Some(entry) = self.entry.take() {
            report.problem(entry.line, || "the entry that begins here has no end: it is left out".to_owned());
        } else if !self.open.is_empty() && !self.is_done {
            let line = self.line;
            report.problem(line, || "the feed ends before its last element does".to_owned());
        }
    }

    /// The line that is being read.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    fn start(&mut self, start: &BytesStart<'_>, window: &str, before: usize, report: &mut FeedReport) {
        self.has_element = true;
        if self.open.len() >= MAX_DEPTH {
            if self.deeper == 0 && self.entry.is_none() {
                let line = self.line_at(window, before);
                report.problem(line, || {
                    format!("elements nest deeper than {MAX_DEPTH}: entries among them are left out")
                });
            }
            self.deeper += 1;
            return;
        }
        let level = self.open.len();
        if self.entry.is_none() {
            if self.is_wanted(start) {
                self.entry = Some(self.begin(start, window, before));
            } else {
                self.declare(start, level, window, before, report);
            }
        }
        self.open.push(name_hash(start.name().into_inner()));
    }

    fn empty(
        &mut self,
        start: &BytesStart<'_>,
        window: &str,
        place: std::ops::Range<usize>,
        found: &mut impl FnMut(&Self, Found, &mut FeedReport),
        report: &mut FeedReport,
    ) {
        self.has_element = true;
        if self.entry.is_none() && self.open.len() < MAX_DEPTH && self.is_wanted(start) {
            let mut entry = self.begin(start, window, place.start);
            entry.markup.push_str(&window[place]);
            found(self, self.whole(entry), report);
        }
    }

    fn end(
        &mut self,
        name: &str,
        window: &str,
        place: std::ops::Range<usize>,
        found: &mut impl FnMut(&Self, Found, &mut FeedReport),
        report: &mut FeedReport,
    ) {
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        let hash = name_hash(name);
        let shown = || name.chars().take(40).flat_map(char::escape_debug).collect::<String>();
        let Some(level) = self.open.iter().rposition(|open| *open == hash) else {
            // Each of these looked at all open elements.
            self.damage(window, place.start, report, || format!("</{}> ends no element", shown()));
            return;
        };
        if level + 1 < self.open.len() {
            self.damage(window, place.start, report, || {
                format!("</{}> ends elements inside that have no end of their own", shown())
            });
        }
        self.open.truncate(level);
        let declared = self.declared.partition_point(|declared| declared.level < level);
        self.declared.truncate(declared);
        if self.entry.as_ref().is_some_and(|entry| level <= entry.level)
            && let Some(mut entry) = self.entry.take()
        {
            let to = if level == entry.level { place.end } else { place.start };
            entry.markup.push_str(&window[entry.from..to]);
            found(self, self.whole(entry), report);
        }
    }

    fn begin(&mut self, start: &BytesStart<'_>, window: &str, before: usize) -> OpenEntry {
        let own = attributes(start).map(|(key, _)| key).filter(|key| key.starts_with("xmlns"));
        OpenEntry {
            level: self.open.len(),
            line: self.line_at(window, before),
            markup: String::new(),
            from: before,
            head: 1 + start.name().into_inner().len(),
            own: own.take(MAX_OWN).map(str::to_owned).collect(),
        }
    }

    /// The entry with the namespaces that it uses.
    fn whole(&self, entry: OpenEntry) -> Found {
        let OpenEntry { mut markup, line, head, own, .. } = entry;
        let mut needed = String::new();
        let mut known: Vec<&str> = Vec::new();
        for Declared { prefix, uri, .. } in self.declared.iter().rev() {
            let key = if prefix.is_empty() { "xmlns".to_owned() } else { format!("xmlns:{prefix}") };
            let is_hidden = known.contains(&&**prefix) || own.contains(&key);
            known.push(prefix);
            if !is_hidden && (prefix.is_empty() || markup.contains(&format!("{prefix}:"))) {
                needed.extend([" ", &key, "=\"", &uri.replace('"', "&quot;"), "\""]);
            }
        }
        if !needed.is_empty() {
            markup.insert_str(head, &needed);
        }
        Found { markup, line }
    }

    /// Remembers the namespaces that an element above entries declares.
    fn declare(
        &mut self,
        start: &BytesStart<'_>,
        level: usize,
        window: &str,
        before: usize,
        report: &mut FeedReport,
    ) {
        for (key, uri) in attributes(start) {
            let prefix = match key.strip_prefix("xmlns") {
                Some("") => "",
                Some(rest) => match rest.strip_prefix(':') {
                    Some(prefix) => prefix,
                    None => continue,
                },
                None => continue,
            };
            if self.declared.len() >= MAX_DECLARED || uri.len() > MAX_URI || prefix.len() > MAX_URI {
                let line = self.line_at(window, before);
                report.problem(line, || {
                    format!(
                        "more than {MAX_DECLARED} namespaces, or one with more than {MAX_URI} bytes: the others are left out"
                    )
                });
                return;
            }
            self.declared.push(Declared { level, prefix: prefix.to_owned(), uri: uri.into_owned() });
        }
    }

    fn is_wanted(&self, start: &BytesStart<'_>) -> bool {
        let name = start.name();
        match &self.wanted {
            Wanted::Written(wanted) => name.into_inner() == wanted,
            Wanted::Within { uri, local } => {
                let own_name = name.into_inner();
                let (prefix, own_local) = own_name.split_once(':').unwrap_or(("", own_name));
                if own_local != local {
                    return false;
                }
                let key = if prefix.is_empty() { "xmlns".to_owned() } else { format!("xmlns:{prefix}") };
                let own = attributes(start).find(|(declared, _)| *declared == key);
                match own {
                    Some((_, declared)) => *declared == **uri,
                    None => {
                        let above = self.declared.iter().rfind(|declared| declared.prefix == prefix);
                        above.is_some_and(|declared| declared.uri == *uri)
                    }
                }
            }
        }
    }

    /// The line of a place in the window, which does not precede the last one that was asked for.
    fn line_at(&mut self, window: &str, at: usize) -> u64 {
        self.count_lines(window, at);
        self.line
    }

    fn count_lines(&mut self, window: &str, to: usize) {
        if to > self.counted_to {
            self.line += memchr::memchr_iter(b'\n', &window.as_bytes()[self.counted_to..to]).count() as u64;
            self.counted_to = to;
        }
    }
}

fn attributes<'a>(
    start: &'a BytesStart<'_>,
) -> impl Iterator<Item = (&'a str, std::borrow::Cow<'a, str>)> + use<'a> {
    let mut attributes = start.attributes();
    attributes.with_checks(false);
    attributes.flatten().map(|attribute| (attribute.key.into_inner(), attribute.value))
}

fn name_hash(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}
