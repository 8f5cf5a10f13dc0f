//! Faults of single pages and of the whole site, by family: hreflang, links, images, security, performance, access, data.

use super::{AUDITED, Builder, Draft, gzip};
use crate::Reply;

pub(super) fn add(site: &mut Builder) {
    hreflang(site);
    links(site);
    images(site);
    security(site);
    performance(site);
    access(site);
    data(site);
}

/// An entry of a page in another language.
fn entry(lang: &str, to: &str) -> String {
    let url = super::url_of(to);
    format!("<link rel=alternate hreflang={lang} href=\"{url}\">")
}

fn hreflang(site: &mut Builder) {
    site.case(
        "hreflang-invalid-code",
        |p| p.head(&entry("en-UK", "/hreflang-invalid-code/planted")),
        [
            |p| p.head(&entry("en-Latn-GB", "/hreflang-invalid-code/miss-1")),
            |p| p.head(&entry("X-Default", "/hreflang-invalid-code/miss-2")),
        ],
    );
    const OTHER: &str = "https://other.example/page";
    site.case(
        "hreflang-conflict",
        |p| p.head(&entry("en", "/hreflang-conflict/planted")).head(&entry("en", OTHER)),
        [
            |p| p.head(&entry("en", "/hreflang-conflict/miss-1")).head(&entry("en-GB", OTHER)),
            |p| {
                p.head(&entry("en", "/hreflang-conflict/miss-2"))
                    .head(&entry("en", "/hreflang-conflict/miss-2#top"))
            },
        ],
    );
    site.case(
        "hreflang-blocked",
        |p| p.head(&entry("en", "/hreflang-blocked/planted")).head(&entry("x-default", "/private/english")),
        [
            |p| {
                p.head(&entry("en", "/hreflang-blocked/miss-1"))
                    .head(&entry("x-default", "https://closed.example/english"))
            },
            |p| p.head(&entry("en", "/hreflang-blocked/miss-2")).body("<code>/private/german</code>"),
        ],
    );
    site.case(
        "hreflang-outside-head",
        |p| p.body(&entry("en", "/hreflang-outside-head/planted")),
        [
            |p| p.body("<link rel=alternate type=application/rss+xml href=/feed>"),
            |p| {
                let style = "<noscript><link rel=stylesheet href=/expires.css></noscript><style>a { color: red }</style>";
                p.head(style).head(&entry("en", "/hreflang-outside-head/miss-2"))
            },
        ],
    );
    let header = |lang: &str, path: &str| format!("<{AUDITED}{path}>; rel=alternate; hreflang=\"{lang}\"");
    for (kind, of_html, of_header) in
        [("planted", Some("en"), "en-GB"), ("miss-1", Some("en"), "en"), ("miss-2", None, "en")]
    {
        let path = format!("/hreflang-sources-differ/{kind}");
        let element = of_html.map(|lang| entry(lang, &path)).unwrap_or_default();
        site.page(&path, |p| p.head(&element).header("link", &header(of_header, &path)));
    }
    site.expect("hreflang-sources-differ", "/hreflang-sources-differ/planted");
    site.misses("hreflang-sources-differ", 2);
}

fn links(site: &mut Builder) {
    site.case(
        "link-malformed",
        |p| p.body("<a href=\"http://https://other.example/page\">Other site</a>"),
        [
            |p| p.body("<a href=\"tel:+123456\">Call us</a><a href=\"x-moths://open\">Open the program</a>"),
            |p| p.body("<!-- <a href=\"http://a b/\">Other site</a> --><a>No address</a>"),
        ],
    );
    site.page("/link-malformed/space", |p| p.body("<a href=\"http://a b.example/\">Other site</a>"));
    site.expect("link-malformed", "/link-malformed/space");
    site.case(
        "mailto-invalid",
        |p| p.body("<a href=\"mailto:info.example.org\">Write to us</a>"),
        [
            |p| p.body("<a href=\"mailto:info@example.org?subject=Moths\">Write to us</a>"),
            |p| p.body("<a href=\"mailto:?subject=Look%20at%20this\">Tell a friend</a>"),
        ],
    );
    let named = |name: &str, number: usize| {
        (0..number)
            .map(|at| format!("<a href=\"https://other.example/page?same={at}\">{name}</a> "))
            .collect::<String>()
    };
    site.page("/same-text-other-target/planted", |p| p.body(&named("Prices", 2)));
    site.expect("same-text-other-target", "/same-text-other-target/planted");
    site.page("/same-text-other-target/miss-1", |p| p.body(&named("Edit", 5)));
    site.page("/same-text-other-target/miss-2", |p| {
        p.body("<a href=\"https://other.example/page?same=1\">Prices</a> <a href=\"https://other.example/page?same=1#low\">prices</a>")
    });
    site.misses("same-text-other-target", 2);
    site.case(
        "file-link",
        |p| p.body("<a href=\"file:///C:/prices.pdf\">All prices</a>"),
        [
            |p| p.body("<code>file:///C:/prices.pdf</code>"),
            |p| p.body("<a href=\"https://other.example/page?file:///C:/\">About files</a>"),
        ],
    );
    site.case(
        "link-not-crawlable",
        |p| p.body("<a onclick=\"go()\">All prices</a>"),
        [
            |p| p.body("<a onclick=\"go()\" href=/>All prices</a>"),
            |p| p.body("<a name=prices>All prices</a><a role=button tabindex=0 onclick=\"go()\">Buy</a>"),
        ],
    );
    site.page("/link-not-crawlable/role", |p| {
        p.body("<A ROLE=link tabindex=0 ONCLICK=\"go()\">All prices</A>")
    });
    site.expect("link-not-crawlable", "/link-not-crawlable/role");
}

