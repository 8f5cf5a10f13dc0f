//! The hostile web, tested in both directions: a careful client passes, and every kind of carelessness is reported.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use huntsman_testkit::{BehaviourInfo, Chaos, Family, Verdict};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::{Position, Url};

/// The time limit of a response: long enough for a busy machine, short enough for a test.
const HOLD: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_millis(150);

thread_local! {
    /// Number of requests that this test sent; each test runs on a thread of its own. On a busy machine the test bed
    /// may read a request only after its client has left.
    static ASKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

async fn connect(url: &Url) -> TcpStream {
    let host = url.host_str().expect("a host").to_owned();
    let port = url.port().expect("a port");
    TcpStream::connect((host, port)).await.expect("the bed listens")
}

fn target(url: &Url) -> &str {
    &url[Position::BeforePath..Position::AfterQuery]
}

/// The response within a limit of bytes and of time; then the client closes the connection.
async fn ask(url: &Url, headers: &str, max_bytes: usize, patience: Duration) -> Vec<u8> {
    let mut stream = connect(url).await;
    let head = format!("GET {} HTTP/1.1\r\nHost: bed\r\nConnection: close\r\n{headers}\r\n", target(url));
    stream.write_all(head.as_bytes()).await.expect("the bed reads");
    ASKED.set(ASKED.get() + 1);
    let mut answer = Vec::new();
    let read = async {
        let mut limited = (&mut stream).take(max_bytes as u64);
        let _ = limited.read_to_end(&mut answer).await;
    };
    let _ = timeout(patience, read).await;
    answer
}

async fn glance(url: &Url) -> Vec<u8> {
    ask(url, "", 20_000, PATIENCE).await
}

async fn glance_with(url: &Url, headers: &str) {
    ask(url, headers, 20_000, Duration::from_secs(2)).await;
}

/// Waits until every request is recorded and has ended, so that the verdict sees all of them.
async fn settle(chaos: &Chaos) {
    for _ in 0..2_000 {
        let seen = chaos.record().requests;
        if seen.len() >= ASKED.get() && seen.iter().all(|seen| seen.ended.is_some()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("requests still run");
}

async fn verdicts(chaos: &Chaos) -> HashMap<&'static str, Verdict> {
    settle(chaos).await;
    chaos.verdict().into_iter().map(|verdict| (verdict.name, verdict)).collect()
}

/// Whether a behaviour failed for this reason.
async fn fails(chaos: &Chaos, name: &str, why: &str) -> bool {
    let verdicts = verdicts(chaos).await;
    let verdict = &verdicts[name];
    !verdict.pass && verdict.why.contains(why)
}

async fn only(name: &str) -> (Chaos, BehaviourInfo) {
    let chaos = Chaos::builder().hold(HOLD).only(name).start().await;
    let listed = chaos.behaviours().remove(0);
    ASKED.set(0);
    (chaos, listed)
}

fn below(listed: &BehaviourInfo, rest: &str) -> Url {
    let mut url = listed.url.clone();
    url.set_path(&format!("{}/{rest}", listed.url.path().trim_end_matches('/')));
    url
}

/// Whether a host is closed for now, so that only its robots.txt may be requested.
fn is_closed(listed: &BehaviourInfo) -> bool {
    listed.family == Family::Robots
        && listed.url.path() == "/"
        && listed.poison.is_some()
        && listed.kept.is_none()
}

#[tokio::test]
async fn there_are_many_behaviours_with_names_of_their_own() {
    let chaos = Chaos::builder().dedup_traps().sitemaps().start().await;
    let listed = chaos.behaviours();
    let names: HashSet<&str> = listed.iter().map(|listed| listed.name).collect();
    assert_eq!(names.len(), listed.len());
    assert!(names.len() >= 200, "{}", names.len());
    for family in Family::ALL {
        assert!(listed.iter().filter(|listed| listed.family == family).count() >= 10, "{family}");
    }
    let abouts: HashSet<&str> = listed.iter().map(|listed| listed.about).collect();
    assert_eq!(abouts.len(), listed.len());
}

#[tokio::test]
async fn every_answer_ends_by_itself() {
    let chaos = Chaos::builder().sitemaps().hold(Duration::from_millis(300)).start().await;
    let mut tasks = tokio::task::JoinSet::new();
    for listed in chaos.behaviours() {
        tasks.spawn(async move { ask(&listed.url, "", usize::MAX, Duration::from_secs(60)).await.len() });
        if tasks.len() > 8 {
            tasks.join_next().await;
        }
    }
    while let Some(end) = tasks.join_next().await {
        assert!(end.expect("a whole answer") <= 64 << 20);
    }
    settle(&chaos).await;
}

#[tokio::test]
async fn a_careful_client_passes() {
    let chaos = Chaos::builder().sitemaps().hold(HOLD).crawl_delay(Duration::from_millis(20)).start().await;
    for url in chaos.control_urls() {
        glance(&url).await;
    }
    for listed in chaos.behaviours() {
        if listed.url.path() == "/" {
            glance(&below(&listed, "robots.txt")).await;
        }
        if listed.name == "polite_site" {
            for path in [
                "",
                "room/0",
                "room/1",
                "room/2",
                "room/3",
                "moved",
                "arrived",
                "busy",
                "busy",
                "shut/ajar/1",
                "kept",
            ] {
                tokio::time::sleep(Duration::from_millis(25)).await;
                glance(&below(&listed, path)).await;
            }
            continue;
        }
        if !is_closed(&listed) {
            glance(&listed.url).await;
        }
        if let Some(kept) = &listed.kept {
            glance(kept).await;
        }
    }
    settle(&chaos).await;
    chaos.assert_passed();
    assert!(chaos.report().ends_with(&format!("{} passed, 0 failed", chaos.verdict().len())));
}

#[tokio::test]
async fn nothing_asked_for_is_not_reached() {
    let chaos = Chaos::start().await;
    let verdicts = verdicts(&chaos).await;
    for listed in chaos.behaviours() {
        assert!(
            !verdicts[listed.name].pass && verdicts[listed.name].why.contains("not reached"),
            "{}",
            listed.name
        );
    }
    assert!(!verdicts["control_pages"].pass);
    assert!(chaos.report().lines().next().is_some_and(|line| line.starts_with("FAIL ")));
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| chaos.assert_passed()));
    assert!(panic.is_err());
}

