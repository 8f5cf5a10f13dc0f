//! Exports: reports and files for other programs.

use std::collections::BTreeMap;
use std::fs;

use huntsman_audit::{Audit, AuditBuilder, Export, Severity, SourceMap, audit};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde_json::Value;

use super::all_issues;

const HOSTILE: &str = "</script><script>alert(1)</script><!--";

/// An audit of three pages, a redirect and a broken link.
fn shop() -> AuditBuilder {
    let page = |title: &str, body: &str| {
        Reply::html(format!("<html lang=en><title>{title}</title><nav><a href=/gone>Prices</a></nav>{body}"))
    };
    let web = ScriptedDownloader::new()
        .respond(
            "https://a.example/",
            page("Start", "<a href=/b>B</a><a href=/moved>M</a><a href='/p?q=1&r=2'>P</a>"),
        )
        .respond(
            "https://a.example/b",
            page("&lt;/script>&lt;script>alert(1)&lt;/script>&lt;!--", "")
                .header("last-modified", "Tue, 15 Nov 1994 12:45:26 GMT"),
        )
        .respond("https://a.example/p?q=1&r=2", page("Third", "<meta name=robots content=noindex>"))
        .respond("https://a.example/moved", Reply::redirect(301, "/b"));
    audit(["https://a.example/"]).downloader(web)
}

