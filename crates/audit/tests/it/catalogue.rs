//! The built-in codes, on a site that has each fault and what nearly is one.

use std::collections::BTreeSet;

use huntsman_audit::{Audit, audit, codes};
use huntsman_testkit::sites::{ALSO_AUDITED, AUDITED, Audited, audited, audited_rendered};

use crate::all_issues;

async fn run(site: &Audited) -> Audit {
    let front = format!("{AUDITED}/");
    audit(ALSO_AUDITED.into_iter().chain([front.as_str()]))
        .set("audit_page_bytes_max", 60_000)
        .set("audit_words_min", 200)
        .set("audit_query_variants_max", 12)
        .downloader(site.downloader())
        .run()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn exactly_the_planted_faults_are_found() {
    let site = audited();
    let audit = run(&site).await;
    assert_found(&site, &audit);
}

#[cfg(feature = "render")]
#[tokio::test(flavor = "multi_thread")]
async fn exactly_the_planted_faults_of_rendered_pages_are_found() {
    let site = audited_rendered();
    let rendered = audit([format!("{AUDITED}/")])
        .set("render", "all")
        // Root has no sandbox, and the pages are ours.
        .set("render_sandbox", "off")
        .set("download_delay", 0)
        .options(|options| options.no_sitemaps(true))
        .downloader(site.downloader())
        .run()
        .await
        .unwrap();
    assert_found(&site, &rendered);
    let codes = |audit: &Audit| audit.codes.iter().any(|code| code.name == "render-title-differs");
    assert!(codes(&rendered));
    let plain = audit([format!("{AUDITED}/")]).downloader(site.downloader()).set("download_delay", 0);
    let plain = plain.run().await.unwrap();
    assert!(!codes(&plain) && plain.not_judged.contains("render-title-differs"));
    assert!(plain.of("render-title-differs").unwrap().is_empty());
}

/// Fails unless an audit found what was planted, and no more.
fn assert_found(site: &Audited, audit: &Audit) {
    let found: BTreeSet<(String, String)> =
        all_issues(audit).iter().map(|issue| (issue.code.clone(), issue.url.clone())).collect();
    let shown = |issues: Vec<&(String, String)>| {
        issues.iter().map(|(code, url)| format!("{code} {url}\n")).collect::<String>()
    };
    let missed = shown(site.expected.difference(&found).collect());
    let invented = shown(found.difference(&site.expected).collect());
    assert!(missed.is_empty() && invented.is_empty(), "missed:\n{missed}invented:\n{invented}");
}

#[test]
fn every_code_has_a_planted_instance_and_two_near_misses() {
    let sites = [audited(), audited_rendered()];
    for code in codes() {
        let of_site = |site: &Audited| site.cases.get(code.name).copied().unwrap_or_default();
        let (planted, near) = sites.iter().map(of_site).fold((0, 0), |all, of| (all.0 + of.0, all.1 + of.1));
        assert!(planted >= 1 && near >= 2, "{}: {planted} planted, {near} near misses", code.name);
    }
    let known: BTreeSet<&str> = codes().iter().map(|code| code.name).collect();
    for code in sites.iter().flat_map(|site| site.cases.keys()) {
        assert!(known.contains(code.as_str()), "there is no code {code}");
    }
}

#[test]
fn every_code_says_why_and_how_and_gives_an_example() {
    let all = codes();
    let names: BTreeSet<&str> = all.iter().map(|code| code.name).collect();
    assert_eq!(names.len(), all.len(), "two codes have one name");
    for code in all {
        for (what, text) in [
            ("headline", code.headline),
            ("when", code.when),
            ("why", code.why),
            ("fix", code.fix),
            ("source", code.source),
            ("wrong", code.wrong),
            ("right", code.right),
        ] {
            assert!(!text.is_empty(), "{}: {what} is empty", code.name);
        }
        assert!(
            code.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
            "{}",
            code.name
        );
    }
}