#[tokio::test]
async fn one_request_too_many_fails() {
    let chaos = Chaos::builder().hold(HOLD).start().await;
    for listed in chaos.behaviours() {
        for _ in 0..=listed.requests {
            // The client sends a request and leaves at once.
            ask(&listed.url, "", 1, Duration::from_millis(40)).await;
        }
    }
    let verdicts = verdicts(&chaos).await;
    for listed in chaos.behaviours() {
        let complaint = format!("{} requests, {} allowed", listed.requests + 1, listed.requests);
        assert!(verdicts[listed.name].why.contains(&complaint), "{}", verdicts[listed.name]);
    }
}

#[tokio::test]
async fn marked_links_are_judged() {
    let chaos = Chaos::builder().hold(HOLD).start().await;
    for listed in chaos.behaviours() {
        ask(&listed.url, "", 1, Duration::from_millis(40)).await;
        if let Some(poison) = &listed.poison {
            glance(poison).await;
        }
    }
    let verdicts = verdicts(&chaos).await;
    for listed in chaos.behaviours() {
        let why = &verdicts[listed.name].why;
        assert_eq!(why.contains("must not be"), listed.poison.is_some(), "{}: {why}", listed.name);
        assert_eq!(why.contains("was not followed"), listed.kept.is_some(), "{}: {why}", listed.name);
    }
}

