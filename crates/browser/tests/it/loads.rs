//! What a page asks for, and what becomes of the answers.

use huntsman_browser::{Error, Kind, Rendering};

use crate::kit::{Site, answer, render, rendered, run};

const PAGE: &str = "https://a.test/";

#[test]
fn a_page_is_its_tree_after_its_scripts_and_not_its_source() {
    run(async {
        let source = r#"<!doctype html><title>List</title><link rel=stylesheet href=/look.css><ul></ul><script src=/app.js></script>"#;
        let site = Site::new()
            .html(PAGE, source)
            .with("https://a.test/look.css", "text/css", "li { color: red }")
            .script(
                "https://a.test/app.js",
                "fetch('/items').then(r => r.json()).then(items => { for (const item of items) {
                    const li = document.createElement('li'); li.textContent = item; document.querySelector('ul').append(li); } })",
            )
            .with("https://a.test/items", "application/json", r#"["one", "two & three"]"#)
            .share();
        let page = rendered(&site, PAGE).await;
        assert!(page.html.contains("<ul><li>one</li><li>two &amp; three</li></ul>"), "{}", page.html);
        assert!(page.html.starts_with("<!DOCTYPE html><html><head><title>List</title>"), "{}", page.html);
        assert_eq!(page.static_body, source);
        assert_eq!((page.status, page.url.as_str(), page.is_incomplete), (200, PAGE, false));
        assert_eq!(page.headers, [("Content-Type".to_owned(), "text/html; charset=utf-8".to_owned())]);
        let expected = [
            (PAGE, Kind::Document),
            ("https://a.test/app.js", Kind::Script),
            ("https://a.test/items", Kind::Xhr),
            ("https://a.test/look.css", Kind::Stylesheet),
        ];
        assert_eq!(site.kinds(), expected.map(|(url, kind)| (url.to_owned(), kind)));
        let asked = site.asked();
        assert!(asked.iter().all(|asked| asked.is_main == (asked.url == PAGE)), "{asked:?}");
        assert!(asked.iter().all(|asked| asked.document == PAGE && asked.method == "GET"), "{asked:?}");
        let agents = asked.iter().flat_map(|asked| &asked.headers).filter(|(name, _)| name == "User-Agent");
        assert!(agents.clone().count() > 0 && agents.clone().all(|(_, value)| value == "Huntsman-test/1.0"));
        let order: Vec<_> =
            page.requests.iter().map(|request| (request.url.as_str(), &request.answer)).collect();
        assert_eq!(order[0], (PAGE, &Ok(200)));
        assert_eq!(page.requests.iter().filter(|request| request.kind.is_some()).count(), 4, "{order:?}");
    });
}