fn images(site: &mut Builder) {
    site.case(
        "img-alt-filename",
        |p| p.body("<img src=/moth.png alt=moth.png width=9 height=9>"),
        [
            |p| p.body("<img src=/moth.png alt=Moth title=moth.png width=9 height=9>"),
            |p| p.body("<img src=/moth.png alt=\"How to make a .png\" width=9 height=9>"),
        ],
    );
    site.case(
        "area-alt",
        |p| p.body("<map name=m><area href=/></map>"),
        [
            |p| p.body("<map name=m><area href=/><area href=/ alt=Front></map>"),
            |p| p.body("<map name=m><area nohref><area href=/ aria-label=Front></map>"),
        ],
    );
    site.case(
        "input-image-alt",
        |p| p.body("<form><input type=image src=/moth.png></form>"),
        [
            |p| p.body("<form><input type=image src=/moth.png alt=Search></form>"),
            |p| p.body("<form><input type=IMAGE src=/moth.png aria-label=Search></form>"),
        ],
    );
    site.case(
        "svg-name-missing",
        |p| p.body("<svg role=img><path d=M0/></svg>"),
        [
            |p| p.body("<svg role=img><title>A moth</title><path d=M0/></svg>"),
            |p| p.body("<svg><path d=M0/></svg><svg role=img aria-hidden=true></svg><svg role=img aria-label=Moth></svg>"),
        ],
    );
    for (name, title) in [("blank", "<title> \n</title>"), ("closed", "<title/>")] {
        let path = format!("/svg-name-missing/{name}");
        site.page(&path, |p| p.body(&format!("<svg role=img>{title}<path d=M0/></svg>")));
        site.expect("svg-name-missing", &path);
    }
}

/// Replaces a header.
fn with(draft: Draft, name: &str, value: &str) -> Draft {
    draft.without(name).header(name, value)
}

