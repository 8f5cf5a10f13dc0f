//! SQL engines find with the queries what the join finds.

use std::fs;
use std::path::Path;
use std::process::Command;

use huntsman_bulk::{Dialect, sql};

use crate::made::{join, made, pairs, table};

/// The environment of `./setup.sh` with the engines.
const ENGINES: &str = "engines-3";

/// Runs the three statements of each folder with an engine of Python on the file of CSV there, and writes their rows as CSV.
const RUN: &str = r#"
import csv, sys
engine, *folders = sys.argv[1:]
types = {"id": str, "lang": str, "hi": int, "lo": int}

def spark():
    from pyspark.sql import SparkSession
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = session.config("spark.sql.shuffle.partitions", "4").config("spark.log.level", "ERROR").getOrCreate()
    def load(data):
        rows = session.read.csv(data, header=True, schema="id string, lang string, hi bigint, lo bigint")
        rows.createOrReplaceTempView("docs")
        return lambda s: [tuple(row) for row in session.sql(s).collect()]
    return load

def googlesql():
    from zetasql.core.wasm_client import WasmClient
    from zetasql.wasi import get_wasm_path
    from zetasql.wasi._pb2.zetasql.local_service import local_service_pb2 as service
    from zetasql.wasi._pb2.zetasql.proto import options_pb2
    from zetasql.wasi._pb2.zetasql.public import type_pb2
    client = WasmClient(wasm_path=get_wasm_path())
    call = lambda name, asked, answer: client.call_grpc_func("ZetaSqlLocalService_" + name, asked, answer)
    everything = service.LanguageOptionsRequest(maximum_features=True)
    language = call("GetLanguageOptions", everything, options_pb2.LanguageOptionsProto)
    def load(data):
        rows = list(csv.DictReader(open(data)))
        def run(s):
            found = []
            # It holds intermediate rows in at most 128 MiB, and no statement compares rows of two languages.
            for lang in sorted({row["lang"] for row in rows}):
                asked = service.EvaluateQueryRequest(sql=s)
                asked.options.language_options.CopyFrom(language)
                asked.simple_catalog.builtin_function_options.language_options.CopyFrom(language)
                table = asked.simple_catalog.table.add(name="docs")
                for name, kind in types.items():
                    kind = type_pb2.TYPE_STRING if kind is str else type_pb2.TYPE_INT64
                    table.column.add(name=name).type.type_kind = kind
                content = asked.table_content["docs"].table_data
                for row in (row for row in rows if row["lang"] == lang):
                    cells = content.row.add().cell
                    for name, kind in types.items():
                        cells.add(**{"string_value" if kind is str else "int64_value": kind(row[name])})
                answer = call("EvaluateQuery", asked, service.EvaluateQueryResponse).content.table_data
                value = lambda cell: getattr(cell, cell.WhichOneof("value"))
                found += [tuple(value(cell) for cell in row.cell) for row in answer.row]
            return found
        return run
    return load

def datafusion():
    import datafusion, pyarrow as pa, pyarrow.csv as pcsv
    columns = {name: pa.string() if kind is str else pa.int64() for name, kind in types.items()}
    def hamming(a, b, c, d):
        count = lambda x, y: bin((x ^ y) & (2**64 - 1)).count("1")
        lists = [v.to_pylist() for v in (a, b, c, d)]
        return pa.array([count(a, c) + count(b, d) for a, b, c, d in zip(*lists)], pa.int64())
    def load(data):
        rows = pcsv.read_csv(data, convert_options=pcsv.ConvertOptions(column_types=columns))
        ctx = datafusion.SessionContext()
        ctx.register_record_batches("docs", [rows.to_batches()])
        ctx.register_udf(datafusion.udf(hamming, [pa.int64()] * 4, pa.int64(), "immutable", "hamming"))
        return lambda s: [tuple(row.values()) for batch in ctx.sql(s).collect() for row in batch.to_pylist()]
    return load

def duckdb():
    import duckdb
    def load(data):
        db = duckdb.connect()
        db.execute(f"CREATE TABLE text AS SELECT * FROM read_csv('{data}', all_varchar = true)")
        db.execute("CREATE TABLE docs AS SELECT id, lang, hi::BIGINT AS hi, lo::BIGINT AS lo FROM text")
        db.execute("CREATE MACRO bits_of(x, width) AS bit_count(x)")
        def run(s):
            if engine != "duckdb":
                # A parser of the dialect reads the statement, and writes it in the words of DuckDB.
                import sqlglot
                s = sqlglot.parse_one(s, read=engine).sql(dialect="duckdb")
                # It leaves the second argument that Trino wants.
                s = s.replace("BIT_COUNT(", "bits_of(") if "64)" in s else s
            return db.execute(s).fetchall()
        return run
    return load

