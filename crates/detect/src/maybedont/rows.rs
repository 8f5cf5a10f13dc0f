//! The rows of the six tables: a claim, the number of times that it held, and the resulting probability.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A row with fewer observations gives probability 0, as in MaybeDont 0.1.1.
const MIN_OBSERVATIONS: u64 = 5;

/// Standard deviations from the middle of a normal distribution to the edge of its central 95 %.
const Z: f64 = 1.96;

/// The six tables of MaybeDont 0.1.1, each for one kind of claim about addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// The claim that all pages of a path are equal.
    Path,
    /// The claim that pages of a path are equal if they differ in one parameter only (changed, added or removed);
    /// counted over all paths and hosts.
    Param,
    /// The same for one path.
    PathParam,
    /// The claim of [`Param`](Self::Param), counted for one path and one fixed rest of the query.
    PathQueryParam,
    /// The claim that adding or removing exactly this parameter with this value changes nothing; counted over all paths
    /// and hosts.
    ParamValue,
    /// The same for one path.
    PathParamValue,
}

impl Table {
    /// All tables.
    pub const ALL: [Table; 6] = [
        Table::Path,
        Table::Param,
        Table::PathParam,
        Table::PathQueryParam,
        Table::ParamValue,
        Table::PathParamValue,
    ];

    /// The name, in snake case: `path_param`.
    pub fn name(self) -> &'static str {
        match self {
            Table::Path => "path",
            Table::Param => "param",
            Table::PathParam => "path_param",
            Table::PathQueryParam => "path_query_param",
            Table::ParamValue => "param_value",
            Table::PathParamValue => "path_param_value",
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The number of pairs of pages for which a claim held, and for which it did not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Counts {
    /// The number of pairs of equal pages.
    pub dup: u64,
    /// The number of pairs of different pages.
    pub nodup: u64,
}

impl Counts {
    /// The number of all pairs.
    pub fn total(self) -> u64 {
        self.dup.saturating_add(self.nodup)
    }

    /// A cautious estimate of the probability that the claim holds for one more pair.
    ///
    /// 0 with fewer than five pairs. Otherwise the lower end of the 95 % Wald interval around the share of equal pairs, with one added to
    /// both counts. It is not clipped: five different pairs give -0.116. All of this is as in MaybeDont 0.1.1.
    ///
    /// ```
    /// use huntsman_detect::maybedont::Counts;
    ///
    /// assert!(Counts { dup: 146, nodup: 0 }.probability() > 0.98);
    /// assert!(Counts { dup: 145, nodup: 0 }.probability() < 0.98);
    /// assert_eq!(Counts { dup: 4, nodup: 0 }.probability(), 0.0);
    /// ```
    pub fn probability(self) -> f64 {
        if self.total() < MIN_OBSERVATIONS {
            return 0.0;
        }
        let (a, b) = (self.dup as f64 + 1.0, self.nodup as f64 + 1.0);
        let n = a + b;
        let p = a / n;
        p - Z * (p * (b / n) / n).sqrt()
    }

    pub(super) fn add(&mut self, other: Counts) {
        self.dup = self.dup.saturating_add(other.dup);
        self.nodup = self.nodup.saturating_add(other.nodup);
    }
}

/// The claim of a row. The order is that of the test oracles: by table, then by its parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Claim {
    /// A claim of table [`Table::Path`].
    Path {
        /// Authority and path.
        path: String,
    },
    /// A claim of table [`Table::Param`].
    Param {
        /// Name of the parameter, decoded.
        param: String,
    },
    /// A claim of table [`Table::PathParam`].
    PathParam {
        /// Authority and path.
        path: String,
        /// Name of the parameter, decoded.
        param: String,
    },
    /// A claim of table [`Table::PathQueryParam`].
    PathQueryParam {
        /// Authority and path.
        path: String,
        /// The other parameters, sorted by name.
        rest: Vec<(String, String)>,
        /// Name of the parameter, decoded.
        param: String,
    },
    /// A claim of table [`Table::ParamValue`].
    ParamValue {
        /// Name of the parameter, decoded.
        param: String,
        /// Its value, decoded.
        value: String,
    },
    /// A claim of table [`Table::PathParamValue`].
    PathParamValue {
        /// Authority and path.
        path: String,
        /// Name of the parameter, decoded.
        param: String,
        /// Its value, decoded.
        value: String,
    },
}

impl Claim {
    /// The table that has rows with such a claim.
    pub fn table(&self) -> Table {
        match self {
            Claim::Path { .. } => Table::Path,
            Claim::Param { .. } => Table::Param,
            Claim::PathParam { .. } => Table::PathParam,
            Claim::PathQueryParam { .. } => Table::PathQueryParam,
            Claim::ParamValue { .. } => Table::ParamValue,
            Claim::PathParamValue { .. } => Table::PathParamValue,
        }
    }
}

/// The claim as text. Control characters are escaped and long parts are cut, because all parts come from the web.
impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Claim::Path { path } => write!(f, "all pages of {} are equal", Shown(path)),
            Claim::Param { param } => write!(f, "`{}` changes nothing on any path", Shown(param)),
            Claim::PathParam { path, param } => {
                write!(f, "`{}` changes nothing on {}", Shown(param), Shown(path))
            }
            Claim::PathQueryParam { path, rest, param } => {
                write!(f, "`{}` changes nothing on {}", Shown(param), Shown(path))?;
                const SHOWN: usize = 8;
                for (at, (name, value)) in rest.iter().take(SHOWN).enumerate() {
                    let joint = if at == 0 { " with " } else { "&" };
                    write!(f, "{joint}{}={}", Shown(name), Shown(value))?;
                }
                match rest.len() {
                    0 => f.write_str(" without other parameters"),
                    many if many > SHOWN => f.write_str("&.."),
                    _ => Ok(()),
                }
            }
            Claim::ParamValue { param, value } => {
                write!(f, "`{}={}` is as good as nothing on any path", Shown(param), Shown(value))
            }
            Claim::PathParamValue { path, param, value } => {
                write!(f, "`{}={}` is as good as nothing on {}", Shown(param), Shown(value), Shown(path))
            }
        }
    }
}