fn security(site: &mut Builder) {
    policies(site);
    other_files(site);
    site.page("/directory-listing/planted/", |p| {
        p.title("<title>Index of /directory-listing/planted</title>")
    });
    site.expect("directory-listing", "/directory-listing/planted/");
    site.page("/directory-listing/passed-on", |p| {
        p.title("<title>Index of /srv/files/of/all/moths</title>").body("<a href=/>Parent Directory</a>")
    });
    site.expect("directory-listing", "/directory-listing/passed-on");
    site.page("/directory-listing/miss-1/", |p| p.title("<title>Index of /about/all/moths</title>"));
    site.page("/directory-listing/miss-2/", |p| p.title("<title>An index of directory listings</title>"));
    site.misses("directory-listing", 2);
    site.case(
        "error-leak",
        |p| {
            p.body(
                "<br />\n<b>Warning</b>:  Undefined variable $a in <b>/srv/a.php</b> on line <b>12</b><br />",
            )
        },
        [
            |p| p.body("<pre>Traceback (most recent call last):\n  File \"a.py\", line 1</pre>"),
            |p| p.body("<p>&lt;b>Warning&lt;/b>: x in &lt;b>a.php&lt;/b> on line &lt;b>12&lt;/b>"),
        ],
    );
    const TRACE: &str = "Traceback (most recent call last):\n  File \"/srv/mill.py\", line 12, in &lt;module&gt;\n    grind()";
    site.page("/mill/wheel", |p| p.body(&format!("<pre>{TRACE}\nValueError: no grain</pre>")));
    site.expect("error-leak", "/mill/wheel");
    site.page("/mill/wing", |p| {
        p.body("<p>java.lang.NullPointerException: null<br>\n&nbsp;at org.moths.Wing.beat(Wing.java:42)</p>")
    });
    site.expect("error-leak", "/mill/wing");
    site.page("/mill/question", |p| p.body(&format!("<p>My program fails:</p><pre>{TRACE}</pre>")));
    site.page("/mill/manual", |p| p.body(&format!("<pre>grind()</pre><pre>{TRACE}</pre>")));
    site.misses("error-leak", 2);
    site.page("/error-leak/status", |p| {
        p.status(500).body("<pre>Traceback (most recent call last):</pre>").uncompressed()
    });
    site.expect("error-leak", "/error-leak/status");
    site.expect("server-error", "/error-leak/status");
    site.case(
        "cors-any-credentials",
        |p| {
            p.header("access-control-allow-origin", "null").header("access-control-allow-credentials", "true")
        },
        [
            |p| p.header("access-control-allow-origin", "*"),
            |p| {
                p.header("access-control-allow-origin", "https://app.example")
                    .header("access-control-allow-credentials", "true")
            },
        ],
    );
}

fn other_files(site: &mut Builder) {
    const SCRIPT: &str = "https://other.example/script.js?lib";
    site.case(
        "sri-missing",
        |p| p.body(&format!("<script src=\"{SCRIPT}\"></script>")),
        [
            |p| p.body(&format!("<script src=\"{SCRIPT}\" integrity=sha384-abc crossorigin></script>")),
            |p| p.body("<script src=/cached.js></script><noscript><script src=https://other.example/script.js?no></script></noscript>"),
            |p| p.body("<script src=https://www.googletagmanager.com/gtag/js></script>"),
        ],
    );
    site.answer("https://www.googletagmanager.com/gtag/js", Reply::text("1"));
    for path in [
        "/mixed-content/planted",
        "/mixed-content/miss-2",
        "/too-many-requests/planted",
        "/too-many-requests/miss-1",
    ] {
        site.expect("sri-missing", path);
    }
    for path in ["/resource-redirect/miss-2", "/blocked-resource/miss-1"] {
        site.expect("sri-missing", path);
    }
}

fn policies(site: &mut Builder) {
    const HSTS: &str = "strict-transport-security";
    const CSP: &str = "content-security-policy";
    const REPORTS: &str = "content-security-policy-report-only";
    site.case(
        "hsts-short",
        |p| with(p, HSTS, "max-age=15551999"),
        [|p| with(p, HSTS, "max-age=15552000"), |p| with(p, HSTS, "Max-Age=\"63072000\"; includeSubDomains")],
    );
    site.case(
        "csp-weak",
        |p| with(p, CSP, "script-src 'self' 'unsafe-inline'; frame-ancestors 'none'"),
        [
            |p| with(p, CSP, "script-src 'nonce-abc' 'unsafe-inline'; frame-ancestors 'none'"),
            |p| with(p, CSP, "script-src *; frame-ancestors 'none'").header(CSP, "default-src 'self'"),
            |p| with(p, CSP, "default-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
        ],
    );
    site.case(
        "csp-report-only",
        |p| p.without(CSP).header("x-frame-options", "DENY").header(REPORTS, "default-src 'self'"),
        [
            |p| p.header(REPORTS, "default-src 'none'"),
            |p| {
                p.without(CSP)
                    .header("x-frame-options", "DENY")
                    .header(REPORTS, "default-src 'self'")
                    .head("<meta http-equiv=Content-Security-Policy content=\"default-src 'self'\">")
            },
        ],
    );
    site.expect("csp-missing", "/csp-report-only/planted");
}

/// Text that compresses to about three quarters.
fn noise(length: usize) -> String {
    const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 \n";
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(LETTERS[(state >> 58) as usize])
    };
    (0..length).map(|_| next()).collect()
}