#[test]
fn every_request_of_frames_and_workers_is_asked_of_the_network() {
    run(async {
        let page = r#"<!doctype html><link rel=stylesheet href=/s.css><link rel=preload as=script href=/early.js>
            <script type=module src=/m.js></script><iframe src=https://sub.a.test/frame></iframe><iframe src=https://b.test/frame></iframe>
            <iframe sandbox="allow-scripts" srcdoc='<script src=/sandboxed.js></script>'></iframe>
            <script>
            let left = 0;
            const wait = (promise) => { left += 1; promise.then(() => 0, () => 0).then(() => { left -= 1; }); };
            wait(new Promise((done) => { new Worker('/worker.js').onmessage = done; }));
            wait(new Promise((done) => { new Worker(URL.createObjectURL(new Blob(["fetch('https://a.test/of-blob').finally(() => postMessage(1))"]))).onmessage = done; }));
            wait(new Promise((done) => { const port = new SharedWorker('/shared.js').port; port.onmessage = done; port.start(); }));
            wait(navigator.serviceWorker.register('/service.js').then(() => navigator.serviceWorker.ready));
            wait(fetch('https://b.test/api', { headers: { 'x-own': '1' } }));
            wait(fetch('/post', { method: 'POST', body: 'a=1' }));
            wait(new Promise((done) => { const x = new XMLHttpRequest(); x.onloadend = done; x.open('GET', '/xhr'); x.send(); }));
            wait(new Promise((done) => { const events = new EventSource('/events'); events.onerror = () => { events.close(); done(); }; }));
            </script>"#;
        let cors = [
            ("Content-Type", "text/plain"),
            ("Access-Control-Allow-Origin", "*"),
            ("Access-Control-Allow-Headers", "x-own"),
        ];
        let site = Site::new()
            .html(PAGE, page)
            .with("https://a.test/s.css", "text/css", "@import '/s2.css'")
            .with("https://a.test/s2.css", "text/css", "")
            .script("https://a.test/early.js", "")
            .script("https://a.test/m.js", "import '/m2.js'")
            .script("https://a.test/m2.js", "import('/m3.js')")
            .script("https://a.test/m3.js", "")
            .html("https://sub.a.test/frame", "<script src=/of-frame.js></script>")
            .html("https://b.test/frame", "<script src=/of-frame.js></script>")
            .script("https://sub.a.test/of-frame.js", "")
            .script("https://b.test/of-frame.js", "")
            .script("https://a.test/sandboxed.js", "")
            .script(
                "https://a.test/worker.js",
                "importScripts('/imported.js'); fetch('/of-worker').finally(() => postMessage(1))",
            )
            .script("https://a.test/imported.js", "")
            .script(
                "https://a.test/shared.js",
                "onconnect = (e) => fetch('/of-shared').finally(() => e.ports[0].postMessage(1))",
            )
            .script("https://a.test/service.js", "self.oninstall = (e) => e.waitUntil(fetch('/of-service'))")
            .answer("https://b.test/api", answer(200, &cors, "ok"))
            .with("https://a.test/events", "text/event-stream", "data: 1\n\n")
            .share();
        let ready = huntsman_browser::Ready::Expression("left === 0".to_owned());
        let steps = vec![huntsman_browser::Action::WaitFor(ready).into()];
        let page = render(&site, PAGE, Rendering { steps, ..Rendering::default() }).await.unwrap();
        let expected = [
            (PAGE, Kind::Document),
            ("https://a.test/early.js", Kind::Script),
            ("https://a.test/events", Kind::Fetch),
            ("https://a.test/imported.js", Kind::Script),
            ("https://a.test/m.js", Kind::Script),
            ("https://a.test/m2.js", Kind::Script),
            ("https://a.test/m3.js", Kind::Script),
            ("https://a.test/of-blob", Kind::Xhr),
            ("https://a.test/of-service", Kind::Xhr),
            ("https://a.test/of-shared", Kind::Xhr),
            ("https://a.test/of-worker", Kind::Xhr),
            ("https://a.test/post", Kind::Xhr),
            ("https://a.test/s.css", Kind::Stylesheet),
            ("https://a.test/s2.css", Kind::Stylesheet),
            ("https://a.test/sandboxed.js", Kind::Script),
            ("https://a.test/service.js", Kind::Script),
            ("https://a.test/shared.js", Kind::Script),
            ("https://a.test/worker.js", Kind::Script),
            ("https://a.test/xhr", Kind::Xhr),
            ("https://b.test/api", Kind::Xhr),
            ("https://b.test/api", Kind::Xhr),
            ("https://b.test/frame", Kind::Document),
            ("https://b.test/of-frame.js", Kind::Script),
            ("https://sub.a.test/frame", Kind::Document),
            ("https://sub.a.test/of-frame.js", Kind::Script),
        ];
        assert_eq!(site.kinds(), expected.map(|(url, kind)| (url.to_owned(), kind)), "{:?}", page.console);
        let asked = site.asked();
        let one = |url: &str| asked.iter().find(|asked| asked.url == url).unwrap();
        assert_eq!(one("https://b.test/of-frame.js").document, "https://b.test/frame");
        assert_eq!(one("https://b.test/frame").document, PAGE);
        assert_eq!(one("https://a.test/post").body.as_deref(), Some(&b"a=1"[..]));
        let methods: Vec<_> =
            asked.iter().filter(|a| a.url == "https://b.test/api").map(|a| a.method.as_str()).collect();
        assert_eq!(methods, ["OPTIONS", "GET"]);
    });
}

#[test]
fn images_fonts_media_pings_and_what_is_fetched_ahead_are_never_asked() {
    run(async {
        let page = "<!doctype html><link rel=prefetch href=/ahead.html><link rel=icon href=/icon.ico><img src=/picture.png>
            <video src=/film.mp4 preload=auto></video>
            <style>@font-face { font-family: f; src: url(/font.woff2) } body { font-family: f; background: url(/back.png) }</style>text
            <script>navigator.sendBeacon('/beacon', 'x');
            document.querySelector('img').onerror = () => document.body.append('no picture')</script>";
        let site = Site::new().html(PAGE, page).share();
        let page = rendered(&site, PAGE).await;
        assert_eq!(site.kinds(), [(PAGE.to_owned(), Kind::Document)]);
        assert!(page.html.contains("no picture"), "{}", page.html);
        let unasked: Vec<_> = page.requests.iter().filter(|request| request.kind.is_none()).collect();
        assert!(unasked.iter().all(|request| request.answer == Err("unasked".to_owned())), "{unasked:?}");
        for name in ["ahead.html", "picture.png", "film.mp4", "font.woff2", "back.png", "beacon"] {
            assert!(unasked.iter().any(|request| request.url.ends_with(name)), "{name}: {unasked:?}");
        }
        assert!(!page.is_incomplete);
    });
}