/// Text from the web in a form that is safe to print.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        const MAX_SHOWN: usize = 200;
        for character in self.0.chars().take(MAX_SHOWN) {
            match character {
                '\'' | '"' | '\\' => f.write_char(character)?,
                other => write!(f, "{}", other.escape_debug())?,
            }
        }
        if self.0.chars().nth(MAX_SHOWN).is_some() { f.write_str("..") } else { Ok(()) }
    }
}

/// A row of a table: a claim, and how often it held.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Row {
    /// The claim.
    pub claim: Claim,
    /// How often it held.
    pub counts: Counts,
}

/// The row as text: `` `sid` changes nothing on example.com/a: 312 same, 0 different ``.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} same, {} different", self.claim, self.counts.dup, self.counts.nodup)
    }
}

/// Sums over the rows of a table that have observations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// The number of rows.
    pub rows: usize,
    /// The sum of their counts.
    pub counts: Counts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_described_in_words() {
        let row = |claim| Row { claim, counts: Counts { dup: 312, nodup: 0 } }.to_string();
        let (path, param, value) = ("example.com/a".to_owned(), "sid".to_owned(), "1\n\u{1b}[2J".to_owned());
        assert_eq!(
            row(Claim::PathParam { path: path.clone(), param: param.clone() }),
            "`sid` changes nothing on example.com/a: 312 same, 0 different"
        );
        assert_eq!(
            row(Claim::PathQueryParam {
                path: path.clone(),
                rest: vec![("t".into(), "1".into()), ("u".into(), "2".into())],
                param: param.clone()
            }),
            "`sid` changes nothing on example.com/a with t=1&u=2: 312 same, 0 different"
        );
        assert_eq!(
            row(Claim::PathParamValue { path, param, value }),
            "`sid=1\\n\\u{1b}[2J` is as good as nothing on example.com/a: 312 same, 0 different"
        );
        let long = row(Claim::Path { path: "x".repeat(100_000) });
        assert!(long.len() < 300, "{}", long.len());
    }

    #[test]
    fn counts_at_their_limit_do_not_overflow() {
        let mut counts = Counts { dup: u64::MAX, nodup: u64::MAX };
        counts.add(counts);
        assert!(counts.probability() > 0.49);
    }
}
