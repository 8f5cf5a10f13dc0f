//! SQL engines find with the queries what the join finds.

use std::fs;
use std::path::Path;
use std::process::Command;

use huntsman_bulk::{Dialect, sql};

use crate::made::{join, made, pairs, table};

/// Runs the three statements with an engine of Python on a file of CSV, and writes their rows as CSV.
const RUN: &str = r#"
import csv, sys
dialect, data, query, out = sys.argv[1:]
statements = [s for s in open(query).read().split(";\n") if s.strip()]
assert len(statements) == 3, statements
if dialect not in ("datafusion", "duckdb", "spark itself"):
    # A parser of the dialect reads the statements, and writes them in the words of DuckDB.
    import sqlglot
    statements = [sqlglot.parse_one(s, read=dialect).sql(dialect="duckdb") for s in statements]
    # It leaves the second argument that Trino wants.
    statements = [s.replace("BIT_COUNT(", "bits_of(") for s in statements] if "64)" in statements[1] else statements
if dialect == "spark itself":
    from pyspark.sql import SparkSession
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = spark.config("spark.sql.shuffle.partitions", "4").config("spark.log.level", "ERROR").getOrCreate()
    types = "id string, lang string, hi bigint, lo bigint"
    spark.read.csv(data, header=True, schema=types).createOrReplaceTempView("docs")
    run = lambda s: [tuple(row) for row in spark.sql(s).collect()]
elif dialect != "datafusion":
    import duckdb
    db = duckdb.connect()
    db.execute(f"CREATE TABLE docs AS SELECT * FROM read_csv('{data}', all_varchar = true)")
    db.execute("CREATE TABLE typed AS SELECT id, lang, hi::BIGINT AS hi, lo::BIGINT AS lo FROM docs")
    db.execute("DROP TABLE docs; ALTER TABLE typed RENAME TO docs")
    db.execute("CREATE MACRO bits_of(x, width) AS bit_count(x)")
    run = lambda s: db.execute(s).fetchall()
else:
    import datafusion, pyarrow as pa, pyarrow.compute as pc, pyarrow.csv as pcsv
    types = {"id": pa.string(), "lang": pa.string(), "hi": pa.int64(), "lo": pa.int64()}
    rows = pcsv.read_csv(data, convert_options=pcsv.ConvertOptions(column_types=types))
    ctx = datafusion.SessionContext()
    ctx.register_record_batches("docs", [rows.to_batches()])
    def hamming(a, b, c, d):
        count = lambda x, y: bin((x ^ y) & (2**64 - 1)).count("1")
        lists = [v.to_pylist() for v in (a, b, c, d)]
        return pa.array([count(a, c) + count(b, d) for a, b, c, d in zip(*lists)], pa.int64())
    ctx.register_udf(datafusion.udf(hamming, [pa.int64()] * 4, pa.int64(), "immutable", "hamming"))
    def run(s):
        batches = ctx.sql(s).collect()
        return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
for number, statement in enumerate(statements):
    with open(f"{out}/{number}.csv", "w", newline="") as to:
        writer = csv.writer(to)
        writer.writerow(["any"] * 6)
        writer.writerows(list(row) + [""] * (6 - len(row)) for row in run(statement))
"#;

/// A Python of `./setup.sh` that has these packages.
fn python(environment: &str, packages: &str) -> String {
    let tools = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "../../target".to_owned());
    let installed = format!("{tools}/test-tools/{environment}/bin/python");
    let python = if Path::new(&installed).exists() { installed } else { "python3".to_owned() };
    let check = Command::new(&python).args(["-c", &format!("import {packages}")]).output();
    let is_there = check.is_ok_and(|done| done.status.success());
    assert!(is_there, "this test needs the packages {packages} of Python: see ./setup.sh");
    python
}

fn the_same_is_found(dialect: Dialect) {
    found_by(&python("engines-2", "duckdb, datafusion, pyarrow, sqlglot"), dialect.name(), dialect);
}