#[test]
fn redirects_are_followed_by_the_browser_hop_by_hop() {
    run(async {
        let to = |place: &str| answer(302, &[("Location", place)], "");
        let site = Site::new()
            .answer("http://a.test/1", to("/2"))
            .answer("http://a.test/2", to("https://b.test/3#part"))
            .html("https://b.test/3", "<p id=part>here</p><script>fetch('/4').then(r => r.text()).then(t => document.body.append(t))</script>")
            .answer("https://b.test/4", to("/5"))
            .with("https://b.test/5", "text/plain", "the end")
            .share();
        let page = rendered(&site, "http://a.test/1").await;
        assert_eq!((page.url.as_str(), page.status), ("https://b.test/3#part", 200));
        assert!(page.html.contains("the end"), "{}", page.html);
        let asked: Vec<_> = site.asked().into_iter().map(|asked| (asked.url, asked.is_main)).collect();
        let expected = [
            ("http://a.test/1", true),
            ("http://a.test/2", true),
            ("https://b.test/3", true),
            ("https://b.test/4", false),
            ("https://b.test/5", false),
        ];
        assert_eq!(asked, expected.map(|(url, is_main)| (url.to_owned(), is_main)));
        assert_eq!(
            page.requests.iter().filter_map(|request| request.answer.clone().ok()).collect::<Vec<_>>(),
            [302, 302, 200, 302, 200]
        );
    });
}

#[test]
fn a_refused_request_is_an_error_of_the_network_for_the_page() {
    run(async {
        let site = Site::new()
            .html(PAGE, "<p></p><script src=/denied.js></script><script>fetch('/also').catch(e => { document.querySelector('p').textContent = e.name })</script>")
            .refuse("https://a.test/denied.js", "robots")
            .refuse("https://a.test/also", "third_party")
            .share();
        let page = rendered(&site, PAGE).await;
        assert!(page.html.contains("<p>TypeError</p>"), "{}", page.html);
        let answers: Vec<_> = page.requests[1..].iter().map(|request| request.answer.clone()).collect();
        assert_eq!(
            answers[..2],
            [Err("robots".to_owned()), Err("third_party".to_owned())],
            "{:?}",
            page.requests
        );
    });
}

#[test]
fn a_page_without_a_document_is_an_error_with_the_reason() {
    run(async {
        let site = Site::new()
            .refuse(PAGE, "robots")
            .answer(
                "https://a.test/file",
                answer(
                    200,
                    &[("Content-Type", "application/zip"), ("Content-Disposition", "attachment")],
                    "PK",
                ),
            )
            .share();
        for (url, wanted) in [(PAGE, "robots"), ("https://a.test/file", "net::ERR_ABORTED")] {
            match render(&site, url, Rendering::default()).await {
                Err(Error::NoDocument { reason }) => assert_eq!(reason, wanted),
                other => panic!("{url}: {other:?}"),
            }
        }
        let refused = render(&site, "file:///etc/passwd", Rendering::default()).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    });
}

#[test]
fn errors_of_servers_are_pages_also_without_a_body() {
    run(async {
        let site = Site::new()
            .answer("https://a.test/gone", answer(410, &[("Content-Type", "text/html")], "<h1>Gone</h1>"))
            .answer("https://a.test/empty", answer(500, &[("Content-Type", "text/html")], ""))
            .answer(
                "https://a.test/odd",
                answer(299, &[("Content-Type", "text/html"), ("X-Odd", "a\nb")], "<h1>Odd</h1>"),
            )
            .share();
        let gone = rendered(&site, "https://a.test/gone").await;
        assert_eq!((gone.status, gone.html.contains("<h1>Gone</h1>")), (410, true));
        let empty = rendered(&site, "https://a.test/empty").await;
        assert_eq!(
            (empty.status, empty.html.as_str(), empty.static_body.len()),
            (500, "<html><head></head><body></body></html>", 0)
        );
        let odd = rendered(&site, "https://a.test/odd").await;
        assert_eq!((odd.status, odd.html.contains("<h1>Odd</h1>")), (299, true));
    });
}

#[test]
fn what_scripts_write_and_throw_is_told() {
    run(async {
        let site = Site::new()
            .html(PAGE, r"<script>console.log('half \ud800', 7, {a: 1}); console.warn('careful'); for (let i = 0; i < 500; i++) console.log('x'.repeat(5000));</script><script>throw new Error('oh')</script>")
            .share();
        let page = rendered(&site, PAGE).await;
        let lines: Vec<_> =
            page.console.iter().map(|line| (line.level.as_str(), line.text.as_str())).collect();
        assert_eq!(lines[..2], [("log", "half \u{fffd} 7 Object"), ("warning", "careful")]);
        assert_eq!((lines.len(), lines[2].1.len()), (100, 1000));
        let page =
            rendered(&Site::new().html(PAGE, "<script>throw new Error('oh')</script>").share(), PAGE).await;
        assert_eq!(page.console[0].level, "error");
        assert!(page.console[0].text.starts_with("Error: oh"), "{:?}", page.console);
    });
}
