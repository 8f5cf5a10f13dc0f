//! Addresses that must not be connected to, in many spellings, and some that no request line may hold.

use super::behaviour::{Behaviour, Exchange, Family};
use super::{INSIDE, MAIN, POISON};
use crate::answer::Answer;

const FULL_WIDTH: &str = "\u{ff11}\u{ff12}\u{ff17}.0.0.\u{ff18}\u{ff10}";

pub(super) fn behaviours() -> Vec<Behaviour> {
    let of = |name, about, answer: fn(&Exchange<'_>) -> Answer| {
        Behaviour::new(Family::Addresses, name, about, answer)
    };
    // The page is fine and its other link must be followed; the inside host must not receive a request.
    let spelt = |name: &'static str, about, host: &'static str| {
        let answer = move |exchange: &Exchange<'_>| {
            let inside = format!("http://{host}:{}/panel/{name}", exchange.endpoints.port());
            Answer::html(exchange.page(&[&inside, &exchange.path(super::KEPT)]))
        };
        Behaviour::new(Family::Addresses, name, about, answer).kept()
    };
    vec![
        spelt("inside_plain", "a link to the inside host", INSIDE),
        spelt("inside_decimal", "the inside host as one number", "2130706512"),
        spelt("inside_hexadecimal", "the inside host in hexadecimal", "0x7f000050"),
        spelt("inside_octal", "the inside host in octal parts", "0177.0.0.0120"),
        spelt("inside_mixed", "the inside host in three notations", "0x7f.0.00.80"),
        spelt("inside_short", "the inside host with two parts", "127.80"),
        spelt("inside_trailing_dot", "the inside host with a dot behind", "127.0.0.80."),
        spelt("inside_full_width", "the inside host in full-width digits", FULL_WIDTH),
        spelt("inside_escaped", "the inside host percent-encoded", "%31%32%37.0.0.80"),
        spelt("inside_user_info", "the inside host behind a name like a host", "www.example.com@127.0.0.80"),
        spelt("inside_mapped", "the inside host as an IPv6 address", "[::ffff:127.0.0.80]"),
        spelt("inside_mapped_hex", "the inside host as an IPv6 address in hexadecimal", "[::ffff:7f00:50]"),
        of("unspecified", "a link to 0.0.0.0, which systems take for themselves", |exchange| {
            let links = [format!("http://0.0.0.0:{}{}", exchange.endpoints.port(), exchange.path(POISON)), exchange.path(super::KEPT)];
            Answer::html(exchange.page(&[&links[0], &links[1]]))
        })
        .kept()
        // A connection to 0.0.0.0 arrives at the first host, whichever host the family has.
        .judge(|evidence, why| {
            let path = evidence.behaviour.path(POISON);
            if evidence.record.to(MAIN).any(|seen| seen.request.path() == path) {
                why.push("connected to 0.0.0.0".to_owned());
            }
        }),
        of("other_port", "a link to a port of a listed host that is not listed", |exchange| {
            let other = format!("http://{}:{}/panel", MAIN, exchange.endpoints.other_port());
            Answer::html(exchange.page(&[&other, &exchange.path(super::KEPT)]))
        })
        .kept()
        .judge(|evidence, why| {
            if !evidence.other.requests.is_empty() {
                why.push("reached the other port".to_owned());
            }
        }),
        of("inside_base", "a base on the inside host", |exchange| {
            let base = exchange.endpoints.url(INSIDE, "/panel/inside_base/");
            let (relative, kept) = ("relative", exchange.url(super::KEPT));
            Answer::html(exchange.page(&[relative, &kept]).replace("<head>", &format!("<head><base href=\"{base}\">")))
        })
        .kept(),
        of("file_base", "a base on the disk", |exchange| {
            let page = exchange.page(&["passwd", "shadow", &exchange.url(super::KEPT)]);
            Answer::html(page.replace("<head>", "<head><base href=\"file:///etc/\">"))
        })
        .kept(),
        of("inside_resources", "pictures, scripts, frames and forms of the inside host", |exchange| {
            let inside = exchange.endpoints.url(INSIDE, "/panel/inside_resources");
            let parts = format!(
                "<img src='{inside}/1'><script src='{inside}/2'></script><iframe src='{inside}/3'></iframe>\
                 <form action='{inside}/4' method=post><input name=a></form><link rel=canonical href='{inside}/5'>\
                 <link rel=stylesheet href='{inside}/6'><object data='{inside}/7'></object>"
            );
            Answer::html(exchange.kept() + &parts)
        })
        .kept(),
        of("odd_schemes", "links of many schemes", |exchange| {
            Answer::html(exchange.page(&[
                "file:///etc/passwd",
                "ftp://127.0.0.80/x",
                "gopher://127.0.0.80:6379/_INFO",
                "javascript:void(0)",
                "data:text/html,<p>x",
                "mailto:someone@example.com",
                "view-source:http://127.0.0.80/",
                "blob:http://127.0.0.80/1",
                "about:blank",
                "//",
                "http://",
                "http:///",
                "https://?",
                "http://:80/",
                "http://[::1",
                "http://a b/",
                "http://%00/",
                "::",
                &exchange.path(super::KEPT),
            ]))
        })
        .kept(),
        of("line_breaks", "links with line breaks and header lines in them", |exchange| {
            let (path, poison) = (exchange.path("broken"), exchange.path("encoded"));
            Answer::html(exchange.page(&[
                &format!("{path}\r\nX-Injected: yes\r\n\r\n"),
                &format!("{path}\nHost: other"),
                &format!("{path}&#13;&#10;X-Injected: yes"),
                &format!("{poison}%0d%0aX-Injected:%20yes"),
                &format!("{path}\t\0\u{1}\u{7f}end"),
                &exchange.path(super::KEPT),
            ]))
        })
        .kept()
        .requests(1 + 5 * 3)
        .judge(|evidence, why| {
            if evidence.record.requests.iter().any(|seen| seen.request.headers.contains_key("x-injected")) {
                why.push("a link put a header into a request".to_owned());
            }
        }),
        of("backslashes", "a link with backslashes for slashes", |exchange| {
            Answer::html(exchange.page(&[&exchange.url(super::KEPT).replace('/', "\\")]))
        })
        .kept(),
        of("blanks_around", "a link with blanks and line breaks around and in it", |exchange| {
            let kept = exchange.path(super::KEPT);
            let (start, end) = kept.split_at(4);
            Answer::html(exchange.page(&[&format!(" \n\t{start}\n{end}\r\n ")]))
        })
        .kept(),
        of("long_address", "a link of 3 kB", |exchange| {
            let long = format!("{}?{}", exchange.path(POISON), "long".repeat(750));
            Answer::html(exchange.page(&[&long, &exchange.path(super::KEPT)]))
        })
        .kept()
        .poison(),
        of("many_segments", "a link with 25 segments", |exchange| {
            let deep: String = (0..25).map(|number| format!("/s{number}")).collect();
            Answer::html(exchange.page(&[&format!("{}{deep}", exchange.path("deep")), &exchange.path(super::KEPT)]))
        })
        .kept()
        .once(),
        of("user_info", "a link with a password to an allowed host", |exchange| {
            let link = format!(
                "http://user:secret@{}:{}{}",
                exchange.behaviour.host(exchange.endpoints),
                exchange.endpoints.port(),
                exchange.path(POISON)
            );
            Answer::html(exchange.page(&[&link, &exchange.path(super::KEPT)]))
        })
        .kept()
        .poison(),
        of("fragments", "fifty fragments of one address", |exchange| {
            let links: Vec<String> = (0..50).map(|number| format!("{}#f{number}", exchange.path("one"))).collect();
            let mut links = super::texts(&links);
            let kept = exchange.path(super::KEPT);
            links.push(&kept);
            Answer::html(exchange.page(&links))
        })
        .kept()
        .requests(2),
        of("dot_segments", "spellings of one address with dots", |exchange| {
            let path = exchange.path("one");
            let spellings = [
                path.clone(),
                path.replace("/one", "/./one"),
                path.replace("/one", "/x/../one"),
                path.replace("/one", "/%2e/one"),
                path.replace("/one", "/y/%2E%2e/one"),
                format!("/../../..{path}"),
            ];
            let mut links = super::texts(&spellings);
            let kept = exchange.path(super::KEPT);
            links.push(&kept);
            Answer::html(exchange.page(&links))
        })
        .kept()
        .requests(2),
    ]
}
