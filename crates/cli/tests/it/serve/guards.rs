//! What the server refuses, and what a client cannot take from the others.

use super::*;

#[test]
fn with_a_token_only_requests_that_have_it_are_served() {
    let directory = tempfile::tempdir().unwrap();
    let refused = run(huntsman(directory.path()).args(["serve", "--listen", "0.0.0.0:0"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--token"), "{}", refused.stderr);
    let server = Server::start_with(&[], &[("HUNTSMAN_TOKEN", "open-sesame")]);
    let question = json!({"action": "compare", "article": words(0, 30), "text": words(0, 30)}).to_string();
    let ask = |headers: &[(&str, &str)]| server.post("/api.json", "application/json", &question, headers);
    for headers in
        [&[][..], &[("Authorization", "Bearer open-sesam")], &[("Authorization", "Basic open-sesame")]]
    {
        let answer = ask(headers);
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")), "{headers:?}");
        assert_eq!(answer.json()["error"]["code"], "not_logged_in");
    }
    assert_eq!(ask(&[("Authorization", "Bearer open-sesame")]).json()["status"], "ok");
    // With the token, pages of other sites may call the API as well, as in the reference.
    let cross = [("Authorization", "Bearer open-sesame"), ("Origin", "https://wiki.example")];
    assert_eq!(ask(&cross).json()["status"], "ok");
    let preflight = server.exchange(
        format!("OPTIONS /api.json HTTP/1.1\r\nHost: {}\r\nOrigin: https://wiki.example\r\nConnection: close\r\n\r\n", server.address).as_bytes(),
    );
    assert_eq!(
        (preflight.status, preflight.header("access-control-allow-headers")),
        (204, Some("authorization, content-type"))
    );
    let (article, source) = (words(0, 30), words(0, 30));
    let fields = [("article", article.as_str()), ("source", &source), ("token", "open-sesame")];
    assert_eq!(server.form("/compare", &fields[..2], &[]).status, 401);
    assert_eq!(server.form("/compare", &fields, &[]).status, 200);
    // A token in a URL would be logged.
    assert_eq!(server.get("/api.json?action=compare&article=a&text=b&token=open-sesame").status, 401);
    assert_eq!((server.get("/metrics").status, server.get("/healthz").status), (401, 200));
    assert!(server.get("/").body.contains("name=\"token\""));
}

#[test]
fn clients_without_the_token_do_not_delay_others() {
    let server = Server::start_with(&[], &[("HUNTSMAN_TOKEN", "open-sesame")]);
    let question = json!({"action": "compare", "article": words(0, 30), "text": words(0, 30)}).to_string();
    let is_served = |during: &str| {
        let known = [("Authorization", "Bearer open-sesame")];
        let answer = server.post("/api.json", "application/json", &question, &known);
        assert_eq!(answer.status, 200, "{during}: {answer:?}");
        let (article, source) = (words(0, 30), words(0, 30));
        let fields = [("article", article.as_str()), ("source", &source), ("token", "open-sesame")];
        let answer = server.form("/compare", &fields, &[]);
        assert_eq!(answer.status, 200, "{during}: {answer:?}");
    };
    let begin = |request: String| {
        let mut stream = server.connect();
        // The request may be refused before all of it was sent.
        let _ = stream.write_all(request.as_bytes());
        stream
    };
    let head = |content_type: &str| {
        let host = server.address;
        format!("POST /api.json HTTP/1.1\r\nHost: {host}\r\n{content_type}Content-Length: 5000000\r\n\r\n")
    };
    // If the headers are enough to decide, the server responds without the body.
    for content_type in ["", "Content-Type: application/json\r\n"] {
        let answer = answered(begin(head(content_type)));
        assert_eq!((answer.status, answer.header("connection")), (401, Some("close")), "{answer:?}");
        assert_eq!(answer.json()["error"]["code"], "not_logged_in");
    }
    // The token of a form is at its end, and these forms never send it.
    let form =
        head("Content-Type: application/x-www-form-urlencoded\r\n") + "article=" + &"a".repeat(1 << 20);
    let open: Vec<TcpStream> = (0..60).map(|_| begin(form.clone())).collect();
    is_served("bodies without an end");
    drop(open);
    let many = format!("GET /style.css HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).repeat(2_000);
    let open: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = server.connect();
            stream.set_nonblocking(true).unwrap();
            let _ = stream.write(many.as_bytes());
            stream
        })
        .collect();
    is_served("clients that pipeline and do not read");
    drop(open);
}

/// The peak resident memory of a process, in MiB.
#[cfg(target_os = "linux")]
fn peak_mib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() >> 10
}

#[cfg(target_os = "linux")]
#[test]
fn large_comparisons_share_the_memory_and_wait_for_each_other() {
    let server = Server::start(&["--max-time", "600"]);
    // Words of one letter take most memory.
    let letters = |step: usize| -> String {
        (0..300_000).map(|n| ["a ", "b ", "c ", "d "][(n * step + n * n / 7) % 4]).collect()
    };
    let question = json!({"action": "compare", "article": letters(3), "text": letters(5), "detail": true});
    let posted = server.posted("/api.json", "application/json", &question.to_string(), &[]);
    let one = server.exchange(posted.as_bytes());
    assert_eq!(one.status, 200, "{one:?}");
    let alone = peak_mib(server.child.id());
    std::thread::scope(|scope| {
        let asked: Vec<_> =
            (0..8).map(|_| scope.spawn(|| server.exchange(posted.as_bytes()).status)).collect();
        let statuses: Vec<u16> = asked.into_iter().map(|status| status.join().unwrap()).collect();
        assert!(statuses.iter().all(|status| matches!(status, 200 | 503)), "{statuses:?}");
        assert!(statuses.contains(&200), "{statuses:?}");
    });
    let together = peak_mib(server.child.id());
    assert!(together < 512, "{together} MiB, and {alone} MiB for one");
}

#[test]
fn other_names_and_pages_of_other_sites_are_refused() {
    let server = Server::start(&[]);
    for (host, status) in [
        ("rebound.example", 421),
        ("127.0.0.1.rebound.example:80", 421),
        ("localhost:1", 200),
        ("[::1]", 200),
    ] {
        assert_eq!(server.get_with("/", &[("Host", host)]).status, status, "{host}");
        assert_eq!(server.get_with("/api.json?action=sites", &[("Host", host)]).status, status, "{host}");
    }
    assert_eq!(server.exchange(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").status, 421);
    assert_eq!(
        server
            .exchange(b"GET http://rebound.example/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .status,
        421
    );
    let own = format!("http://{}", server.address);
    for (headers, status) in [
        (&[("Origin", "https://evil.example")][..], 403),
        (&[("Origin", "null")], 403),
        (&[("Sec-Fetch-Site", "cross-site")], 403),
        (&[("Sec-Fetch-Site", "same-site"), ("Origin", &own)], 403),
        (&[("Sec-Fetch-Site", "same-origin"), ("Origin", &own)], 200),
        (&[("Origin", &own)], 200),
        (&[], 200),
    ] {
        let answer = server.form("/compare", &[("article", "a b c"), ("source", "a b c")], headers);
        assert_eq!(answer.status, status, "{headers:?}");
        let target = "/api.json?action=compare&article=a&text=b";
        let answer = server.get_with(target, headers);
        assert_eq!(answer.status, status, "{headers:?}: {answer:?}");
    }
}

#[test]
fn requests_that_are_too_large_or_broken_are_refused_and_cost_nothing_else() {
    let server = Server::start(&[]);
    let head = |more: &str| {
        let host = server.address;
        format!("POST /api.json HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{more}\r\n")
    };
    assert_eq!(server.exchange(head("Content-Length: 99999999999\r\n").as_bytes()).status, 413);
    let mut chunked = head("Transfer-Encoding: chunked\r\n").into_bytes();
    let chunk = [b"100000\r\n".as_slice(), &vec![b' '; 0x10_0000], b"\r\n"].concat();
    (0..15).for_each(|_| chunked.extend_from_slice(&chunk));
    assert!(matches!(server.exchange(&chunked).status, 0 | 413));
    // A client that is still sending may miss the response.
    let refused = |headers: &str| {
        let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
        matches!(server.exchange(request.as_bytes()).status, 0 | 431)
    };
    assert!(refused(&format!("X: {}\r\n", "a".repeat(300_000))));
    assert!(refused(&"X: y\r\n".repeat(200)));
    assert_eq!(server.exchange(b"nonsense\r\n\r\n").status, 400);
    assert_eq!(server.exchange(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n").status, 400);
    for (method, target, status) in [
        ("DELETE", "/api.json", 405),
        ("POST", "/", 405),
        ("GET", "/compare", 405),
        ("GET", "/x", 404),
        ("GET", "/../etc/passwd", 404),
    ] {
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(server.exchange(request.as_bytes()).status, status, "{method} {target}");
    }
    let long = "x".repeat((2 << 20) + 1);
    assert_eq!(
        server.ask(&json!({"action": "compare", "article": long, "text": "y"}))["error"]["code"],
        "bad_text"
    );
    // Two texts of the maximum size, in the encoding in which they are largest.
    let text = "é ".repeat((2 << 20) / 3);
    let answer = server.form("/api.json", &[("action", "compare"), ("article", &text), ("text", &text)], &[]);
    assert_eq!(
        answer.json()["best"]["violation"],
        "suspected",
        "{}",
        &answer.body[..200.min(answer.body.len())]
    );
}

#[test]
fn a_head_that_arrives_too_slowly_ends_its_connection_and_delays_no_other() {
    let server = Server::start(&[]);
    let start = Instant::now();
    let mut slow: Vec<TcpStream> = (0..100).map(|_| server.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ").unwrap();
    }
    assert_eq!(server.get("/healthz").status, 200);
    for stream in slow {
        let answer = answered(stream);
        assert!(matches!(answer.status, 0 | 408), "{answer:?}");
    }
    assert!(start.elapsed() > Duration::from_secs(5));
    // This request's connection is the one; the others are counted until shortly after they were closed.
    server.wait_for_metric("huntsman_serve_connections", 1);
}

#[test]
fn more_checks_than_are_done_at_once_wait_and_still_more_are_refused() {
    let site = site();
    let server = Server::beside(&[&site], &["--max-checks", "1", "--max-time", "20"]);
    let question =
        json!({"action": "compare", "article": words(0, 30), "url": site.url("/hangs")}).to_string();
    let posted = server.posted("/api.json", "application/json", &question, &[]);
    let begin = || {
        let mut stream = server.connect();
        stream.write_all(posted.as_bytes()).unwrap();
        stream
    };
    let first = begin();
    server.wait_for_metric("huntsman_serve_checks_in_flight", 1);
    let waiting: Vec<TcpStream> = (0..4).map(|_| begin()).collect();
    server.wait_for_metric("huntsman_serve_checks_waiting", 4);
    let refused = server.exchange(posted.as_bytes());
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("30")), "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "busy");
    // A client that disconnects no longer waits.
    for stream in waiting {
        stream.shutdown(Shutdown::Both).unwrap();
    }
    server.wait_for_metric("huntsman_serve_checks_waiting", 0);
    assert_eq!(answered(first).json()["error"]["code"], "timeout");
    server.wait_for_metric("huntsman_serve_checks_in_flight", 0);
}