async fn audited() -> Audit {
    shop()
        .options(|options| {
            options.fail_on(vec!["broken-internal-link".into()]).budget(vec!["pages >= 10".into()])
        })
        .run()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_exceeded_fails_the_audit_with_its_number() {
    let audit = audited().await;
    let failures: Vec<String> = audit.budget.iter().map(ToString::to_string).collect();
    assert_eq!(failures, ["budget pages >= 10: it is 3"]);
    assert!(audit.has_failed());
    let of = async |budget: &str| {
        let budget = vec![budget.to_owned()];
        shop().options(|options| options.budget(budget)).run().await
    };
    for holds in [
        "pages == 3",
        "status_4xx <= 1",
        "status_5xx < 1",
        "errors>0",
        "depth_max <= 2",
        "score >= 1",
        "page_kb_p95 <= 1",
    ] {
        let audit = of(holds).await.unwrap();
        assert!(!audit.has_failed(), "{holds}: {:?}", audit.budget);
    }
    for wrong in ["score_drop <= 1", "faults <= 3"] {
        assert!(of(wrong).await.is_err(), "{wrong}");
    }
    let set = shop().set("audit_budget", serde_json::json!({"errors": 0})).run().await.unwrap();
    assert_eq!(set.budget[0].condition, "errors <= 0");
}

#[tokio::test(start_paused = true)]
async fn sarif_has_a_rule_for_each_code_and_a_fingerprint_for_each_issue() {
    let audit = audited().await;
    let map = SourceMap::parse(&["https://a.example/=site/".to_owned()]).unwrap();
    let sarif: Value = serde_json::from_str(&audit.sarif(&map).unwrap()).unwrap();
    let run = &sarif["runs"][0];
    assert_eq!(
        (&sarif["version"], run["results"].as_array().unwrap().len()),
        (&"2.1.0".into(), audit.issues.len())
    );
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for (result, issue) in run["results"].as_array().unwrap().iter().zip(all_issues(&audit)) {
        let rule = &rules[result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(
            (&rule["id"], &result["partialFingerprints"]["huntsmanIssue/v1"]),
            (&result["ruleId"], &issue.id.as_str().into())
        );
    }
    let broken = run["results"]
        .as_array()
        .unwrap()
        .iter()
        .find(|result| result["ruleId"] == "broken-internal-link")
        .unwrap();
    let place = &broken["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
        (&"site/index.html".into(), &1.into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_case_of_junit_fails_only_where_the_gate_fails() {
    let junit = audited().await.junit();
    let failures: Vec<&str> = junit.lines().filter(|line| line.contains("<failure")).collect();
    assert_eq!(failures.len(), 2, "{failures:?}");
    assert!(
        failures.iter().any(|line| line.contains("name=\"broken-internal-link\" classname=\"status\"")),
        "{failures:?}"
    );
    assert!(failures.iter().any(|line| line.contains("name=\"pages &gt;= 10\"")), "{failures:?}");
}

/// The data of a block, or the index, of a report in one file.
fn data(html: &str, id: &str) -> Value {
    let tag = format!("<script id=\"{id}\" type=\"application/json\">");
    let begin = html.find(&tag).unwrap_or_else(|| panic!("there is no {id}")) + tag.len();
    serde_json::from_str(&html[begin..begin + html[begin..].find("</script>").unwrap()]).unwrap()
}

#[tokio::test(start_paused = true)]
async fn text_of_pages_is_no_markup_in_the_report_and_only_its_own_script_may_run() {
    let audit = audited().await;
    let html = audit.html().unwrap();
    assert!(!html.contains(HOSTILE));
    let scripts = html.matches("<script").count();
    assert_eq!(scripts, html.matches("type=\"application/json\"").count() + 1, "data, and one script");
    assert!(html.contains("default-src 'none'") && html.contains("script-src 'sha256-"));
    let pages = data(&html, "block-pages-0");
    let titles: Vec<&str> = pages.as_array().unwrap().iter().filter_map(|page| page[12].as_str()).collect();
    assert!(titles.contains(&HOSTILE), "{titles:?}");
}

#[tokio::test(start_paused = true)]
async fn the_report_has_every_page_and_issue_and_where_it_is() {
    let audit = audited().await;
    let html = audit.html().unwrap();
    let index = data(&html, "index");
    assert_eq!(index["pages"]["rows"], 5);
    let issues: u64 =
        index["codes"].as_array().unwrap().iter().map(|code| code["rows"]["rows"].as_u64().unwrap()).sum();
    assert_eq!(issues, audit.issues.len() as u64);
    let codes = index["codes"].as_array().unwrap();
    let broken = codes.iter().position(|code| code["code"] == "broken-internal-link").unwrap();
    assert_eq!(codes[broken]["title"], "Broken internal links");
    let places = data(&html, &format!("block-places-{broken}-0"));
    assert_eq!(
        (&places[0][0][1], &places[0][0][3], &places[0][0][4]),
        (&1.into(), &"Prices".into(), &"nav".into())
    );
    let urls = data(&html, "block-urls-0");
    assert_eq!(urls[0], serde_json::json!([0, "https://a.example/"]));
    let details = data(&html, "block-details-0");
    assert_eq!(details[1][0], 0, "the second page is reached from the start");
    assert_eq!(index["redirects"]["rows"], 1);
}

#[tokio::test(start_paused = true)]
async fn the_matrix_of_languages_has_translations_of_pages_and_of_sitemaps() {
    let link = |lang: &str, to: &str| {
        format!("<xhtml:link rel=\"alternate\" hreflang=\"{lang}\" href=\"https://a.example{to}\"/>")
    };
    let entry = |page: &str, links: String| format!("<url><loc>https://a.example{page}</loc>{links}</url>");
    let pair = || link("en", "/en") + &link("de", "/de");
    let sitemap = [
        entry("/en", pair()),
        entry("/de", pair()),
        entry("/fr", link("fr", "/fr") + &link("nl", "/gone")),
        // The page names the same.
        entry("/", link("en", "/")),
    ];
    let sitemap = format!(
        "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:xhtml=\"http://www.w3.org/1999/xhtml\">{}</urlset>",
        sitemap.concat()
    );
    let page = |lang: &str| Reply::html(format!("<html lang={lang}><title>{lang}</title><p>{lang}"));
    let front = "<html lang=en><link rel=alternate hreflang=en href=https://a.example/><a href=/en>E</a><a href=/de>D</a><a href=/fr>F</a>";
    let web = ScriptedDownloader::new()
        .respond("https://a.example/", Reply::html(front))
        .respond("https://a.example/robots.txt", Reply::text("Sitemap: https://a.example/map.xml"))
        .respond(
            "https://a.example/map.xml",
            Reply::status(200).header("content-type", "application/xml").body(sitemap),
        )
        .respond("https://a.example/en", page("en"))
        .respond("https://a.example/de", page("de"))
        .respond("https://a.example/fr", page("fr"));
    let html = audit(["https://a.example/"]).downloader(web).run().await.unwrap().html().unwrap();
    let index = data(&html, "index");
    let (matrix, urls) = (&index["languages"], data(&html, "block-urls-0"));
    assert_eq!(
        (&matrix["pages"], &matrix["languages"]),
        (&4.into(), &serde_json::json!(["de", "en", "fr", "nl"]))
    );
    let mut texts: Vec<String> = Vec::new();
    for url in urls.as_array().unwrap() {
        let common = url[0].as_u64().unwrap() as usize;
        let last = texts.last().map_or("", |last| &last[..common]);
        texts.push(format!("{last}{}", url[1].as_str().unwrap()));
    }
    let shown = |cell: &Value| match cell.as_array() {
        None => "-".to_owned(),
        Some(cell) => {
            let path = texts[cell[0].as_u64().unwrap() as usize].trim_start_matches("https://a.example");
            format!("{path} {}", cell[1].as_str().unwrap_or("well"))
        }
    };
    let rows = data(&html, "block-languages-0");
    let rows: Vec<String> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row.as_array().unwrap().iter().map(shown).collect::<Vec<_>>().join(", "))
        .collect();
    assert_eq!(rows, ["-, / well, -, -", "/de well, /en well, -, -", "-, -, /fr well, /gone non200"]);
}

#[tokio::test(start_paused = true)]
async fn a_report_with_more_pages_than_its_limit_has_the_worst_and_says_so() {
    let audit = shop().set("audit_report_pages", 1).run().await.unwrap();
    let mut weights: BTreeMap<String, u64> = BTreeMap::new();
    for issue in all_issues(&audit) {
        let weight = match issue.severity {
            Severity::Error => 100,
            Severity::Warning => 10,
            _ => 1,
        };
        *weights.entry(issue.url).or_default() += weight;
    }
    let pages = ["https://a.example/", "https://a.example/b", "https://a.example/p?q=1&r=2"];
    let worst = pages.into_iter().max_by_key(|url| weights.get(*url)).unwrap();
    let html = audit.html().unwrap();
    assert!(html.contains("<strong>The worst 1 of 5 pages are in this report.</strong>"));
    let index = data(&html, "index");
    assert_eq!((&index["pages"]["rows"], &index["all"]), (&1.into(), &5.into()));
    assert_eq!(data(&html, "block-urls-0")[0][1], worst);
    let all = shop().set("audit_report_pages", 5).run().await.unwrap().html().unwrap();
    assert!(!all.contains("pages are in this report"));
}

#[tokio::test(start_paused = true)]
async fn the_report_passes_the_rules_of_access_and_needs_no_script_for_its_first_views() {
    let html = audited().await.html().unwrap();
    let web = ScriptedDownloader::new().respond("https://report.example/", Reply::html(html.clone()));
    let judged = audit(["https://report.example/"]).downloader(web).run().await.unwrap();
    let issues = all_issues(&judged);
    let found: Vec<&str> =
        issues.iter().filter(|issue| issue.family == "access").map(|issue| issue.code.as_str()).collect();
    assert!(found.is_empty(), "{found:?}");
    for said in ["What to mend first", "Broken internal links", "https://a.example/gone", "Score by family"] {
        assert!(html.contains(said), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_report_has_the_title_and_logo_of_its_owner_and_its_overview_stands_alone() {
    let dir = tempfile::tempdir().unwrap();
    let logo = dir.path().join("logo.svg");
    fs::write(&logo, "<svg xmlns='http://www.w3.org/2000/svg'/>").unwrap();
    let mut audit = shop()
        .set("audit_title", "Shop <b>check</b>")
        .set("audit_logo", logo.to_str().unwrap())
        .run()
        .await
        .unwrap();
    audit.export(dir.path(), &[Export::Html, Export::Overview], &SourceMap::default()).unwrap();
    for name in ["report.html", "overview.html"] {
        let html = fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(html.contains("<title>Shop &lt;b&gt;check&lt;/b&gt;</title>"), "{name}");
        assert!(
            html.contains("<img class=\"logo\" src=\"data:image/svg+xml;base64,")
                && html.contains("img-src data:")
        );
        assert!(html.contains("What to mend first") && html.contains("Broken internal links"), "{name}");
    }
    let alone = fs::read_to_string(dir.path().join("overview.html")).unwrap();
    assert!(!alone.contains("href=") && !alone.contains("<script"), "{alone}");
    let missing = shop().set("audit_logo", "no-such.png").run().await.unwrap_err().to_string();
    assert!(missing.contains("audit_logo") && missing.contains("no-such.png"), "{missing}");
}

#[tokio::test(start_paused = true)]
async fn sitemap_graph_and_redirects_are_written_for_their_readers() {
    let dir = tempfile::tempdir().unwrap();
    let mut audit = audited().await;
    audit
        .export(dir.path(), &[Export::Sitemap, Export::Graph, Export::Markdown], &SourceMap::default())
        .unwrap();
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let sitemap = read("sitemap.xml");
    assert_eq!(sitemap.matches("<loc>").count(), 2, "{sitemap}");
    assert!(sitemap.contains("<loc>https://a.example/b</loc><lastmod>1994-11-15</lastmod>"), "{sitemap}");
    let graph = read("graph.graphml");
    assert!(
        graph.contains("https://a.example/p?q=1&amp;r=2") && graph.matches("<edge ").count() == 2,
        "{graph}"
    );
    assert!(read("redirects.nginx.conf").ends_with("\n\"/moved\" \"https://a.example/b\";\n"));
    let rules = read("redirects.htaccess");
    assert!(rules.ends_with("RewriteCond %{QUERY_STRING} \"^$\"\nRewriteRule \"^moved$\" \"https://a.example/b\" [R=301,L,NE,QSD]\n"), "{rules}");
    assert!(
        read("redirects.csv")
            .contains("https://a.example/moved,301,https://a.example/b,1,https://a.example/b,200")
    );
    assert!(read("summary.md").contains("### Broken internal links (broken-internal-link, 1 error)"));
    assert!(read("issues.jsonl").lines().count() == audit.issues.len() && !dir.path().join("csv").exists());
}