/// The text of a response: both as received and, as far as they are valid, with chunks and codings decoded.
fn text_of(answer: &[u8]) -> String {
    use std::io::Read;
    let at = answer.windows(4).position(|window| window == b"\r\n\r\n").map_or(0, |at| at + 4);
    let head = String::from_utf8_lossy(&answer[..at]).to_lowercase();
    let mut body = answer[at..].to_vec();
    let raw = String::from_utf8_lossy(&body).into_owned();
    if head.contains("transfer-encoding: chunked") {
        let mut rest = &body[..];
        let mut whole = Vec::new();
        while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
            let size = String::from_utf8_lossy(&rest[..end]).into_owned();
            let Ok(size) = usize::from_str_radix(&size, 16) else { break };
            let data = &rest[end + 2..];
            whole.extend_from_slice(&data[..size.min(data.len())]);
            rest = data.get(size + 2..).unwrap_or_default();
        }
        body = whole;
    }
    while body.starts_with(b"\x1f\x8b") {
        let mut inner = Vec::new();
        let _ = flate2::read::GzDecoder::new(&body[..]).take(100_000).read_to_end(&mut inner);
        body = inner;
    }
    if body.starts_with(b"\xff\xfe<\0") {
        body.retain(|byte| *byte != 0);
    }
    let undone = String::from_utf8_lossy(&body);
    if undone == raw { head + &raw } else { format!("{head}{undone}{raw}") }
}

#[tokio::test]
async fn kept_and_poisoned_links_are_really_offered() {
    // These lead to the link by further steps (redirects, other pages), or spell it in a special way.
    let indirect = [
        "ten_hops",
        "relative_location",
        "raw_utf8_location",
        "wall_of_cookies",
        "backslashes",
        "blanks_around",
        "many",
        "deleted",
        "secret_in_query",
        "to_data",
        "zlib_bomb",
        "raw_deflate_bomb",
        "brotli_bomb",
        "zstd_in_gzip_bomb",
        "close_in_head",
        "unspecified",
        "names_itself",
        "circle",
        "index_chain",
        "two_hundred_thousand",
        "nests_deep",
    ];
    let chaos = Chaos::builder().sitemaps().hold(Duration::from_secs(1)).start().await;
    let mut checked = 0;
    for listed in chaos.behaviours().into_iter().filter(|listed| listed.url.path() != "/") {
        if indirect.contains(&listed.name) {
            continue;
        }
        let wanted = [&listed.kept, &listed.poison].into_iter().flatten();
        for url in wanted {
            // If a page is fine only at the second attempt, the first response has no link.
            let mut text = text_of(&ask(&listed.url, "", 60_000, Duration::from_millis(1_200)).await);
            text.push_str(&text_of(&ask(&listed.url, "", 60_000, Duration::from_millis(1_200)).await));
            assert!(text.contains(url.path()), "{}: {text:.3000}", listed.name);
            checked += 1;
        }
    }
    assert!(checked > 120, "{checked}");
}

#[tokio::test]
async fn the_index_leads_to_everything() {
    let chaos = Chaos::builder().sitemaps().silent_hosts(2).start().await;
    let mut seen = HashSet::from([chaos.seed_url()]);
    let mut queue = vec![chaos.seed_url()];
    while let Some(url) = queue.pop() {
        let text = text_of(&ask(&url, "", 60_000, Duration::from_secs(5)).await);
        for href in text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let link = url.join(href).expect("an index has good links");
            let is_index = link.path().ends_with('/') && link.path() != "/";
            if seen.insert(link.clone()) && (is_index || link.path().starts_with("/plain/")) {
                queue.push(link);
            }
        }
    }
    for url in chaos.control_urls().into_iter().chain(chaos.behaviours().into_iter().map(|listed| listed.url))
    {
        assert!(seen.contains(&url), "{url}");
    }
    let silent =
        seen.iter().filter(|url| url.host_str().is_some_and(|host| host.starts_with("127.0.1."))).count();
    assert_eq!(silent, 2);
}

#[tokio::test]
async fn holding_on_to_silence_fails() {
    let chaos = Chaos::builder().hold(Duration::from_millis(500)).only("silent").start().await;
    let listed = chaos.behaviours().remove(0);
    ask(&listed.url, "", 1_000, Duration::from_secs(10)).await;
    assert!(fails(&chaos, "silent", "held for").await);
}