fn performance(site: &mut Builder) {
    let file = |kind: &str, text: &str| {
        Reply::status(200)
            .header("content-type", kind)
            .header("cache-control", "max-age=31536000")
            .header("content-encoding", "gzip")
            .body(gzip(text))
    };
    let script = |to: &str| format!("<script src=\"{to}\" defer></script>");
    site.page("/resource-redirect/planted", |p| p.body(&script("/moved.js")));
    site.answer("/moved.js", Reply::redirect(301, "/cached.js"));
    site.expect("resource-redirect", "/moved.js");
    site.page("/resource-redirect/miss-1", |p| p.body(&script("/cached.js")));
    site.page("/resource-redirect/miss-2", |p| p.body(&script("https://other.example/moved.js")));
    site.answer(
        "https://other.example/moved.js",
        Reply::redirect(301, "https://other.example/script.js?new"),
    );
    site.misses("resource-redirect", 2);
    site.page("/js-large/planted", |p| p.body(&script("/large.js")));
    site.answer("/large.js", file("text/javascript", &noise(800_000)));
    site.expect("js-large", "/large.js");
    site.page("/js-large/miss-1", |p| p.body(&script("/compressed.js")));
    site.answer("/compressed.js", file("text/javascript", &" ".repeat(800_000)));
    site.page("/js-large/miss-2", |p| p.body(&script("/small.js")));
    site.answer("/small.js", file("text/javascript", &noise(500_000)));
    site.misses("js-large", 2);
    let style = |to: &str| format!("<link rel=stylesheet href=\"{to}\">");
    site.page("/css-large/planted", |p| p.head(&style("/large.css")));
    site.answer("/large.css", file("text/css", &noise(800_000)));
    site.expect("css-large", "/large.css");
    site.page("/css-large/miss-1", |p| p.head(&style("/compressed.css")));
    site.answer("/compressed.css", file("text/css", &" ".repeat(800_000)));
    site.page("/css-large/miss-2", |p| p.head(&style("/small.css")));
    site.answer("/small.css", file("text/css", &noise(500_000)));
    site.misses("css-large", 2);
    let nested = |number: usize| format!("{}x{}", "<div>".repeat(number), "</div>".repeat(number));
    site.page("/dom-deep/planted", |p| p.body(&nested(31)));
    site.expect("dom-deep", "/dom-deep/planted");
    site.page("/dom-deep/miss-1", |p| p.body(&nested(30)));
    site.page("/dom-deep/miss-2", |p| p.body(&"<p>text<br><ul><li>a<li>b</ul>".repeat(40)));
    site.misses("dom-deep", 2);
    site.case(
        "render-blocking",
        |p| p.head("<script src=/cached.js></script>"),
        [
            |p| p.head("<script src=/cached.js defer></script><script>let a = 1</script>"),
            |p| {
                p.head("<script src=/cached.js type=module></script>")
                    .body("<script src=/cached.js></script>")
            },
        ],
    );
}

fn access(site: &mut Builder) {
    site.case(
        "viewport-no-zoom",
        |p| p.viewport("<meta name=viewport content=\"width=device-width, user-scalable=no\">"),
        [
            |p| p.viewport("<meta name=viewport content=\"width=device-width, maximum-scale=5\">"),
            |p| p.viewport("<meta name=viewport content=\"width=device-width, user-scalable=yes\">"),
        ],
    );
    names(site);
    roles(site);
    structure(site);
}

fn names(site: &mut Builder) {
    site.case(
        "button-name",
        |p| p.body("<button><i class=icon></i></button>"),
        [
            |p| p.body("<button aria-label=Search><i></i></button><input type=submit><input type=button value=Go>"),
            |p| p.body("<button><img src=/moth.png alt=Moth width=9 height=9></button><button><svg><title>Menu</title></svg></button>"),
            |p| p.body("<button hidden></button><div role=button tabindex=0>Open</div>"),
        ],
    );
    site.case(
        "frame-title",
        |p| p.body("<iframe src=/framed></iframe>"),
        [
            |p| p.body("<iframe src=/framed title=\"Map of moths\"></iframe>"),
            |p| p.body("<iframe src=/framed style=\"display: none\"></iframe><noscript><iframe src=/framed></iframe></noscript>"),
        ],
    );
    site.answer("/framed", Reply::text("a map"));
    site.case(
        "video-caption",
        |p| p.body("<video controls><source src=/moth.mp4></video>"),
        [
            |p| p.body("<video controls src=/moth.mp4><track kind=captions src=/moth.vtt></video>"),
            |p| p.body("<video autoplay muted loop src=/moth.mp4></video>"),
        ],
    );
    let headers =
        |kind: &str| Reply::status(200).header("content-type", kind).header("content-length", "900");
    site.answer("/moth.mp4", headers("video/mp4"));
    site.answer("/moth.vtt", headers("text/vtt"));
    site.case(
        "main-multiple",
        |p| p.body("<div role=main>Another one</div>"),
        [
            |p| p.body("<div role=main hidden>Later</div>"),
            |p| p.body("<template><main>Later</main></template>"),
        ],
    );
    site.case(
        "autocomplete-invalid",
        |p| p.body("<input aria-label=Mail autocomplete=e-mail>"),
        [
            |p| p.body("<input aria-label=Mail autocomplete=\"section-a work email\">"),
            |p| p.body("<input aria-label=Mail autocomplete=off><input aria-label=Name autocomplete>"),
        ],
    );
}

