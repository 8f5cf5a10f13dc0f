//! `serve`: the API, the pages, and protection against hostile clients.

mod guards;
mod pages;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_testkit::prometheus::check_metrics;
use huntsman_testkit::{Answer, RunningSite, Site, SiteRequest};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{huntsman, run};

const PATIENCE: Duration = Duration::from_secs(60);

fn words(from: usize, to: usize) -> String {
    (from..to).map(|n| format!("word{}", (n * 7_919) % 99_991)).collect::<Vec<_>>().join(" ")
}

/// A running server. It is killed when this value is dropped.
struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: SocketAddr,
    _directory: TempDir,
}

/// A response.
#[derive(Debug)]
struct Answered {
    status: u16,
    head: String,
    body: String,
}

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let of =
            |line: &'_ str| line.split_once(": ").is_some_and(|(other, _)| other.eq_ignore_ascii_case(name));
        self.head.lines().find(|line| of(line)).map(|line| line.split_once(": ").unwrap().1)
    }
}

impl Server {
    fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// A server that may fetch pages from some sites.
    fn beside(sites: &[&RunningSite], args: &[&str]) -> Self {
        let allowed: Vec<String> = sites.iter().map(|site| format!("127.0.0.1:{}", site.port())).collect();
        let mut all: Vec<&str> = args.to_vec();
        allowed.iter().for_each(|address| all.extend(["--allow-address", address]));
        Self::start(&all)
    }

    fn start_with(args: &[&str], environment: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = huntsman(directory.path());
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(args).envs(environment.iter().copied());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()?.parse().ok());
        let address = address.unwrap_or_else(|| panic!("{line}"));
        Self { child, stderr, address, _directory: directory }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn exchange(&self, request: &[u8]) -> Answered {
        let mut stream = self.connect();
        // A server that refuses a request may not read all of it.
        let _ = stream.write_all(request);
        answered(stream)
    }

    fn get_with(&self, target: &str, headers: &[(&str, &str)]) -> Answered {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let host = if headers.to_ascii_lowercase().contains("host:") {
            String::new()
        } else {
            format!("Host: {}\r\n", self.address)
        };
        self.exchange(format!("GET {target} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n").as_bytes())
    }

    fn get(&self, target: &str) -> Answered {
        self.get_with(target, &[])
    }

    fn post(&self, target: &str, content_type: &str, body: &str, headers: &[(&str, &str)]) -> Answered {
        self.exchange(self.posted(target, content_type, body, headers).as_bytes())
    }

    fn posted(&self, target: &str, content_type: &str, body: &str, headers: &[(&str, &str)]) -> String {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!(
            "POST {target} HTTP/1.1\r\nHost: {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{headers}Connection: close\r\n\r\n{body}",
            self.address,
            body.len()
        )
    }

    /// Sends a question to the API as JSON.
    fn ask(&self, question: &Value) -> Value {
        let answer = self.post("/api.json", "application/json", &question.to_string(), &[]);
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{answer:?}");
        answer.json()
    }

    fn form(&self, target: &str, fields: &[(&str, &str)], headers: &[(&str, &str)]) -> Answered {
        self.post(target, "application/x-www-form-urlencoded", &encoded(fields), headers)
    }

    /// The value of a metric.
    fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").body;
        let line = text.lines().find(|line| line.split_once(' ').is_some_and(|(other, _)| other == name));
        line.map_or(0, |line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
    }

