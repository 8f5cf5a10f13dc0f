//! The head of a record: its version and its fields.

/// The version line and the fields of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordHead {
    version: String,
    fields: Vec<(String, String)>,
}

impl RecordHead {
    pub(crate) fn new(version: String) -> Self {
        Self { version, fields: Vec::new() }
    }

    /// Adds a line of the head; returns whether it is one.
    pub(crate) fn add_line(&mut self, line: &[u8]) -> bool {
        let line = String::from_utf8_lossy(line);
        if line.starts_with([' ', '\t']) {
            // A line that goes on, which older versions allow.
            let Some((_, value)) = self.fields.last_mut() else { return false };
            value.push(' ');
            value.push_str(line.trim());
            return true;
        }
        match line.split_once(':') {
            Some((name, value)) if !name.trim().is_empty() => {
                self.fields.push((name.trim().to_owned(), value.trim().to_owned()));
                true
            }
            _ => false,
        }
    }

    /// The version, such as `1.1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// All fields in their order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The first field of a name, in whatever case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields().find(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All fields of a name; `WARC-Concurrent-To` and `WARC-Protocol` may be repeated.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields().filter(move |(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The type of the record, such as `response`; empty if it has none.
    pub fn kind(&self) -> &str {
        self.get("WARC-Type").unwrap_or_default()
    }

    /// The id of the record with its angle brackets.
    pub fn id(&self) -> Option<&str> {
        self.get("WARC-Record-ID")
    }

    /// The date, as written.
    pub fn date(&self) -> Option<&str> {
        self.get("WARC-Date")
    }

    /// The URL, without the angle brackets that some programs of version 1.0 wrote.
    pub fn target(&self) -> Option<&str> {
        let target = self.get("WARC-Target-URI")?;
        Some(target.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')).unwrap_or(target))
    }

    /// The length of the block in bytes, if it is told.
    pub fn content_length(&self) -> Option<u64> {
        let value = self.get("Content-Length")?;
        value.bytes().all(|b| b.is_ascii_digit()).then(|| value.parse().ok())?
    }
}
