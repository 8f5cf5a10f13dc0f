//! Exports: reports and files for other programs.

use std::fs;

use huntsman_audit::{Audit, AuditBuilder, Export, SourceMap, audit};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde_json::Value;

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
    let sarif: Value = serde_json::from_str(&audit.sarif(&map)).unwrap();
    let run = &sarif["runs"][0];
    assert_eq!(
        (&sarif["version"], run["results"].as_array().unwrap().len()),
        (&"2.1.0".into(), audit.issues.len())
    );
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for (result, issue) in run["results"].as_array().unwrap().iter().zip(&audit.issues) {
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

#[tokio::test(start_paused = true)]
async fn text_of_pages_is_no_markup_in_the_report_and_only_its_own_script_may_run() {
    let audit = audited().await;
    let html = audit.html();
    assert!(!html.contains(HOSTILE));
    assert_eq!(html.matches("<script").count(), 2, "the data and the script");
    let begin = html.find("type=\"application/json\">").unwrap() + "type=\"application/json\">".len();
    let end = begin + html[begin..].find("</script>").unwrap();
    let data: Value = serde_json::from_str(&html[begin..end]).unwrap();
    assert_eq!(
        (data["pages"].as_array().unwrap().len(), data["issues"].as_array().unwrap().len()),
        (5, audit.issues.len())
    );
    let titles: Vec<&str> =
        data["pages"].as_array().unwrap().iter().filter_map(|page| page[11].as_str()).collect();
    assert!(titles.contains(&HOSTILE), "{titles:?}");
    assert!(html.contains("default-src 'none'") && html.contains("script-src 'sha256-"));
}

#[tokio::test(start_paused = true)]
async fn sitemap_graph_and_redirects_are_written_for_their_readers() {
    let dir = tempfile::tempdir().unwrap();
    let audit = audited().await;
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
    assert_eq!(read("redirects.nginx.conf"), "\"/moved\" \"https://a.example/b\";\n");
    assert_eq!(read("redirects.htaccess"), "Redirect 301 \"/moved\" \"https://a.example/b\"\n");
    assert!(read("redirects.csv").contains("https://a.example/moved,https://a.example/b,301,1"));
    assert!(read("summary.md").contains("broken-internal-link (1)"));
    assert!(read("issues.jsonl").lines().count() == audit.issues.len() && !dir.path().join("csv").exists());
}