    fn wait_for_metric(&self, name: &str, value: u64) {
        let deadline = Instant::now() + PATIENCE;
        while self.metric(name) != value {
            assert!(Instant::now() < deadline, "{name} is {} and not {value}", self.metric(name));
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn answered(mut stream: TcpStream) -> Answered {
    let mut bytes = Vec::new();
    // Data received before a connection was reset counts.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).expect("answers are UTF-8");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answered { status, head: head.to_owned(), body: body.to_owned() }
}

fn encoded(fields: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| {
        let value: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
        format!("{name}={value}")
    };
    fields.iter().map(pair).collect::<Vec<_>>().join("&")
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap_or_else(|| panic!("{value}")).keys().map(String::as_str).collect()
}

/// A site with a wiki and sources of all kinds.
fn site() -> RunningSite {
    let text = words(0, 300);
    let wiki = move |asked: &SiteRequest| {
        let wikitext = |text: String| {
            Answer::status(200).header("content-type", "text/x-wiki; charset=UTF-8").body(text)
        };
        match (asked.param("oldid").as_deref(), asked.param("title").as_deref()) {
            (Some("7"), _) => wikitext(words(3_000, 3_300)),
            (None, Some("Old_mill")) => wikitext(format!("'''{}'''", words(0, 300))),
            (None, Some("Mill")) => wikitext("#REDIRECT [[Old mill#History]]".to_owned()),
            (None, Some("Loop")) => wikitext("#REDIRECT [[Loop]]".to_owned()),
            (None, Some("Linked")) => {
                let port = asked.header("host").unwrap_or_default().to_owned();
                wikitext(format!(
                    "{}<ref>[http://{port}/copy a page]</ref> [http://{port}/mirror m]",
                    words(0, 300)
                ))
            }
            _ => Answer::status(404),
        }
    };
    Site::builder()
        .robots("User-agent: *\nDisallow: /w/\nDisallow: /private\n")
        .route("/w/index.php", wiki)
        .page("/copy", format!("<title>A &lt;copy&gt;</title><p>{text}"))
        .page("/private", format!("<p>{text}"))
        .page("/mirror", format!("<a href='/w/index.php?x'>w</a><p>{text}"))
        .page("/other", format!("<p>{}", words(5_000, 5_300)))
        .page("/empty", "<p> </p>")
        .route("/hangs", |_| Answer::html("late").delay(Duration::from_secs(60)))
        .route("/fails", |_| Answer::status(500))
        .route("/huge", |_| Answer::html("x ".repeat(2 << 20)))
        .start_blocking()
}

fn wiki_flag(site: &RunningSite) -> String {
    format!("manual:en=http://127.0.0.1:{}/w", site.port())
}

#[test]
fn a_comparison_has_the_fields_of_the_reference_and_additional_ones() {
    let (site, address);
    site = self::site();
    address = wiki_flag(&site);
    let server = Server::beside(&[&site], &["--wiki", &address]);
    let copy = site.url("/copy").to_string();
    let query = format!(
        "/api.json?version=1&action=compare&project=manual&lang=en&title=Old_mill&detail=true&url={copy}"
    );
    let answer = server.get(&query);
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/json; charset=utf-8"))
    );
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    let made = answer.json();
    assert_eq!(made["status"], "ok", "{made:#}");
    assert_eq!(&keys(&made)[..5], ["status", "meta", "page", "best", "sources"]);
    assert_eq!(&keys(&made["meta"])[..4], ["time", "queries", "cached", "redirected"]);
    assert_eq!((&made["meta"]["queries"], &made["meta"]["cached"]), (&json!(0), &json!(false)));
    assert_eq!(
        made["page"],
        json!({"title": "Old mill", "url": format!("http://127.0.0.1:{}/w/index.php?title=Old_mill", site.port())})
    );
    assert_eq!(keys(&made["best"]), ["url", "confidence", "violation"]);
    let source = &made["sources"][0];
    assert_eq!(&keys(source)[..5], ["url", "confidence", "violation", "skipped", "excluded"]);
    assert_eq!((&source["url"], &source["violation"]), (&json!(copy), &json!("suspected")));
    assert_eq!((&source["skipped"], &source["excluded"]), (&json!(false), &json!(false)));
    assert_eq!(
        (&source["status"], &source["evidence"]["verdict"]),
        (&json!("compared"), &json!("suspected"))
    );
    for side in ["article", "source"] {
        let html = made["detail"][side].as_str().unwrap();
        assert!(html.starts_with("<span class=\"cv-hl\">word0 word7919 "), "{html}");
    }
    // The same response as a page for people.
    let page = server.get(&format!("{query}&format=jsonfm"));
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(
        page.body.contains("&quot;status&quot;: &quot;ok&quot;") && !page.body.contains("<span"),
        "{}",
        page.body
    );
}

#[test]
fn texts_are_compared_in_form_and_json_with_any_degree() {
    let server = Server::start(&[]);
    let (article, source) = (words(0, 60), format!("head {} tail", words(10, 50)));
    let shares = |degree: &str| {
        let fields =
            [("action", "compare"), ("article", article.as_str()), ("text", &source), ("degree", degree)];
        let by_form = server.form("/api", &fields, &[]).json();
        let by_json = server.ask(&json!({
            "action": "compare", "article": article, "text": source, "degree": degree.parse::<u8>().unwrap(),
        }));
        assert_eq!(by_form["sources"], by_json["sources"]);
        assert_eq!(by_form["sources"][0]["url"], Value::Null);
        by_form["best"]["confidence"].as_f64().unwrap()
    };
    // 36 of 64 windows.
    let r = 36.0_f64 / 64.0;
    assert!((shares("5") - (-0.8939 * r * r + 1.8948 * r - 0.0009)).abs() < 1e-9);
    assert_eq!(shares("0"), shares("5"));
    assert!(shares("1") > shares("5") && shares("16") < shares("5"));
    // Positions refer to the text as it was sent, line ends included.
    let article = format!("Über\r\n\r\n{}", words(10, 50));
    let made = server.ask(&json!({"action": "compare", "article": article, "text": source}));
    let length = words(10, 50).chars().count();
    assert_eq!(made["sources"][0]["spans"][0]["article"], json!([8, 8 + length]), "{made:#}");
}

#[test]
fn every_error_has_the_code_of_the_reference_and_status_200() {
    let site = site();
    let wiki = wiki_flag(&site);
    let server = Server::beside(&[&site], &["--wiki", &wiki, "--max-time", "2"]);
    let at = |path: &str| site.url(path).to_string();
    let (copy, empty, hangs, fails) = (at("/copy"), at("/empty"), at("/hangs"), at("/fails"));
    let page = "project=manual&lang=en&title=Old_mill";
    for (query, code) in [
        (String::new(), "missing_action"),
        ("action=".to_owned(), "missing_action"),
        ("action=guess".to_owned(), "unknown_action"),
        ("action=sites&version=2".to_owned(), "unsupported_version"),
        ("action=sites&format=xml".to_owned(), "unknown_format"),
        ("action=compare&url=a.example".to_owned(), "missing_params"),
        ("action=search&project=manual&lang=en".to_owned(), "missing_params"),
        ("action=search&project=manual&lang=xx&title=Old_mill".to_owned(), "bad_site"),
        ("action=search&project=manual&lang=en&title=Missing".to_owned(), "bad_title"),
        ("action=search&project=manual&lang=en&title=%7B".to_owned(), "bad_title"),
        ("action=search&project=manual&lang=en&oldid=99".to_owned(), "bad_oldid"),
        ("action=search&project=manual&lang=en&oldid=x".to_owned(), "bad_oldid"),
        (format!("action=compare&{page}"), "no_url"),
        (format!("action=compare&{page}&url=ftp://a.example/"), "bad_uri"),
        (format!("action=compare&{page}&url={empty}"), "no_data"),
        (format!("action=compare&{page}&url={fails}"), "no_data"),
        (format!("action=compare&{page}&url={hangs}"), "timeout"),
        (format!("action=search&{page}&use_engine=0&use_links=0"), "no_search_method"),
        (format!("action=search&{page}&use_links=false"), "no_search_method"),
        (format!("action=compare&{page}&url={copy}&degree=99"), "bad_degree"),
        (format!("action=compare&article_url={fails}&url={copy}"), "bad_article"),
    ] {
        let answer = server.get(&format!("/api.json?{query}"));
        assert_eq!(
            (answer.status, answer.header("access-control-allow-origin")),
            (200, Some("*")),
            "{query}"
        );
        let made = answer.json();
        assert_eq!(
            (&made["status"], &made["error"]["code"]),
            (&json!("error"), &json!(code)),
            "{query}: {made}"
        );
        assert!(!made["error"]["info"].as_str().unwrap().is_empty());
    }
    let text = server.post("/api", "text/plain", "action=sites", &[]).json();
    assert_eq!(text["error"]["code"], "bad_text");
    // The server still works after all of this.
    let made = server.get(&format!("/api.json?action=compare&{page}&url={copy}")).json();
    assert_eq!(made["status"], "ok", "{made}");
}

#[test]
fn articles_of_a_named_wiki_are_read_by_title_revision_and_redirect() {
    let site = site();
    let wiki = wiki_flag(&site);
    let server = Server::beside(&[&site], &["--wiki", &wiki]);
    let other = site.url("/other").to_string();
    let ask = |more: Value| {
        let mut question = json!({"action": "search", "project": "manual", "lang": "en", "source": other});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.ask(&question)
    };
    let made = ask(json!({"title": "Mill"}));
    assert_eq!(made["meta"]["redirected"], true, "{made:#}");
    assert_eq!(
        (&made["page"]["title"], &made["original_page"]["title"]),
        (&json!("Old mill"), &json!("Mill"))
    );
    let made = ask(json!({"title": "Mill", "noredirect": true}));
    assert_eq!((&made["page"]["title"], &made["meta"]["redirected"]), (&json!("Mill"), &json!(false)));
    assert_eq!(made["sources"][0]["status"], "skipped", "a page of five words is not checked: {made:#}");
    let made = ask(json!({"title": "Loop"}));
    assert_eq!(
        (&made["page"]["title"], site.count("/w/index.php?title=Loop&action=raw")),
        (&json!("Loop"), 2)
    );
    let made = ask(json!({"title": "Missing", "oldid": 7}));
    assert_eq!(made["status"], "ok", "the revision wins: {made:#}");
    // What robots.txt says about scripts is meant for crawlers and not applied here; for other pages it is obeyed.
    let made = server.ask(&json!({"action": "compare", "article_url": site.url("/private"), "text": "x"}));
    assert_eq!(made["error"]["code"], "bad_article", "{made}");
    assert!(made["error"]["info"].as_str().unwrap().contains("robots"), "{made}");
    let sites = server.get("/api.json?action=sites").json();
    assert!(sites["projects"].as_array().unwrap().contains(&json!(["manual", "manual"])), "{sites}");
    assert!(sites["langs"].as_array().unwrap().contains(&json!(["de", "de (German)"])), "{sites}");
}

#[test]
fn a_wiki_that_is_named_wrongly_is_refused_with_its_flag() {
    let directory = tempfile::tempdir().unwrap();
    let refused = run(huntsman(directory.path()).args(["serve", "--wiki", "manual:en"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let expected = "--wiki manual:en: there is no =; use PROJECT:LANG=URL";
    assert!(refused.stderr.contains(expected), "{refused:?}");
}

#[test]
fn mirrors_of_the_wiki_of_an_article_are_no_sources() {
    let site = site();
    // The hosts of links are compared as they are written.
    let wiki = wiki_flag(&site);
    let mirror = Site::builder()
        .page(
            "/m",
            format!(
                "<a href='http://127.0.0.1:{}/w/index.php?title=Old_mill'>w</a><p>{}",
                site.port(),
                words(0, 300)
            ),
        )
        .start_blocking();
    let server = Server::beside(&[&site, &mirror], &["--wiki", &wiki]);
    let question = |action: &str| {
        json!({
            "action": action, "project": "manual", "lang": "en", "title": "Old mill",
            "source": mirror.url("/m"), "url": mirror.url("/m"),
        })
    };
    let made = server.ask(&question("search"));
    let source = &made["sources"][0];
    assert_eq!(
        (&source["excluded"], &source["skipped"], &source["status"]),
        (&json!(true), &json!(true), &json!("excluded")),
        "{made:#}"
    );
    assert_eq!(server.ask(&question("compare"))["best"]["violation"], "suspected");
}

#[test]
fn a_search_reports_the_status_of_every_source() {
    let site = site();
    let directory = tempfile::tempdir().unwrap();
    let rules = directory.path().join("mirrors.txt");
    std::fs::write(&rules, format!("127.0.0.1:{}/other\n", site.port())).unwrap();
    let server = Server::beside(
        &[&site],
        &["--exclude", rules.to_str().unwrap(), "--max-time", "4", "--source-time", "60"],
    );
    let paths = ["/fails", "/huge", "/other", "/copy", "/hangs"];
    let sources: Vec<String> = paths.iter().map(|path| site.url(path).to_string()).collect();
    let question = |noskip: bool| {
        server
            .ask(&json!({"action": "search", "article": words(0, 300), "source": sources, "noskip": noskip}))
    };
    let status = |made: &Value, path: &str| {
        let url = site.url(path).to_string();
        let found = made["sources"].as_array().unwrap().iter().find(|source| source["url"] == url);
        found.unwrap_or_else(|| panic!("{path}: {made:#}"))["status"].as_str().unwrap().to_owned()
    };
    let made = question(true);
    let statuses = paths.map(|path| status(&made, path));
    assert_eq!(statuses, ["failed", "failed", "excluded", "compared", "late"], "{made:#}");
    assert_eq!((&made["best"]["url"], &made["best"]["violation"]), (&json!(sources[3]), &json!("suspected")));
    // A source that was read a moment ago ends the check before any query is sent.
    let made = question(false);
    assert_eq!(status(&made, "/copy"), "compared", "{made:#}");
    assert_eq!(site.count("/copy"), 1, "{:?}", site.targets());
}

#[test]
fn a_result_from_the_cache_is_marked_as_cached() {
    let site = site();
    let server = Server::beside(&[&site], &["--cache", "results"]);
    let ask = |nocache: bool| {
        let made = server.ask(&json!({
            "action": "search", "article": words(0, 300), "source": site.url("/copy"), "nocache": nocache,
        }));
        assert_eq!(made["best"]["violation"], "suspected", "{made:#}");
        (made["meta"]["cached"] == true, made["meta"]["cache_time"].is_string())
    };
    assert_eq!([ask(false), ask(false), ask(true)], [(false, false), (true, true), (false, false)]);
    assert_eq!(server.metric("huntsman_serve_cache_hits_total"), 1);
}

/// A search engine that returns one address, or fails.
fn engine(url: String) -> RunningSite {
    let found = move |asked: &SiteRequest| match asked.param("q") {
        Some(query) if query.contains("word") => Answer::status(200)
            .header("content-type", "application/json")
            .body(json!({"results": [{"url": url}]}).to_string()),
        _ => Answer::status(500),
    };
    Site::builder().route("/search", found).start_blocking()
}

#[test]
fn a_search_engine_is_queried_on_request_and_its_errors_are_reported() {
    let site = site();
    let engine = engine(site.url("/copy").to_string());
    let searxng = format!("searxng={}", engine.url("/"));
    let server = Server::beside(&[&site, &engine], &["--search", &searxng, "--max-queries", "2"]);
    let article = format!("The {}. It {}. So {}.", words(0, 60), words(60, 120), words(120, 300));
    let made = server.ask(&json!({"action": "search", "article": article, "noskip": 1}));
    assert_eq!(made["sources"][0]["url"], site.url("/copy").as_str(), "{made:#}");
    assert_eq!((&made["meta"]["queries"], made["sources"][0]["found_by"].is_string()), (&json!(2), true));
    let asked = engine.targets().len();
    let made = server.ask(&json!({"action": "search", "article": article, "use_engine": "false"}));
    assert_eq!((made["sources"].as_array().unwrap().len(), engine.targets().len()), (0, asked), "{made:#}");
    let article = "Nothing that it knows stands in this sentence at all, and nothing in this one, however long it is made.";
    let made = server.ask(&json!({"action": "search", "article": article}));
    assert_eq!(made["error"]["code"], "search_error", "{made:#}");
}

#[test]
fn the_links_of_an_article_are_its_sources_unless_they_are_not_wanted() {
    let site = site();
    let other = Site::builder()
        .page(
            "/article",
            format!("<p>{} <a href='http://localhost:{}/copy'>c</a>", words(0, 300), site.port()),
        )
        .start_blocking();
    let server = Server::beside(&[&other], &["--allow-address", &format!("localhost:{}", site.port())]);
    let article = other.url("/article");
    let made = server.ask(&json!({"action": "search", "article_url": article}));
    assert_eq!(
        (&made["sources"][0]["found_by"], &made["violation"]),
        (&json!("links"), &json!(true)),
        "{made:#}"
    );
    let made = server.ask(
        &json!({"action": "search", "article_url": article, "use_links": "0", "source": site.url("/other")}),
    );
    assert_eq!(made["sources"].as_array().unwrap().len(), 1, "{made:#}");
}

#[test]
fn internal_addresses_are_not_fetched_for_clients() {
    let site = site();
    let server = Server::start(&[]);
    for path in [
        "http://127.0.0.1",
        "http://localhost",
        "http://[::1]",
        "http://2130706433",
        "http://0.0.0.0",
        "http://127.1",
    ] {
        for port in [site.port(), server.address.port()] {
            let url = format!("{path}:{port}/copy");
            let made = server.ask(&json!({"action": "compare", "article": words(0, 30), "url": url}));
            assert_eq!(made["error"]["code"], "no_data", "{url}: {made}");
            assert!(made["error"]["info"].as_str().unwrap().contains("address_refused"), "{url}: {made}");
            let made = server.ask(&json!({"action": "compare", "article_url": url, "text": "x"}));
            assert_eq!(made["error"]["code"], "bad_article", "{url}: {made}");
        }
    }
    assert_eq!(site.targets(), Vec::<String>::new());
    // A redirect from an allowed address does not lead there, either.
    let to = site.url("/copy");
    let outside = Site::builder().route("/*", move |_| Answer::redirect(302, to.as_str())).start_blocking();
    let server = Server::beside(&[&outside], &[]);
    let made = server.ask(&json!({"action": "compare", "article": words(0, 30), "url": outside.url("/x")}));
    assert_eq!(made["error"]["code"], "no_data", "{made}");
    assert_eq!(site.targets(), Vec::<String>::new());
}

#[test]
fn metrics_count_the_work_that_was_done() {
    let site = site();
    let server = Server::beside(&[&site], &[]);
    assert_eq!(server.get("/healthz").body, "ok\n");
    server.ask(&json!({"action": "compare", "article": words(0, 30), "text": words(0, 30)}));
    server.ask(&json!({"action": "compare", "article": words(0, 30)}));
    server.ask(&json!({"action": "compare", "article": words(0, 30), "url": site.url("/fails")}));
    server.ask(&json!({"action": "search", "article": words(0, 300), "source": [site.url("/fails"), site.url("/copy")]}));
    let text = server.get("/metrics").body;
    assert_eq!(check_metrics(&text), "");
    for line in [
        "huntsman_serve_requests_total{route=\"api\",status=\"200\"} 4",
        "huntsman_serve_requests_total{route=\"health\",status=\"200\"} 1",
        "huntsman_serve_checks_total{action=\"compare\",outcome=\"ok\"} 1",
        "huntsman_serve_checks_total{action=\"compare\",outcome=\"no_data\"} 1",
        "huntsman_serve_checks_total{action=\"search\",outcome=\"ok\"} 1",
        "huntsman_serve_check_seconds_count{action=\"compare\"} 2",
        "huntsman_serve_sources_total{status=\"compared\"} 2",
        "huntsman_serve_sources_total{status=\"failed\"} 1",
        "huntsman_serve_checks_in_flight 0",
        "huntsman_downloader_response_status_count_500 2",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
}

#[cfg(unix)]
#[test]
fn a_signal_lets_requests_in_progress_end_and_a_second_one_does_not() {
    let signal = |server: &Server| {
        let sent = Command::new("kill").args(["-INT", &server.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    };
    let site = site();
    for signals in [1, 2] {
        let mut server = Server::beside(&[&site], &["--max-time", "3"]);
        let question = json!({"action": "compare", "article": words(0, 30), "url": site.url("/hangs")});
        let mut stream = server.connect();
        stream
            .write_all(server.posted("/api.json", "application/json", &question.to_string(), &[]).as_bytes())
            .unwrap();
        server.wait_for_metric("huntsman_serve_checks_in_flight", 1);
        signal(&server);
        let mut line = String::new();
        server.stderr.read_line(&mut line).unwrap();
        assert!(line.contains("stopping"), "{line}");
        // The system may take a connection just before the listener is closed; it gets no answer then.
        let is_answered = TcpStream::connect(server.address).is_ok_and(|mut other| {
            let mut answer = Vec::new();
            let is_sent = other.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").is_ok();
            is_sent && other.read_to_end(&mut answer).is_ok() && !answer.is_empty()
        });
        assert!(!is_answered, "no other client is let in");
        if signals == 2 {
            signal(&server);
            assert_eq!(answered(stream).status, 0);
        } else {
            assert_eq!(answered(stream).json()["error"]["code"], "timeout");
        }
        assert_eq!(server.child.wait().unwrap().code(), Some(130));
    }
}