fn roles(site: &mut Builder) {
    site.case(
        "role-invalid",
        |p| p.body("<div role=buton>Open</div>"),
        [
            |p| p.body("<div role=\"made-up navigation\">Menu</div>"),
            |p| p.body("<section role=doc-toc>Contents</section><svg role=graphics-document></svg>"),
        ],
    );
    site.case(
        "aria-invalid",
        |p| p.body("<div aria-hidden=yes>Text</div>"),
        [
            |p| p.body("<div aria-hidden=FALSE aria-expanded=\"\">Text</div>"),
            |p| p.body("<pre>&lt;div aria-labeledby=a></pre><div data-aria-x=1>Text</div>"),
        ],
    );
    site.case(
        "idref-broken",
        |p| p.body("<p aria-labelledby=missing>Text</p>"),
        [
            |p| p.body("<label for=q>Query</label><input id=q aria-describedby=\"q error\">"),
            |p| p.body("<button aria-controls=later>Open</button><script>1</script>"),
        ],
    );
    site.page("/idref-broken/label", |p| p.body("<label for=gone>Query</label>"));
    site.expect("idref-broken", "/idref-broken/label");
    site.case(
        "tabindex-positive",
        |p| p.body("<p tabindex=3>Text</p>"),
        [|p| p.body("<p tabindex=0>Text</p>"), |p| p.body("<p tabindex=-1>Text</p><p tabindex=>Text</p>")],
    );
}

fn structure(site: &mut Builder) {
    site.case(
        "table-no-header",
        |p| p.body("<table><tr><td>Moth<td>Size<tr><td>Hawk<td>Large</table>"),
        [
            |p| p.body("<table><tr><th>Moth<th>Size<tr><td>Hawk<td>Large</table>"),
            |p| p.body("<table role=presentation><tr><td>A<td>B<tr><td>C<td>D</table>"),
            |p| p.body("<table><tr><td><ul><li>A</ul><td>B<tr><td>C<td>D</table><table><tr><td>One<td>row</table>"),
        ],
    );
    site.case(
        "list-broken",
        |p| p.body("<ul><div><li>Hawk moth</div></ul>"),
        [
            |p| p.body("<ul><li>A<ul><li>B<li>C</ul><li>D</ul><ol><script></script><li><p>E</ol>"),
            |p| p.body("<dl><dt>A<dd>B<div><dt>C<dd>D</div></dl><ul role=menu><div role=none>x</div></ul>"),
            |p| p.body("<ul><li><b>A<li>B</b></ul><table><tr><td><ul><li>C</table>"),
        ],
    );
}

fn data(site: &mut Builder) {
    site.case(
        "jsonld-invalid",
        |p| p.head("<script type=application/ld+json>{\"name\": \"Moths\",}</script>"),
        [
            |p| p.head("<script type=application/ld+json>{\"name\": \"Moths\"}</script>"),
            |p| p.head("<script type=text/x-template>{name,}</script><script type=application/ld+json> </script>"),
        ],
    );
    site.case(
        "og-missing",
        |p| p.graph("<meta property=og:title content=Moths>"),
        [
            |p| p.graph("<meta name=og:title content=Moths><meta property=og:image:url content=/moth.png>"),
            |p| p.graph("").head("<meta name=robots content=noindex>"),
        ],
    );
    site.expect("noindex", "/og-missing/miss-2");
    site.case(
        "og-url-mismatch",
        |p| p.head("<meta property=og:url content=\"https://audit.example/\">"),
        [
            |p| p.head("<meta property=og:url content=\"https://audit.example/og-url-mismatch/miss-1#top\">"),
            |p| {
                p.canonical("<link rel=canonical href=\"https://audit.example/og-url-mismatch/miss-1\">")
                    .head("<meta property=og:url content=\"https://audit.example/og-url-mismatch/miss-1\">")
            },
        ],
    );
}