/// Runs the queries of a dialect with an engine, or, for one that is no engine of Python, in the words of DuckDB.
fn found_by(python: &str, engine: &str, dialect: Dialect) {
    let folder = tempfile::tempdir().unwrap();
    for (k, heavy) in [(0, 0), (3, 6_000), (5, 0), (7, 6_000)] {
        // The larger distances have 36 keys, and as many rows for each document.
        let made = made(77, if k > 3 { 7_000 } else { 20_000 }, k, heavy);
        let (lines, data, query) =
            (folder.path().join("in.jsonl"), folder.path().join("in.csv"), folder.path().join("query.sql"));
        made.lines(&lines);
        let halves = |hash: u128| ((hash >> 64) as u64 as i64, hash as u64 as i64);
        let rows = made.rows.iter().map(|(id, lang, hash)| {
            let (hi, lo) = halves(*hash);
            format!("{id},{lang},{hi},{lo}\n")
        });
        fs::write(&data, format!("id,lang,hi,lo\n{}", rows.collect::<String>())).unwrap();
        fs::write(&query, sql(dialect, k, "docs", "id")).unwrap();
        let out = folder.path().join(format!("{k}"));
        let found = folder.path().join(format!("found-{k}"));
        fs::create_dir(&found).unwrap();
        let report = join(&lines, &out, k).run(&|_| ()).unwrap();
        let run =
            Command::new(python).args(["-c", RUN, engine]).args([&data, &query, &found]).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let rows = |number: usize| {
            let mut reader = csv::Reader::from_path(found.join(format!("{number}.csv"))).unwrap();
            let mut rows: Vec<Vec<String>> =
                reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
            rows.sort();
            rows
        };
        let mut same: Vec<_> =
            rows(0).iter().map(|row| vec![row[1].clone(), row[2].clone(), row[0].clone()]).collect();
        same.sort();
        assert_eq!(same, table(out.join("same")), "{engine}, k = {k}");
        let of_engine: Vec<_> = rows(1)
            .iter()
            .map(|row| (row[0].clone(), row[1].clone(), row[2].clone(), row[3].parse::<u32>().unwrap()))
            .collect();
        assert_eq!(of_engine, pairs(&out), "{engine}, k = {k}");
        assert_eq!(rows(2).len() as u64, report.heavy_values, "{engine}, k = {k}");
        assert!(heavy == 0 || report.heavy_values > 0);
    }
}

#[test]
fn duckdb_finds_the_same_pairs() {
    the_same_is_found(Dialect::DuckDb);
}

#[test]
fn datafusion_finds_the_same_pairs() {
    the_same_is_found(Dialect::DataFusion);
}

#[test]
fn the_query_for_trino_finds_the_same_pairs_in_the_words_of_duckdb() {
    the_same_is_found(Dialect::Trino);
}

#[test]
fn the_query_for_athena_finds_the_same_pairs_in_the_words_of_duckdb() {
    the_same_is_found(Dialect::Athena);
}

#[test]
fn the_query_for_bigquery_finds_the_same_pairs_in_the_words_of_duckdb() {
    the_same_is_found(Dialect::BigQuery);
}

#[test]
fn the_query_for_spark_finds_the_same_pairs_in_the_words_of_duckdb() {
    the_same_is_found(Dialect::Spark);
}

#[test]
#[ignore = "starts Spark four times, which takes minutes; ./setup.sh --spark installs it"]
fn spark_itself_finds_the_same_pairs() {
    found_by(&python("spark-4.3.0", "pyspark"), "spark itself", Dialect::Spark);
}

#[test]
fn the_files_of_the_docs_are_the_queries() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sql"));
    for dialect in Dialect::ALL {
        let path = folder.join(format!("{}.sql", dialect.name()));
        let (has, prints) = (fs::read_to_string(&path).unwrap(), sql(dialect, 3, "docs", "id"));
        let command = format!("huntsman dedup sql --dialect {} > docs/sql/{0}.sql", dialect.name());
        assert!(has == prints, "{} is not what the command prints: {command}", path.display());
    }
    assert_eq!(fs::read_dir(folder).unwrap().count(), Dialect::ALL.len());
}
