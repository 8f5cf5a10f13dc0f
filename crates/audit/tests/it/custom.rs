//! Fields and searches of the user.

use std::fs;
use std::path::Path;

use huntsman_audit::{AuditBuilder, audit};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde_json::{Value, json};

const CUSTOM: &str = r#"
[fields]
price = { css = ".price::text", type = "number" }
tags = { xpath = "//li/text()", type = "list" }
sku = { source = "body", re = 'data-sku="(\d+)"' }
maker = { json = "$.maker", script = "script[type='application/ld+json']" }

[searches]
tracking = "gtag("
imprint = { lacks = "imprint", ignore_case = true, in = "text" }
"#;

/// An audit of three pages, a file that is no text, and a redirect.
fn of(dir: &Path, custom: &str) -> AuditBuilder {
    fs::write(dir.join("custom.toml"), custom).unwrap();
    let web = ScriptedDownloader::new()
        .respond(
            "https://a.example/",
            Reply::html(
                "<a href=/mill>Mill</a><a href=/free>Free</a><a href=/logo.png>Logo</a><a href=/old>Old</a><a href=/data.json>Data</a><p>Imprint",
            ),
        )
        .respond(
            "https://a.example/mill",
            Reply::html(
                "<b class=price> 7.50 </b><ul data-sku=\"77\"><li>oak<li>=stone</ul><script>gtag(1);gtag(2)</script>\
                 <script type=application/ld+json>{\"maker\": \"Ada\"}</script>",
            ),
        )
        .respond("https://a.example/free", Reply::html("<b class=price>on request</b>"))
        .respond("https://a.example/logo.png", Reply::status(200).header("content-type", "image/png").body("\u{89}PNG"))
        .respond("https://a.example/old", Reply::status(301).header("location", "/mill"))
        .respond("https://a.example/data.json", Reply::status(200).header("content-type", "application/json").body("{\"maker\": \"Ben\"}"));
    audit(["https://a.example/"])
        .downloader(web)
        .set("audit_custom", dir.join("custom.toml").to_str().unwrap())
}

/// The rows of a table, by the names of its columns.
fn rows(path: &Path) -> Vec<Value> {
    let mut lines = csv::Reader::from_path(path).unwrap();
    lines.deserialize::<serde_json::Map<String, Value>>().map(|row| Value::Object(row.unwrap())).collect()
}

#[tokio::test(start_paused = true)]
async fn fields_and_searches_are_columns_of_the_tables_and_part_of_the_report() {
    let dir = tempfile::tempdir().unwrap();
    let audit = of(dir.path(), CUSTOM).run().await.unwrap();
    audit.write(dir.path()).unwrap();
    let table = rows(&dir.path().join("csv/custom.csv"));
    let mill = table.iter().find(|row| row["url"] == "https://a.example/mill").unwrap();
    let columns: Vec<&str> = mill.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(columns, ["url", "price", "tags", "sku", "maker", "tracking", "imprint", "errors"]);
    assert_eq!(
        (&mill["price"], &mill["sku"], &mill["maker"], &mill["tracking"], &mill["imprint"]),
        (&json!(7.5), &json!(77), &json!("Ada"), &json!(2), &json!(true))
    );
    let of_url = |url: &str| table.iter().find(|row| row["url"] == url);
    assert_eq!(of_url("https://a.example/").unwrap()["imprint"], json!(false));
    let free = of_url("https://a.example/free").unwrap();
    assert!(
        free["price"] == json!("")
            && free["errors"].as_str().unwrap().starts_with("price: \"on request\" is not a number")
    );
    assert!(of_url("https://a.example/logo.png").is_none() && of_url("https://a.example/old").is_none());
    assert_eq!(of_url("https://a.example/data.json").unwrap()["sku"], json!(""));
    let pages = rows(&dir.path().join("csv/pages.csv"));
    assert!(
        pages.len() == 6
            && pages.iter().all(|page| page.get("custom.price").is_some() && page.get("custom").is_none())
    );
    let lines = fs::read_to_string(dir.path().join("pages.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mill = lines.iter().find(|line| line["url"] == "https://a.example/mill").unwrap();
    assert_eq!(
        (&mill["custom"]["fields"]["tags"], &mill["custom"]["searches"]["tracking"]),
        (&json!(["oak", "=stone"]), &json!(2))
    );
    let report = audit.html().unwrap();
    let index = report.split("<script id=\"index\" type=\"application/json\">").nth(1).unwrap();
    let index: Value = serde_json::from_str(index.split("</script>").next().unwrap()).unwrap();
    let told = |name: &str| {
        index["custom"]["names"].as_array().unwrap().iter().find(|told| told["name"] == name).unwrap().clone()
    };
    assert_eq!(index["custom"]["pages"], json!(4));
    assert_eq!(
        (&told("price")["pages"], &told("price")["errors"], &told("price")["query"]),
        (&json!(1), &json!(1), &json!("css \".price::text\""))
    );
    assert_eq!((&told("imprint")["pages"], &told("tracking")["pages"]), (&json!(3), &json!(1)));
    assert!(report.contains("href=\"#custom\""));
}

#[tokio::test(start_paused = true)]
async fn long_values_are_cut_and_that_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let cut = of(dir.path(), "[fields]\nall = { source = 'body' }").set("audit_custom_length", 10);
    let audit = cut.run().await.unwrap();
    let page = audit.site.get("https://a.example/free").unwrap();
    let custom = page.custom.as_ref().unwrap();
    assert_eq!(
        (&custom.fields["all"], &custom.errors),
        (&json!("<b class=p…"), &vec!["all: cut to 10 characters".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn a_file_with_an_error_ends_an_audit_before_the_first_request() {
    let dir = tempfile::tempdir().unwrap();
    for (text, said) in [
        ("[fields]\nprice = '.price['", "custom.toml, line 2: CSS selector"),
        ("[fields]\nurl = 'a'", "\"url\" is a column of each table of audits"),
        ("", "there is neither a field nor a search"),
    ] {
        let error = of(dir.path(), text).run().await.unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(said), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_audit_without_own_fields_has_neither_table_nor_view() {
    let dir = tempfile::tempdir().unwrap();
    let web = ScriptedDownloader::new().respond("https://a.example/", Reply::html("<p>text"));
    let audit = audit(["https://a.example/"]).downloader(web).run().await.unwrap();
    audit.write(dir.path()).unwrap();
    assert!(
        !dir.path().join("csv/custom.csv").exists() && !audit.html().unwrap().contains("href=\"#custom\"")
    );
    assert!(!fs::read_to_string(dir.path().join("csv/pages.csv")).unwrap().contains("custom"));
}