#[tokio::test]
async fn taking_too_many_bytes_fails() {
    let chaos = Chaos::builder().only("endless_chunks").only("many_lines").start().await;
    for listed in chaos.behaviours() {
        ask(&listed.url, "", 40 << 20, Duration::from_secs(60)).await;
    }
    assert!(fails(&chaos, "endless_chunks", "took").await);
    assert!(fails(&chaos, "many_lines", "took").await);
}

#[tokio::test]
async fn coming_back_too_early_fails() {
    for name in ["too_many_once", "too_many_always", "busy_until_date"] {
        let (chaos, listed) = only(name).await;
        glance(&listed.url).await;
        glance(&listed.url).await;
        assert!(fails(&chaos, name, "came back after").await, "{name}");
    }
}

#[tokio::test]
async fn cookies_that_must_not_be_sent_are_seen() {
    let chaos = Chaos::builder().family(Family::Cookies).start().await;
    let plain = chaos.control_urls().pop().expect("a control page");
    let many: String = (0..51).map(|number| format!("n{number}=1; ")).collect();
    let cases = [
        ("for_a_stranger", "theirs=1".to_owned()),
        ("bad_domains", "a=1; suffix=1".to_owned()),
        ("many", many.trim_end_matches("; ").to_owned()),
        ("huge", "huge=h".to_owned()),
        ("secure_only", "locked=1".to_owned()),
        ("control_characters", "ctl=\u{80}".to_owned()),
        ("narrow_path", "narrow=1".to_owned()),
    ];
    for (name, cookies) in &cases {
        assert!(
            !fails(&chaos, name, "cookie").await && !fails(&chaos, name, "Cookie").await,
            "{name} before"
        );
        glance_with(&plain, &format!("Cookie: {cookies}\r\n")).await;
        let found = fails(&chaos, name, "cookie").await || fails(&chaos, name, "Cookie").await;
        assert!(found, "{name} after");
    }
    let of =
        |name: &str| chaos.behaviours().into_iter().find(|listed| listed.name == name).expect("a behaviour");
    let deleted = of("deleted").kept.expect("a link");
    glance_with(&plain, "Cookie: brief=1\r\n").await;
    assert!(!fails(&chaos, "deleted", "taken back").await);
    glance_with(&deleted, "Cookie: brief=1\r\n").await;
    assert!(fails(&chaos, "deleted", "taken back").await);
}

#[tokio::test]
async fn what_a_stranger_must_not_get_is_seen() {
    let chaos = Chaos::builder().family(Family::Cookies).start().await;
    let at = |path: &str| {
        let mut url = chaos.seed_url();
        url.set_host(Some("127.0.0.70")).expect("an address");
        url.set_path(path);
        url
    };
    let origin = chaos.origin(Family::Cookies);
    glance_with(&at("/look/secret_in_query"), &format!("Referer: {origin}\r\n")).await;
    assert!(verdicts(&chaos).await["stranger_gets_no_secrets"].pass);
    assert!(!fails(&chaos, "secret_in_query", "was told").await, "only the origin");
    glance_with(&at("/look/secret_in_query"), &format!("Referer: {origin}cookies/x?token=1\r\n")).await;
    assert!(fails(&chaos, "secret_in_query", "was told").await);
    glance_with(&at("/look/redirect_to_a_stranger"), "Cookie: onway=1\r\n").await;
    assert!(fails(&chaos, "redirect_to_a_stranger", "cookies followed").await);
    glance_with(&at("/look/asks_for_a_password"), "Authorization: Basic eDp5\r\n").await;
    assert!(fails(&chaos, "asks_for_a_password", "password").await);
    assert!(fails(&chaos, "stranger_gets_no_secrets", "authorization sent").await);
    glance_with(&at("/look/kept_method_to_a_stranger"), "Content-Length: 2\r\n\r\nhi").await;
    assert!(fails(&chaos, "kept_method_to_a_stranger", "a body followed").await);
}

