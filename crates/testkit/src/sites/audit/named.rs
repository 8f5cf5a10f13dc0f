//! Files that pages load and name: their weight, images for previews, feeds and icons.

use std::fmt::Write as _;

use super::{AUDITED, Builder, OLD_PORT};
use crate::Reply;

pub(super) fn add(site: &mut Builder) {
    weights(site);
    previews(site);
    feeds(site);
    icons(site);
}

/// An image of this many bytes that may be kept.
fn image(bytes: u64) -> Reply {
    Reply::status(200)
        .header("content-type", "image/png")
        .header("cache-control", "max-age=31536000")
        .header("content-length", &bytes.to_string())
}

fn weights(site: &mut Builder) {
    let (mut images, mut candidates) = (String::new(), String::new());
    for number in 1..=7 {
        let path = format!("/page-weight/{number}.png");
        site.answer(&path, image(480_000));
        let _ = write!(images, "<img src={path} alt=Moth width=9 height=9>");
        let _ = write!(candidates, "{path} {number}x, ");
    }
    site.page("/page-weight/planted", |p| p.body(&images));
    site.expect("page-weight", "/page-weight/planted");
    // Browsers load one of the candidates; a link loads nothing; one image is loaded once.
    let choice = format!("<img src=/page-weight/1.png srcset=\"{candidates}\" alt=Moth width=9 height=9>");
    site.page("/page-weight/miss-1", |p| p.body(&choice));
    let mut links = String::new();
    for number in 11..=17 {
        let path = format!("/page-weight/{number}.png");
        site.answer(&path, image(480_000));
        let _ = write!(links, "<a href={path}>Image {number}</a>");
    }
    site.page("/page-weight/miss-2", |p| p.body(&links));
    let same = "<img src=/page-weight/1.png alt=Moth width=9 height=9>".repeat(9);
    site.page("/page-weight/miss-3", |p| p.body(&same));
    site.misses("page-weight", 3);
}

fn previews(site: &mut Builder) {
    let title = "<meta property=og:title content=Moths>";
    let page = |image: &str| format!("{title}<meta property=og:image content=\"{image}\">");
    site.page("/og-image-broken/planted", |p| p.graph(&page("/og-image-broken/gone.png")));
    site.expect("og-image-broken", "/og-image-broken/gone.png");
    site.page("/og-image-broken/elsewhere", |p| p.graph(&page("https://other.example/gone-preview.png")));
    site.expect("og-image-broken", "https://other.example/gone-preview.png");
    // Another property; a refusal, which says nothing of what others get; an element that is none.
    site.page("/og-image-broken/miss-1", |p| {
        p.head("<meta name=twitter:image content=/og-image-broken/none-1.png>")
    });
    site.page("/og-image-broken/miss-2", |p| p.graph(&page("https://other.example/maybe")));
    site.page("/og-image-broken/miss-3", |p| {
        p.head("<!-- <meta property=og:image content=/og-image-broken/none-2.png> -->")
    });
    site.misses("og-image-broken", 3);
}

fn feeds(site: &mut Builder) {
    let xml =
        |text: &str| Reply::status(200).header("content-type", "application/rss+xml").body(text.to_owned());
    let mut named = |name: &str, kind: &str, reply: Option<Reply>| {
        let path = format!("/feed-invalid/{name}.feed");
        let element = format!("<link rel=alternate type=\"{kind}\" href=\"{path}\">");
        site.page(&format!("/feed-invalid/{name}"), |p| p.head(&element));
        if let Some(reply) = reply {
            site.answer(&path, reply);
        }
        path
    };
    const RSS: &str = "application/rss+xml";
    let wrong = [
        named("planted", RSS, Some(xml("<rss><channel><title>Moths&nbsp;here</title></channel></rss>"))),
        named("torn", RSS, Some(xml("<rss><channel><title>Moths</title>"))),
        named(
            "blank",
            RSS,
            Some(xml("\n<?xml version=\"1.0\"?><rss><channel><title>Moths</title></channel></rss>")),
        ),
        named("page", RSS, Some(Reply::html("<h1>Our news</h1>"))),
        named("gone", RSS, None),
        named(
            "none",
            "application/feed+json",
            Some(Reply::status(200).header("content-type", "application/json").body("{\"moths\": 3}")),
        ),
    ];
    named(
        "miss-1",
        RSS,
        Some(xml(
            "<?xml version=\"1.0\"?><rss><channel><title>Moths &amp; more &#233;</title></channel></rss>",
        )),
    );
    named(
        "miss-2",
        "Application/Atom+XML; charset=utf-8",
        Some(xml("<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>Moths</title></feed>")),
    );
    named(
        "miss-3",
        "application/feed+json",
        Some(
            Reply::status(200)
                .header("content-type", "application/feed+json")
                .body("{\"version\": \"https://jsonfeed.org/version/1.1\", \"items\": []}"),
        ),
    );
    named("miss-4", "application/pdf", None);
    // Other pages name this one.
    site.answer("/feed", xml("<rss><channel><title>Moths</title></channel></rss>"));
    wrong.iter().for_each(|path| site.expect("feed-invalid", path));
    site.misses("feed-invalid", 4);
}

fn icons(site: &mut Builder) {
    // Pages of the site that are made by hand name no icon, and it is at its usual place.
    site.answer("/favicon.ico", image(900));
    // The front pages of these hosts are in other files.
    site.expect("icon-missing", "https://unlisted.example/");
    site.answer(
        "https://silent.example/favicon.ico",
        Reply::redirect(302, "https://silent.example/icon.png"),
    );
    site.answer("https://silent.example/icon.png", image(900));
    site.misses("icon-missing", 3);
    site.expect("http1-only", &format!("{AUDITED}:{OLD_PORT}/"));
    site.misses("http1-only", 3);
}
