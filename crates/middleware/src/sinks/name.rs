//! File names with parameters: `items-%(name)s-%(batch_id)05d.jsonl`, as in Scrapy's feed addresses.

use huntsman_crawler::{Error, Result, Timestamp};

/// A file name that may contain parameters.
#[derive(Clone, Debug)]
pub(super) struct Name {
    template: String,
    params: Vec<(String, String)>,
}

impl Name {
    pub(super) fn new(template: String) -> Self {
        let time = safe(&seconds_of(Timestamp::wall()));
        Self { template, params: vec![("time".to_owned(), time)] }
    }

    /// Sets a parameter; characters with a meaning in paths are replaced.
    pub(super) fn set(&mut self, key: &str, value: &str) {
        self.params.retain(|(known, _)| known != key);
        self.params.push((key.to_owned(), safe(value)));
    }

    /// Sets a parameter that was not set before.
    pub(super) fn set_default(&mut self, key: &str, value: &str) {
        if !self.params.iter().any(|(known, _)| known == key) {
            self.set(key, value);
        }
    }

    pub(super) fn template(&self) -> &str {
        &self.template
    }

    /// Whether the name is the same for every crawl and batch, and known without any parameter.
    pub(super) fn is_plain(&self) -> bool {
        !self.template.contains("%(")
    }

    /// Whether each batch gets another name.
    pub(super) fn is_batched(&self) -> bool {
        self.template.contains("%(batch_id)") || self.template.contains("%(batch_time)")
    }

    /// Whether the names of batches are numbered: only then can the next number be found.
    pub(super) fn is_numbered(&self) -> bool {
        self.template.contains("%(batch_id)")
    }

    /// The name of a batch (from 1).
    pub(super) fn of_batch(&self, batch: u64, now: Timestamp) -> Result<String> {
        let mut name = String::with_capacity(self.template.len() + 16);
        let mut rest = self.template.as_str();
        while let Some(start) = rest.find("%(") {
            name.push_str(&rest[..start]);
            let (key, format) = rest[start + 2..]
                .split_once(')')
                .ok_or_else(|| self.wrong("a parameter has no closing bracket"))?;
            let end =
                format.find(['s', 'd']).ok_or_else(|| self.wrong("a parameter ends with neither s nor d"))?;
            let width = format[..end].trim_start_matches('0');
            let width: usize =
                if width.is_empty() { 0 } else { width.parse().map_err(|_| self.wrong("no width"))? };
            match key {
                "batch_id" => name.push_str(&format!("{batch:0width$}", width = width.min(20))),
                "batch_time" => name.push_str(&safe(&seconds_of(now))),
                _ => match self.params.iter().find(|(known, _)| known == key) {
                    Some((_, value)) => name.push_str(value),
                    None => {
                        let known: Vec<&str> = self.params.iter().map(|(known, _)| known.as_str()).collect();
                        let known = known.join(", ");
                        return Err(self.wrong(&format!(
                            "there is no parameter {}; known are batch_id, batch_time, {known}",
                            key.escape_debug()
                        )));
                    }
                },
            }
            rest = &format[end + 1..];
        }
        name.push_str(rest);
        Ok(name)
    }

    fn wrong(&self, what: &str) -> Error {
        Error::usage(format!("file name \"{}\": {what}", self.template.escape_debug()))
    }
}

/// `2026-11-21T09:30:00`, without the fraction.
fn seconds_of(now: Timestamp) -> String {
    now.to_rfc3339()[..19].to_owned()
}

/// Keeps letters, digits, dots, dashes and underscores; other characters could lead out of the folder.
fn safe(value: &str) -> String {
    let kept = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' };
    let safe: String = value.chars().take(100).map(kept).collect();
    if safe.chars().all(|c| c == '.') { "-".to_owned() } else { safe }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_filled_in() {
        let mut name = Name::new("out/%(name)s-%(batch_id)05d-%(batch_time)s.%(batch_id)d".to_owned());
        name.set("name", "../quotes");
        let made = name.of_batch(7, Timestamp(951_827_696_123_456)).unwrap();
        assert_eq!(made, "out/..-quotes-00007-2000-02-29T12-34-56.7");
        assert!(name.is_batched() && name.is_numbered() && !name.is_plain());
        assert!(Name::new("50%.json".to_owned()).is_plain());
    }

    #[test]
    fn wrong_parameters_are_named() {
        for (template, what) in [
            ("%(nme)s", "there is no parameter nme"),
            ("%(batch_id", "no closing bracket"),
            ("%(batch_id)", "neither s nor d"),
        ] {
            let error = Name::new(template.to_owned()).of_batch(1, Timestamp(0)).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}