engines = {"spark itself": spark, "googlesql": googlesql, "datafusion": datafusion}
load = engines.get(engine, duckdb)()
for folder in folders:
    run = load(f"{folder}/in.csv")
    statements = [s for s in open(f"{folder}/query.sql").read().split(";\n") if s.strip()]
    assert len(statements) == 3, statements
    for number, statement in enumerate(statements):
        with open(f"{folder}/{number}.csv", "w", newline="") as to:
            writer = csv.writer(to)
            writer.writerow(["any"] * 6)
            writer.writerows(list(row) + [""] * (6 - len(row)) for row in run(statement))
"#;

/// Fingerprints of a test.
struct Case {
    k: u32,
    documents: usize,
    /// Number of documents that share a key.
    heavy: usize,
}

/// The larger distances have 36 keys, and as many rows for each document.
const CASES: [Case; 4] = [
    Case { k: 0, documents: 20_000, heavy: 0 },
    Case { k: 3, documents: 20_000, heavy: 6_000 },
    Case { k: 5, documents: 7_000, heavy: 0 },
    Case { k: 7, documents: 7_000, heavy: 6_000 },
];

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
    found_by(&python(ENGINES, "duckdb, datafusion, pyarrow, sqlglot"), dialect.name(), dialect, &CASES);
}

/// Runs the queries of a dialect with an engine, or, for one that is no engine of Python, in the words of DuckDB.
fn found_by(python: &str, engine: &str, dialect: Dialect, cases: &[Case]) {
    let folder = tempfile::tempdir().unwrap();
    let folders: Vec<_> = cases.iter().map(|case| folder.path().join(case.k.to_string())).collect();
    let mut reports = Vec::new();
    for (case, folder) in cases.iter().zip(&folders) {
        let made = made(77, case.documents, case.k, case.heavy);
        fs::create_dir(folder).unwrap();
        let lines = folder.join("in.jsonl");
        made.lines(&lines);
        let halves = |hash: u128| ((hash >> 64) as u64 as i64, hash as u64 as i64);
        let rows = made.rows.iter().map(|(id, lang, hash)| {
            let (hi, lo) = halves(*hash);
            format!("{id},{lang},{hi},{lo}\n")
        });
        fs::write(folder.join("in.csv"), format!("id,lang,hi,lo\n{}", rows.collect::<String>())).unwrap();
        fs::write(folder.join("query.sql"), sql(dialect, case.k, "docs", "id")).unwrap();
        reports.push(join(&lines, &folder.join("joined"), case.k).run(&|_| ()).unwrap());
    }
    let run = Command::new(python).args(["-c", RUN, engine]).args(&folders).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    for ((case, folder), report) in cases.iter().zip(&folders).zip(reports) {
        let rows = |number: usize| {
            let mut reader = csv::Reader::from_path(folder.join(format!("{number}.csv"))).unwrap();
            let mut rows: Vec<Vec<String>> =
                reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
            rows.sort();
            rows
        };
        let (joined, k) = (folder.join("joined"), case.k);
        let mut same: Vec<_> =
            rows(0).iter().map(|row| vec![row[1].clone(), row[2].clone(), row[0].clone()]).collect();
        same.sort();
        assert_eq!(same, table(joined.join("same")), "{engine}, k = {k}");
        let of_engine: Vec<_> = rows(1)
            .iter()
            .map(|row| (row[0].clone(), row[1].clone(), row[2].clone(), row[3].parse::<u32>().unwrap()))
            .collect();
        assert_eq!(of_engine, pairs(&joined), "{engine}, k = {k}");
        assert_eq!(rows(2).len() as u64, report.heavy_values, "{engine}, k = {k}");
        assert!(case.heavy == 0 || report.heavy_values > 0);
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
fn the_query_for_bigquery_finds_the_same_pairs_in_the_reference_implementation_of_its_language() {
    // It is made to be right, not fast, so it gets less than the others.
    let cases = [Case { k: 0, documents: 2_000, heavy: 0 }, Case { k: 3, documents: 10_000, heavy: 5_000 }];
    found_by(&python(ENGINES, "zetasql"), "googlesql", Dialect::BigQuery, &cases);
}

#[test]
#[ignore = "Spark takes 456 MB: ./setup.sh --spark installs it, and ./test.sh --spark runs this"]
fn spark_itself_finds_the_same_pairs() {
    found_by(&python("spark-4.3.0", "pyspark"), "spark itself", Dialect::Spark, &CASES);
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
