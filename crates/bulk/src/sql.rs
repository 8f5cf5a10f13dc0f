//! The join as queries of SQL engines, all of one template.

use std::fmt::Write;
use std::str::FromStr;

use crate::compare::HEAVY;
use crate::keys;
use crate::row::halves;

/// A dialect of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Spark SQL, from 3.0.
    Spark,
    /// Trino.
    Trino,
    /// Amazon Athena, whose engine is Trino.
    Athena,
    /// Google BigQuery.
    BigQuery,
    /// DuckDB.
    DuckDb,
    /// Apache DataFusion; it needs a function `hamming(hi, lo, hi, lo)`, which the caller registers.
    DataFusion,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 6] =
        [Self::Spark, Self::Trino, Self::Athena, Self::BigQuery, Self::DuckDb, Self::DataFusion];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spark => "spark",
            Self::Trino => "trino",
            Self::Athena => "athena",
            Self::BigQuery => "bigquery",
            Self::DuckDb => "duckdb",
            Self::DataFusion => "datafusion",
        }
    }

    fn integer(self) -> &'static str {
        if self == Self::BigQuery { "INT64" } else { "BIGINT" }
    }

    fn and(self, column: &str, mask: &str) -> String {
        match self {
            Self::Trino | Self::Athena => format!("bitwise_and({column}, {mask})"),
            _ => format!("({column} & {mask})"),
        }
    }

    /// The number of bits in which the rows `x` and `y` differ.
    fn distance(self) -> String {
        let half = |half: &str| match self {
            Self::DuckDb => format!("bit_count(xor(x.{half}, y.{half}))"),
            Self::Trino | Self::Athena => format!("bit_count(bitwise_xor(x.{half}, y.{half}), 64)"),
            Self::BigQuery => format!("BIT_COUNT(x.{half} ^ y.{half})"),
            Self::Spark | Self::DataFusion => format!("bit_count(x.{half} ^ y.{half})"),
        };
        match self {
            Self::DataFusion => "hamming(x.hi, x.lo, y.hi, y.lo)".to_owned(),
            _ => format!("{} + {}", half("hi"), half("lo")),
        }
    }

    /// A number of 64 bits. The least one has no literal in most engines.
    fn number(self, number: i64) -> String {
        let literal = match number {
            i64::MIN => format!("{} - 1", i64::MIN + 1),
            other => other.to_string(),
        };
        format!("CAST({literal} AS {})", self.integer())
    }
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|dialect| dialect.name() == name);
        found.ok_or_else(|| "use spark, trino, athena, bigquery, duckdb or datafusion".to_owned())
    }
}

/// Three statements for a table with the columns of an export, separated by `;`, each after a comment line that names it: `fold` gives the
/// rows whose fingerprint an earlier id has, `pairs` all pairs within k bits, and `heavy values` the values of keys that more than 4,096
/// rows share. `table` and `id` are put into the text as they are.
///
/// The table needs `lang`, `hi`, `lo` and the column of ids, whose order must be binary; `hi` and `lo` have 64 bits with a sign. No shift
/// occurs, because those of negative numbers differ between engines.
pub fn sql(dialect: Dialect, k: u32, table: &str, id: &str) -> String {
    let first = format!("MIN({id}) OVER (PARTITION BY lang, hi, lo)");
    format!(
        "-- fold: rows whose fingerprint an earlier id has, and the first of these ids\n\
         SELECT lang, id, first_id AS first\n\
         FROM (SELECT lang, {id} AS id, {first} AS first_id FROM {table}) t\n\
         WHERE id <> first_id;\n\n\
         -- pairs: all pairs of first ids within {k} bits\n{};\n\n\
         -- heavy values: values of keys that more than {HEAVY} fingerprints share, the largest first\n{};\n",
        pairs(dialect, k, table, id),
        heavy_values(dialect, k, table, id),
    )
}

