//! Pages that do their worst cost themselves only.

use huntsman_testkit::Site;

use super::*;

const HOSTILE: [(&str, &str); 7] = [
    ("/endless", "<p>endless</p><script>for (;;);</script>"),
    ("/alerts", "<p>alerts</p><script>for (;;) alert(1)</script>"),
    ("/windows", "<p>windows</p><script>for (let n = 0; n < 10000; n++) open('/window?' + n)</script>"),
    ("/busy", "<p>busy</p><script>setInterval(() => fetch('/poll?' + Math.random()), 20)</script>"),
    (
        "/changes",
        "<p>changes</p><script>setInterval(() => document.querySelector('p').textContent += '.', 20)</script>",
    ),
    ("/reloads", "<p>reloads</p><script>setTimeout(() => location.reload(), 50)</script>"),
    ("/leaves", "<p>leaves</p><script>location.href = '/left'</script>"),
];

#[tokio::test]
async fn each_hostile_page_costs_itself_only() {
    let mut links = String::new();
    for (path, _) in HOSTILE {
        links.push_str(&format!("<a href={path}></a><a href=/good{path}></a>"));
    }
    let mut site = Site::builder()
        .page("/", links)
        .page("/left", "<p>left to here</p>")
        .answer("/poll", Answer::text("x"))
        .page("/window", "<p>window</p>")
        .route("/good/*", |_| {
            Answer::html("<p></p><script>document.querySelector('p').textContent = 'good'</script>")
        });
    for (path, page) in HOSTILE {
        site = site.page(path, page);
    }
    let site = site.start().await;
    let set = [
        ("render_timeout", json!(3.0)),
        ("depth_limit", json!(2)),
        ("closespider_timeout", json!(240.0)),
        ("max_links_per_page", json!(40)),
    ];
    let crawled = crawl_all(&site, "/", &set).await;
    assert_eq!(crawled.report.finish_reason, "finished");
    for (path, _) in HOSTILE {
        assert_eq!(crawled.page(&format!("/good{path}")).text, "good", "beside {path}");
        let dropped = crawled.report.stat("drops/failed");
        assert!(crawled.pages.contains_key(path) || dropped > 0, "{path} is neither delivered nor recorded");
    }
    for (path, text) in [("/busy", "busy"), ("/leaves", "leaves")] {
        assert!(crawled.page(path).text.starts_with(text), "{path}: {:?}", crawled.page(path));
    }
    for path in ["/busy", "/changes"] {
        assert!(crawled.page(path).flags.contains(&"render_incomplete"), "{path}");
    }
    // What it wanted to go to is a page of its own.
    assert_eq!(crawled.page("/left").text, "left to here");
}
