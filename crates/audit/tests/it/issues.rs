//! Issues: their causes, places, settings and files.

use std::fs;

use huntsman_audit::{
    Audit, AuditBuilder, AuditedPage, Code, Finding, Findings, Issue, Rule, Severity, audit,
};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde_json::{Value, json};

use crate::{all_issues, issues_of, urls_of};

const START: &str = "https://a.example/";

/// An audit of pages, by path; other paths answer 404.
fn of(pages: &[(&str, &str)]) -> AuditBuilder {
    let web = pages.iter().fold(ScriptedDownloader::new(), |web, (path, html)| {
        web.respond(&format!("https://a.example{path}"), Reply::html((*html).to_owned()))
    });
    audit([START]).downloader(web)
}

#[tokio::test(start_paused = true)]
async fn a_broken_link_names_each_place_where_it_stands() {
    let audit = of(&[
        ("/", "<nav>\n <a href=/gone>Old  prices</a></nav><a href=/b>Second page</a>"),
        ("/b", "<p>é <a href='/gone#x'>Prices</a>"),
    ]);
    let audit = audit.run().await.unwrap();
    let issue = &issues_of(&audit, "broken-internal-link")[0];
    assert_eq!(
        (issue.url.as_str(), issue.sources, &issue.evidence.value),
        ("https://a.example/gone", 2, &json!(404))
    );
    let places: Vec<_> = issue
        .at
        .iter()
        .map(|place| {
            (
                place.page.as_deref().unwrap(),
                place.line,
                place.column,
                place.link.as_deref(),
                place.region.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        places,
        [(START, 2, 2, Some("Old prices"), Some("nav")), ("https://a.example/b", 1, 6, Some("Prices"), None)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_link_of_a_template_is_one_issue() {
    let page = "<nav><a href=/gone>Old</a><a href=/1>One</a><a href=/2>Two</a><a href=/3>Three</a><a href=/4>Four</a></nav>";
    let audit = of(&["/", "/1", "/2", "/3", "/4"].map(|path| (path, page))).run().await.unwrap();
    let issues = issues_of(&audit, "broken-internal-link");
    assert_eq!(issues.len(), 1);
    assert!(issues[0].template && issues[0].sources == 5);
}

#[tokio::test(start_paused = true)]
async fn a_header_that_all_pages_lack_is_one_issue_of_the_host() {
    let audit = of(&[("/", "<a href=/1>One</a>"), ("/1", "<p>one")]).run().await.unwrap();
    let issues = issues_of(&audit, "csp-missing");
    assert_eq!((issues.len(), issues[0].sources, issues[0].group.as_deref()), (1, 2, Some("a.example")));
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_not_judged_after_a_limit() {
    let web = ScriptedDownloader::new()
        .respond(START, Reply::html("<a href=/1>One</a><a href=/2>Two</a>"))
        .respond("https://a.example/sitemap.xml", Reply::status(200).header("content-type", "application/xml").body(
            "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>https://a.example/lone</loc></url></urlset>",
        ))
        .respond("https://a.example/lone", Reply::html("<a href=/>Front</a>"))
        .respond("https://a.example/1", Reply::html("<a href=/>Front</a>"))
        .respond("https://a.example/2", Reply::html("<a href=/>Front</a>"));
    let whole = audit([START]).downloader(web.clone()).run().await.unwrap();
    assert_eq!(issues_of(&whole, "orphan").len(), 1);
    let cut = audit([START]).set("closespider_pagecount", 4).downloader(web).run().await.unwrap();
    assert!(!cut.site.is_complete() && issues_of(&cut, "orphan").is_empty());
}

#[tokio::test(start_paused = true)]
async fn issues_are_the_same_in_any_order_of_arrival_and_if_all_is_sorted_on_disk() {
    let site = huntsman_testkit::sites::audited();
    let run = |at_once: u64, sorted_bytes: u64| {
        let builder = audit([format!("{}/list-0", huntsman_testkit::sites::AUDITED)]);
        builder
            .set("concurrent_requests_per_domain", at_once)
            .set("audit_sorted_bytes", sorted_bytes)
            .options(|options| options.no_sitemaps(true))
            .downloader(site.downloader())
            .run()
    };
    let text = |audit: &huntsman_audit::Audit| serde_json::to_string(&all_issues(audit)).unwrap();
    let one = run(1, 64 << 20).await.unwrap();
    assert!(one.issues.len() > 50);
    // By the last setting some of the answers are kept in memory, and the others are read from disk.
    for (at_once, sorted_bytes) in [(16, 64 << 20), (16, 2_000), (16, 300_000)] {
        let other = run(at_once, sorted_bytes).await.unwrap();
        assert_eq!(text(&other), text(&one), "{at_once} at once, {sorted_bytes} bytes sorted at once");
    }
}

/// Every page names its author.
struct Author;

const CODES: &[Code] = &[Code::new("house", "author-missing").severity(Severity::Error)];

impl Rule for Author {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        if !page.metas().any(|meta| meta.name == Some("author")) {
            findings.add(Finding::of("author-missing"));
        }
        findings.add(Finding::of("a-code-that-it-does-not-declare"));
    }
}

#[tokio::test(start_paused = true)]
async fn own_rules_judge_beside_the_built_in_ones() {
    let pages = [("/", "<a href=/1>One</a>"), ("/1", "<meta name=author content=me>")];
    let audit = of(&pages).rule(Author).run().await.unwrap();
    let found = urls_of(&audit, "author-missing");
    assert_eq!(found, [START]);
    assert_eq!(issues_of(&audit, "a-code-that-it-does-not-declare").len(), 0);
    assert!(!issues_of(&audit, "title-missing").is_empty());
}

#[tokio::test(start_paused = true)]
async fn settings_change_severities_ignore_issues_and_open_the_gate() {
    let page = [("/", "<a href=/gone>Old</a>")];
    let gate = |conditions: &'static [&'static str]| {
        of(&page)
            .set("audit_severity", json!({"title-missing": "off", "h1-missing": "error"}))
            .set(
                "audit_ignore",
                json!([{"code": "broken-internal-link", "url": "*/gone", "reason": "known"}]),
            )
            .options(|options| options.fail_on(conditions.iter().map(|text| (*text).to_owned()).collect()))
            .run()
    };
    let audit = gate(&["h1-missing", "links>3", "broken-internal-link"]).await.unwrap();
    assert_eq!(
        (issues_of(&audit, "title-missing").len(), issues_of(&audit, "broken-internal-link").len()),
        (0, 0)
    );
    assert_eq!(issues_of(&audit, "h1-missing")[0].severity, Severity::Error);
    let ignored: Vec<Issue> = audit.ignored.iter().map(Result::unwrap).collect();
    assert_eq!((audit.ignored.len(), ignored[0].ignored.as_deref()), (1, Some("known")));
    let failed: Vec<&str> = audit.gate.iter().map(|failure| failure.condition.as_str()).collect();
    assert_eq!(failed, ["h1-missing"], "what is ignored does not fail");
    for wrong in [&["no-such-code"][..], &["error>many"]] {
        assert!(gate(wrong).await.unwrap_err().is_usage());
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_is_wanted_is_judged() {
    let only = |names: &'static [&'static str]| {
        of(&[("/", "<img src=data:,x><a href=/gone>Old</a>")])
            .options(|options| options.only(names.iter().map(|name| (*name).to_owned()).collect()))
            .run()
    };
    let audit = only(&["images", "-img-no-size"]).await.unwrap();
    let codes: Vec<String> = all_issues(&audit).into_iter().map(|issue| issue.code).collect();
    assert_eq!(codes, ["img-alt-missing"]);
    assert!(only(&["image"]).await.unwrap_err().to_string().contains("image"));
}

#[tokio::test(start_paused = true)]
async fn a_page_has_the_rank_of_the_links_that_readers_can_follow_to_it() {
    let front = "<a href=/>Front</a>";
    let web = ScriptedDownloader::new()
        .respond(
            START,
            Reply::html("<a href=/moved>A</a><a href=/b rel=nofollow>B</a><a href=/gone>Gone</a>"),
        )
        .respond("https://a.example/moved", Reply::redirect(301, "https://a.example/a"))
        .respond("https://a.example/a", Reply::html(front))
        .respond("https://a.example/b", Reply::html(front));
    let audit = audit([START]).downloader(web).run().await.unwrap();
    let rank = |path: &str| audit.site.rank(&format!("https://a.example{path}")).unwrap();
    assert_eq!(rank("/"), 100.0);
    assert!(rank("/a") > rank("/b"), "the redirect passes all on, nofollow passes nothing on");
    assert!(rank("/moved") > rank("/b"));
    assert!(audit.site.find("https://a.example/a").unwrap().is_redirect_target());
    assert_eq!(audit.site.rank("https://a.example/never-met"), None);
}

#[tokio::test(start_paused = true)]
async fn a_start_url_that_redirects_brings_its_host_into_scope() {
    let web = ScriptedDownloader::new()
        .respond("https://old.example/", Reply::redirect(301, "https://new.example/"))
        .respond("https://new.example/", Reply::html("<a href=/gone>Gone</a>"));
    let audit = audit(["https://old.example/"]).downloader(web).run().await.unwrap();
    let broken = urls_of(&audit, "broken-internal-link");
    assert_eq!(broken, ["https://new.example/gone"]);
}

#[tokio::test(start_paused = true)]
async fn files_have_every_issue_and_no_cell_is_a_formula() {
    let folder = tempfile::tempdir().unwrap();
    let audit = of(&[("/", "<title>=1+1</title><a href=/gone>=HYPERLINK(1)</a>")]).run().await.unwrap();
    audit.write(folder.path()).unwrap();
    audit.write(folder.path()).unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let lines: Vec<Value> =
        read("issues.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), audit.issues.len());
    let broken = lines.iter().find(|line| line["code"] == "broken-internal-link").unwrap();
    assert_eq!(broken["at"][0]["page"], START);
    assert!(read("csv/broken-internal-link.csv").contains("'=HYPERLINK(1)"));
    assert!(read("csv/pages.csv").contains("'=1+1") && read("csv/inlinks.csv").contains("'=HYPERLINK(1)"));
    let pages: Vec<Value> =
        read("pages.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((pages.len(), &pages[0]["title"], &pages[1]["status"]), (2, &json!("=1+1"), &json!(404)));
}

#[tokio::test(start_paused = true)]
async fn a_page_has_a_line_with_all_that_is_known_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let words = "Each of these words is counted, and there are enough of them for a fingerprint. ".repeat(5);
    let page = format!(
        r#"<title>Boats</title><meta name=robots content="max-snippet: 20"><meta name=robots content=nofollow>
        <h1>Boats</h1><h2>Red</h2><h2>Blue</h2><h6>Small</h6><p>{words}</p><div itemscope itemtype="https://schema.org/Product"></div>
        <script type="application/ld+json">{{"@type": ["Product", "Thing"]}}</script>"#
    );
    let front = "<a href=/moved>Boats</a><a href=/circle>Nothing</a><a href=/boats>Our boats</a>
        <a href=/boats>Boats</a><a href=/boats>Our  boats</a><a href=/boats><img src=/boat.png></a>";
    let reply = Reply::html(page).header("x-robots-tag", "noarchive").header("x-frame-options", "DENY");
    let web = ScriptedDownloader::new()
        .respond(START, Reply::html(front))
        .respond(
            "https://a.example/robots.txt",
            Reply::text("User-agent: *\nDisallow: /private\nAllow: /boats"),
        )
        .respond("https://a.example/moved", Reply::redirect(301, "/on"))
        .respond("https://a.example/on", Reply::redirect(302, "/boats"))
        .respond("https://a.example/circle", Reply::redirect(302, "/back"))
        .respond("https://a.example/back", Reply::redirect(302, "/circle"))
        .respond("https://a.example/boats", reply);
    let audit = audit([START]).downloader(web).run().await.unwrap();
    audit.write(folder.path()).unwrap();
    let lines = fs::read_to_string(folder.path().join("pages.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line =
        |path: &str| lines.iter().find(|line| line["url"] == format!("https://a.example{path}")).unwrap();
    let boats = line("/boats");
    assert_eq!(
        (&boats["robots"], &boats["x_robots_tag"]),
        (&json!("max-snippet: 20, nofollow"), &json!("noarchive"))
    );
    assert_eq!((&boats["headings"], &boats["h1"]), (&json!([1, 2, 0, 0, 0, 1]), &json!("Boats")));
    assert_eq!(boats["structured_types"], json!(["Product", "Thing", "https://schema.org/Product"]));
    assert_eq!(boats["simhash"].as_str().unwrap().len(), 32, "{boats}");
    assert_eq!(
        (&boats["headers"]["x-frame-options"], &boats["protocol"]),
        (&json!("DENY"), &json!("HTTP/1.1"))
    );
    assert_eq!((&boats["inlinks"], &boats["unique_inlinks"]), (&json!(4), &json!(1)));
    let texts = json!([{"text": "Our boats", "links": 2}, {"text": "Boats", "links": 1}]);
    assert_eq!((&boats["link_texts"], &line("/")["link_texts"]), (&texts, &json!([])));
    assert_eq!(
        (&boats["robots_line"], &line("/")["robots_line"]),
        (&json!("Allow: /boats (line 3)"), &Value::Null)
    );
    assert_eq!((&boats["redirects"], &boats["certificate_days_left"]), (&json!([]), &Value::Null));
    assert!(boats["total_ms"].as_f64().unwrap() >= boats["ttfb_ms"].as_f64().unwrap());
    assert_eq!(line("/moved")["redirects"], json!(["https://a.example/on", "https://a.example/boats"]));
    assert_eq!(line("/circle")["redirects"], json!(["https://a.example/back"]), "a circle has no end");
    let table = fs::read_to_string(folder.path().join("csv/pages.csv")).unwrap();
    assert!(table.lines().next().unwrap().contains(",certificate_days_left,"), "{table}");
}

#[tokio::test(start_paused = true)]
async fn a_score_lists_what_was_deducted_and_adds_up() {
    let fine = "<!doctype html><html lang=en><title>A title of its own that is long enough for all</title><h1>A</h1>";
    let broken =
        "<!doctype html><html lang=en><h1>B</h1><a href=/gone>Gone</a><a href=/c>C</a><a href=/>Front</a>";
    let front =
        format!("{fine}<a href=/b>Second page</a><a href=/c>Third page</a><a href=/d>Fourth page</a>");
    let audit = of(&[("/", &front), ("/b", broken), ("/c", fine), ("/d", fine)]).run().await.unwrap();
    let score = audit.score();
    let links = &score.families["status"];
    let gone = links.deductions.iter().find(|deduction| deduction.code == "broken-internal-link").unwrap();
    // One of five URLs that answered is the broken one: 1 + 4 / 5, since it is an error.
    assert_eq!(
        (gone.severity, gone.pages, gone.of, gone.points),
        (Severity::Error, Some(1), 5, 1.8),
        "{links:?}"
    );
    for (name, family) in &score.families {
        let taken: f64 = family.deductions.iter().map(|deduction| deduction.points).sum();
        assert!((family.score - (10.0 - taken).max(0.0)).abs() < 0.005, "{name}: {family:?}");
        assert!(family.deductions.iter().all(|deduction| deduction.severity != Severity::Notice));
    }
    let mean = score.families.values().map(|family| family.score).sum::<f64>() / score.families.len() as f64;
    assert!((score.overall.unwrap() - mean).abs() <= 0.005);
    let told = audit.totals();
    assert_eq!(told["score"]["overall"], json!(score.overall), "{told}");
    let summary = audit.summary(huntsman_output::render::Style::none());
    assert!(summary.contains(&format!("score {:.1} of 10; lowest: ", score.overall.unwrap())), "{summary}");
}

#[tokio::test(start_paused = true)]
async fn a_site_without_a_page_has_no_score_and_a_start_url_that_fails_is_told() {
    let web = ScriptedDownloader::new().respond(START, Reply::status(404));
    let audit = audit([START]).downloader(web).run().await.unwrap();
    assert_eq!(audit.score().overall, None);
    let summary = audit.summary(huntsman_output::render::Style::none());
    assert!(summary.contains(&format!("the start URL {START} answers 404")), "{summary}");
    assert!(!summary.contains("score"), "{summary}");
}

#[tokio::test(start_paused = true)]
async fn an_accepted_issue_costs_no_points_and_an_issue_of_the_site_costs_all_of_its_points() {
    let page = "<!doctype html><html lang=en><title>A title of its own that is long enough</title><h1>A</h1><a href=/gone>Gone</a>";
    let full = of(&[("/", page)]).run().await.unwrap().score();
    let accepted = of(&[("/", page)])
        .options(|options| options.ignore(vec!["broken-internal-link".to_owned()]))
        .run()
        .await
        .unwrap()
        .score();
    let has = |score: &huntsman_audit::Score, code: &str| {
        score.families.values().flat_map(|family| &family.deductions).any(|deduction| deduction.code == code)
    };
    assert!(has(&full, "broken-internal-link") && !has(&accepted, "broken-internal-link"));
    let of_site =
        full.families.values().flat_map(|family| &family.deductions).filter(|one| one.pages.is_none());
    for deduction in of_site {
        let all = if deduction.severity == Severity::Error { 5.0 } else { 1.5 };
        assert_eq!(deduction.points, all, "{deduction:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn certificates_of_hosts_are_known_and_without_one_their_codes_are_not_judged() {
    let web = |reply: Reply| ScriptedDownloader::new().respond(START, reply);
    let without = audit([START]).downloader(web(Reply::html("<p>one"))).run().await.unwrap();
    assert!(without.not_judged.contains("certificate-expiring"), "{:?}", without.not_judged);
    let der = include_bytes!("../../../testkit/data/rsa-2048.der");
    let with =
        audit([START]).downloader(web(Reply::html("<p>one").certificate(&der[..]))).run().await.unwrap();
    assert!(!with.not_judged.contains("certificate-expiring"));
    let tls = with.site.tls("a.example").expect("the certificate of the host");
    assert_eq!((tls.key.as_str(), tls.key_bits, tls.fault.as_deref()), ("RSA", 2_048, None));
    assert_eq!((tls.signature.as_str(), tls.version.as_deref()), ("RSA with SHA-256", Some("TLS 1.3")));
    assert!(tls.subject.contains("audit.example") && tls.not_after.starts_with("2126-"), "{tls:?}");
    let report = with.html().unwrap();
    assert!(report.contains("Certificate until") && report.contains("RSA 2048, RSA with SHA-256"));
}

#[tokio::test(start_paused = true)]
async fn a_finding_that_is_less_bad_than_its_code_has_its_own_severity_and_stands_behind_the_others() {
    let page = "<input name=a><input name=b placeholder=B><a href='http://a.example/'>Own</a><a href='http://other.example/'>Other</a>";
    let second = "<input name=b placeholder=B><a href=/missing>Gone</a>";
    let web = || of(&[("/", &format!("{page}<a href=/b>B</a>")), ("/b", second)]);
    let audit = web().run().await.unwrap();
    let told = |audit: &Audit, code: &str| -> Vec<(String, Severity)> {
        let issues = issues_of(audit, code).into_iter();
        issues.map(|issue| (issue.target.unwrap_or(issue.url), issue.severity)).collect()
    };
    let (own, other) = ("http://a.example/".to_owned(), "http://other.example/".to_owned());
    let expected = [(own.clone(), Severity::Warning), (other.clone(), Severity::Notice)];
    assert_eq!(told(&audit, "link-http-on-https"), expected);
    let labels =
        [(START.to_owned(), Severity::Warning), ("https://a.example/b".to_owned(), Severity::Notice)];
    assert_eq!(told(&audit, "label-missing"), labels);
    let order: Vec<Severity> = all_issues(&audit).iter().map(|issue| issue.severity).collect();
    assert!(order.is_sorted(), "{order:?}");
    let totals = audit.totals();
    assert_eq!(totals["codes"]["link-http-on-https"], 2);
    let notices = order.iter().filter(|severity| **severity == Severity::Notice).count();
    assert_eq!(totals["severities"]["notice"], notices);
    // A notice costs nothing: one of two pages has the warning.
    let access = &audit.score().families["access"];
    let label = access.deductions.iter().find(|deduction| deduction.code == "label-missing").unwrap();
    assert_eq!((label.pages, label.points), (Some(1), 0.85));
    // Each table has all of its code.
    let folder = tempfile::tempdir().unwrap();
    audit.write(folder.path()).unwrap();
    let table = fs::read_to_string(folder.path().join("csv/link-http-on-https.csv")).unwrap();
    assert_eq!(table.lines().count(), 3, "{table}");
    let all = fs::read_to_string(folder.path().join("csv/issues.csv")).unwrap();
    assert_eq!(all.matches("link-http-on-https").count(), 2);
    assert!(audit.markdown().contains("(link-http-on-https, 1 warning, 1 notice)"), "{}", audit.markdown());
    // A setting counts for all of a code.
    let set = web().set("audit_severity", json!({"link-http-on-https": "error"})).run().await.unwrap();
    let expected = [(own, Severity::Error), (other, Severity::Error)];
    assert_eq!(told(&set, "link-http-on-https"), expected);
}

#[tokio::test(start_paused = true)]
async fn how_many_pages_are_compared_is_a_setting_and_the_report_says_where_it_cut() {
    let text = "word ".repeat(30);
    let links: String = (0..30).map(|number| format!("<a href='/p?ref={number}'>{number}</a>")).collect();
    let pages: Vec<(String, String)> = (0..30)
        .map(|number| (format!("/p?ref={number}"), format!("<main>{text}</main>")))
        .chain([("/".to_owned(), links)])
        .collect();
    let pages: Vec<(&str, &str)> = pages.iter().map(|(path, html)| (path.as_str(), html.as_str())).collect();
    let told = |audit: &Audit| {
        let note = audit.notes.iter().any(|note| note.contains("the first 25 were compared"));
        (issues_of(audit, "url-equivalent").len(), note)
    };
    assert_eq!(told(&of(&pages).run().await.unwrap()), (1, false));
    let cut = of(&pages).set("audit_compared_pages", 25).run().await.unwrap();
    assert_eq!(told(&cut), (1, true));
    let none = of(&pages).set("audit_compared_pages", 15).run().await.unwrap();
    assert_eq!(issues_of(&none, "url-equivalent").len(), 0, "twenty have to repeat each other");
    let other = of(&pages).set("audit_compared_pages", 25);
    let other = other.options(|options| options.only(vec!["title-missing".to_owned()])).run().await.unwrap();
    assert!(!told(&other).1, "nothing was compared");
}