/// Masks as a list of rows: `k` is a key, and `p` a part of the bits outside of it.
fn masks(dialect: Dialect, rows: &[(usize, usize, u128)]) -> String {
    let row = |(key, part, mask): &(usize, usize, u128)| {
        let [hi, lo] = halves(*mask).map(|half| dialect.number(half));
        // Every branch has its names, which some engines want.
        format!("SELECT {key} AS k, {part} AS p, {hi} AS m1, {lo} AS m2")
    };
    rows.iter().map(row).collect::<Vec<_>>().join("\n  UNION ALL ")
}

/// The tables that both queries begin with: first rows, and each of them under each key.
fn keyed(dialect: Dialect, k: u32, table: &str, id: &str) -> String {
    let keys: Vec<_> = keys::keys(k).into_iter().enumerate().map(|(key, mask)| (key, 0, mask)).collect();
    let [v1, v2] = [dialect.and("f.hi", "m.m1"), dialect.and("f.lo", "m.m2")];
    format!(
        "WITH f AS (\n  SELECT lang, MIN({id}) AS id, hi, lo FROM {table} GROUP BY lang, hi, lo\n),\n\
         band AS (\n  {}\n),\n\
         keyed AS (\n  SELECT f.lang, f.id, f.hi, f.lo, m.k, {v1} AS v1, {v2} AS v2\n  FROM f CROSS JOIN band m\n)",
        masks(dialect, &keys),
    )
}

fn pairs(dialect: Dialect, k: u32, table: &str, id: &str) -> String {
    if k == 0 {
        // Fingerprints within 0 bits are equal, and folded.
        return format!("SELECT lang, {id} AS a, {id} AS b, 0 AS distance FROM {table} WHERE 1 = 0");
    }
    let mut parts = Vec::new();
    for (key, mask) in keys::keys(k).into_iter().enumerate() {
        parts.extend(keys::parts(mask, k).into_iter().enumerate().map(|(part, mask)| (key, part + 1, mask)));
    }
    let [w1, w2] = [dialect.and("c.hi", "m.m1"), dialect.and("c.lo", "m.m2")];
    let zero = dialect.number(0);
    let mut query = keyed(dialect, k, table, id);
    let _ = write!(
        query,
        ",\ncounted AS (\n  SELECT lang, id, hi, lo, k, v1, v2, COUNT(*) OVER (PARTITION BY lang, k, v1, v2) AS n FROM keyed\n),\n\
         part AS (\n  {}\n),\n\
         s AS (\n  SELECT lang, id, hi, lo, k, v1, v2, 0 AS p, {zero} AS w1, {zero} AS w2 FROM counted WHERE n BETWEEN 2 AND {HEAVY}\n  \
         UNION ALL\n  SELECT c.lang AS lang, c.id AS id, c.hi AS hi, c.lo AS lo, c.k AS k, c.v1 AS v1, c.v2 AS v2, m.p AS p, {w1} AS w1, {w2} AS w2\n  \
         FROM counted c JOIN part m ON c.k = m.k WHERE c.n > {HEAVY}\n),\n\
         candidate AS (\n  SELECT x.lang AS lang, x.id AS a, y.id AS b, {} AS distance\n  \
         FROM s x JOIN s y ON x.lang = y.lang AND x.k = y.k AND x.v1 = y.v1 AND x.v2 = y.v2\n    \
         AND x.p = y.p AND x.w1 = y.w1 AND x.w2 = y.w2 AND x.id < y.id\n)\n\
         SELECT DISTINCT lang, a, b, distance FROM candidate WHERE distance <= {k}",
        masks(dialect, &parts),
        dialect.distance(),
    );
    query
}

fn heavy_values(dialect: Dialect, k: u32, table: &str, id: &str) -> String {
    if k == 0 {
        return format!(
            "SELECT lang, 0 AS k, hi AS v1, lo AS v2, 0 AS n, {id} AS id FROM {table} WHERE 1 = 0"
        );
    }
    format!(
        "{}\nSELECT lang, k, v1, v2, COUNT(*) AS n, MIN(id) AS id\nFROM keyed GROUP BY lang, k, v1, v2\n\
         HAVING COUNT(*) > {HEAVY} ORDER BY n DESC",
        keyed(dialect, k, table, id),
    )
}