#[tokio::test]
async fn touching_the_inside_fails() {
    let chaos = Chaos::builder().family(Family::Addresses).family(Family::Redirects).start().await;
    let mut inside = chaos.seed_url();
    inside.set_host(Some("127.0.0.80")).expect("an address");
    assert!(verdicts(&chaos).await["inside_is_untouched"].pass);
    drop(connect(&inside).await);
    let start = std::time::Instant::now();
    while verdicts(&chaos).await["inside_is_untouched"].pass {
        assert!(start.elapsed() < Duration::from_secs(5), "a mere connection counts");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for name in ["inside_octal", "inside_base", "to_inside", "refresh_to_inside"] {
        assert!(!fails(&chaos, name, "reached the inside").await, "{name}");
        inside.set_path(&format!("/panel/{name}"));
        glance(&inside).await;
        assert!(fails(&chaos, name, "reached the inside").await, "{name}");
    }
    let of =
        |name: &str| chaos.behaviours().into_iter().find(|listed| listed.name == name).expect("a behaviour");
    let page = text_of(&glance(&of("other_port").url).await);
    let link = page.split("href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
    assert!(!chaos.exceptions().iter().any(|exception| link.contains(exception)), "{link}");
    let answer = ask(&Url::parse(link).expect("a URL"), "", 20_000, Duration::from_secs(5)).await;
    assert!(answer.ends_with(b"inside"));
    ASKED.set(ASKED.get() - 1); // answered, but by another server with its own record
    assert!(fails(&chaos, "other_port", "reached the other port").await);
    assert!(fails(&chaos, "inside_is_untouched", "not listed").await);
    let mut unspecified = chaos.seed_url();
    unspecified.set_path("/addresses/unspecified/poison");
    glance(&unspecified).await;
    assert!(fails(&chaos, "unspecified", "0.0.0.0").await);
    glance_with(&of("line_breaks").url, "X-Injected: yes\r\n").await;
    assert!(fails(&chaos, "line_breaks", "put a header").await);
}

#[tokio::test]
async fn a_connection_with_leftovers_must_not_be_used_again() {
    let (chaos, listed) = only("second_answer_behind").await;
    let mut stream = connect(&listed.url).await;
    let request = format!("GET {} HTTP/1.1\r\nHost: bed\r\n\r\n", listed.url.path());
    stream.write_all(request.as_bytes()).await.expect("the bed reads");
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains("/poison") {
        assert_ne!(stream.read_buf(&mut bytes).await.expect("an answer"), 0);
    }
    assert!(String::from_utf8_lossy(&bytes).matches("HTTP/1.1 200 OK").count() == 2);
    assert!(!fails(&chaos, listed.name, "leftovers").await);
    let plain = chaos.control_urls().pop().expect("a control page");
    stream
        .write_all(format!("GET {} HTTP/1.1\r\n\r\n", plain.path()).as_bytes())
        .await
        .expect("the bed reads");
    while !String::from_utf8_lossy(&bytes)
        .contains("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length")
    {
        assert_ne!(stream.read_buf(&mut bytes).await.expect("an answer"), 0);
    }
    let start = std::time::Instant::now();
    while !fails(&chaos, listed.name, "leftovers").await {
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}

#[tokio::test]
async fn haste_on_the_polite_site_fails() {
    let chaos = Chaos::builder().crawl_delay(Duration::from_secs(5)).only("polite_site").start().await;
    let polite = chaos.behaviours().remove(0);
    let robots = text_of(&glance(&below(&polite, "robots.txt")).await);
    assert!(robots.contains("Crawl-delay: 5\n"), "{robots}");
    assert!(!fails(&chaos, "polite_site", ", before 5000 ms").await);
    glance(&polite.url).await;
    assert!(fails(&chaos, "polite_site", ", before 5000 ms").await);
    assert!(fails(&chaos, "polite_site", "not asked for: /room/0 ").await);
    glance(&below(&polite, "shut/door")).await;
    assert!(fails(&chaos, "polite_site", "what robots.txt forbids").await);
}

#[tokio::test]
async fn rules_for_the_whole_test_bed_are_judged() {
    let chaos = Chaos::builder().family(Family::Bodies).start().await;
    let at = |path: &str| {
        let mut url = chaos.seed_url();
        url.set_path(path);
        url
    };
    glance(&at("/robots.txt")).await;
    let before = verdicts(&chaos).await;
    for name in ["robots_once_per_host", "closed_by_robots", "requests_are_well_formed"] {
        assert!(before[name].pass, "{name}");
    }
    glance(&at("/robots.txt")).await;
    glance(&at("/closed/x")).await;
    let mut stream = connect(&chaos.seed_url()).await;
    stream.write_all(b"GET /a\x01b HTTP/1.1\r\n\r\n").await.expect("the bed reads");
    let _ = stream.read_to_end(&mut Vec::new()).await;
    assert!(fails(&chaos, "robots_once_per_host", "2 times on 127.0.0.1").await);
    assert!(fails(&chaos, "closed_by_robots", "/closed/x").await);
    assert!(fails(&chaos, "requests_are_well_formed", "GET /a").await);
}

#[tokio::test]
async fn one_host_has_everything_but_what_needs_its_own() {
    let chaos = Chaos::builder().one_host().start().await;
    for listed in chaos.behaviours() {
        let is_main = listed.url.host_str() == Some("127.0.0.1");
        assert_eq!(is_main, listed.url.path() != "/", "{}", listed.name);
    }
    let answer = text_of(&glance(&chaos.behaviours()[0].url).await);
    assert!(answer.starts_with("http/1.1 200 ok"), "{answer}");
}

#[tokio::test]
async fn a_choice_serves_nothing_else() {
    let chaos = Chaos::builder().family(Family::Time).only("gzip_bomb").only("session_ids").start().await;
    let listed = chaos.behaviours();
    assert!(listed.iter().all(|listed| {
        listed.family == Family::Time || listed.name == "gzip_bomb" || listed.name == "session_ids"
    }));
    assert_eq!(listed.iter().filter(|listed| listed.family != Family::Time).count(), 2);
    assert!(chaos.hosts().contains(&"127.0.0.80".to_owned()));
    assert!(chaos.exceptions().iter().all(|exception| !exception.starts_with("127.0.0.80:")));
}

#[test]
#[should_panic(expected = "there is no behaviour gzip_bomm")]
fn an_unknown_name_is_a_panic_that_names_it() {
    let _ = Chaos::builder().only("gzip_bomm").start_blocking();
}

#[tokio::test]
async fn the_session_trap_never_repeats_an_address_and_runs_dry() {
    let (chaos, listed) = only("session_ids").await;
    let mut seen = HashSet::from([listed.url.clone()]);
    let mut rooms = HashSet::new();
    let mut queue = vec![listed.url.clone()];
    while let Some(url) = queue.pop() {
        let text = text_of(&ask(&url, "", 60_000, Duration::from_secs(5)).await);
        let (_, body) = text.split_once("<p>").expect("a paragraph");
        rooms.insert(body.to_owned());
        for href in text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let link = url.join(href).expect("a link");
            assert!(seen.insert(link.clone()), "{link} twice");
            if seen.len() < 900 {
                queue.push(link);
            }
        }
    }
    assert_eq!(rooms.len(), 6, "six pages behind {} addresses", seen.len());
    assert!(fails(&chaos, "session_ids", "700 allowed").await);
}

#[tokio::test]
async fn sitemaps_are_served_when_wanted_and_named_by_robots_txt() {
    let names = |chaos: &Chaos| -> Vec<&str> {
        let all = chaos.behaviours().into_iter();
        all.filter(|listed| listed.family == Family::Sitemaps).map(|listed| listed.name).collect()
    };
    assert!(names(&Chaos::start().await).is_empty());
    let chaos = Chaos::builder().family(Family::Sitemaps).start().await;
    assert!(names(&chaos).len() > 10);
    let robots = chaos.origin(Family::Sitemaps).join("/robots.txt").expect("a URL");
    let robots = text_of(&glance(&robots).await);
    for listed in chaos.behaviours() {
        assert!(robots.contains(&format!("Sitemap: {}\n", listed.url)), "{}", listed.name);
    }
}
