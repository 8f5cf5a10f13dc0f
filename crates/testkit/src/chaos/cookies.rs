//! Cookies, credentials, and other data that belongs to one host only.

use super::behaviour::{Behaviour, Exchange, Family, KEPT, page};
use super::judge::has_cookie;
use super::{INSIDE, STRANGER};
use crate::answer::Answer;
use crate::record::SiteRequest;

/// Maximum number of cookies, and (below) of bytes, in one `Cookie` header.
const MAX_COOKIES: usize = 50;
const MAX_COOKIE_HEADER: usize = 8 * 1024;

pub(super) fn behaviours() -> Vec<Behaviour> {
    let of = |name, about, answer: fn(&Exchange<'_>) -> Answer| {
        Behaviour::new(Family::Cookies, name, about, answer)
    };
    vec![
        of("for_a_stranger", "a cookie for another host, and a link to it", |exchange| {
            let links = [exchange.endpoints.url(STRANGER, "/look/for_a_stranger"), exchange.path(KEPT)];
            Answer::html(exchange.page(&[&links[0], &links[1]]))
                .header("Set-Cookie", "mine=1; Path=/")
                .header("Set-Cookie", format!("theirs=1; Path=/; Domain={STRANGER}"))
        })
        .kept()
        .judge(|evidence, why| {
            if evidence.sent_cookie("theirs") {
                why.push("a cookie for another host was kept".to_owned());
            }
        }),
        of("bad_domains", "cookies for suffixes, parts and nonsense", |exchange| {
            let domains = [
                "com",
                "CO.UK.",
                "0.0.38",
                "0.0.1",
                ".38",
                "127.0.0.",
                "127",
                "localhost",
                "*",
                ".",
                "%00",
                "[::1]",
            ];
            domains.iter().fold(Answer::html(exchange.kept()), |page, domain| {
                page.header("Set-Cookie", format!("suffix=1; Path=/; Domain={domain}"))
            })
        })
        .kept()
        .judge(|evidence, why| {
            if evidence.sent_cookie("suffix") {
                why.push("a cookie of a bad domain was kept".to_owned());
            }
        }),
        of("many", "180 cookies on three pages", |exchange| {
            let (round, next) = match exchange.rest {
                "" => (0, "second"),
                "second" => (1, "third"),
                _ => (2, KEPT),
            };
            let start = round * 60;
            (start..start + 60).fold(Answer::html(exchange.page(&[&exchange.path(next)])), |page, number| {
                page.header("Set-Cookie", format!("many{number}={}; Path=/", "v".repeat(150)))
            })
        })
        .kept()
        .judge(|evidence, why| {
            for (seen, cookies) in evidence.cookies() {
                let count = cookies.split(';').count();
                if count > MAX_COOKIES || cookies.len() > MAX_COOKIE_HEADER {
                    why.push(format!(
                        "{count} cookies of {} bytes sent to {}",
                        cookies.len(),
                        seen.request.target
                    ));
                    break;
                }
            }
        }),
        of("huge", "a cookie of 5 kB", |exchange| {
            Answer::html(exchange.kept()).header("Set-Cookie", format!("huge={}; Path=/", "h".repeat(5_000)))
        })
        .kept()
        .judge(|evidence, why| {
            if evidence.sent_cookie("huge") {
                why.push("a cookie of 5 kB was kept".to_owned());
            }
        }),
        of("secure_only", "a Secure cookie over http", |exchange| {
            Answer::html(exchange.kept()).header("Set-Cookie", "locked=1; Path=/; Secure")
        })
        .kept()
        .judge(|evidence, why| {
            if evidence.sent_cookie("locked") {
                why.push("a Secure cookie was sent over http".to_owned());
            }
        }),
        of("control_characters", "cookies with control characters", |exchange| {
            Answer::html(exchange.page(&[]))
                .header("Set-Cookie", b"ctl1=a\x01b; Path=/")
                .header("Set-Cookie", b"ctl2=a\x7fb; Path=/")
                .header("Set-Cookie", b"ctl\t3=ab; Path=/\x08")
        })
        // A client may reject a response head like this as a whole.
        .judge(|evidence, why| {
            if evidence.cookies().any(|(_, cookies)| cookies.chars().any(char::is_control)) {
                why.push("a control character in a Cookie header".to_owned());
            }
        }),
        of("deleted", "a cookie that is set and then taken back", |exchange| match exchange.rest {
            "" => Answer::html(exchange.page(&[&exchange.path("second")]))
                .header("Set-Cookie", "brief=1; Path=/"),
            _ => Answer::html(exchange.kept()).header("Set-Cookie", "brief=; Path=/; Max-Age=0"),
        })
        .kept()
        .judge(|evidence, why| {
            let kept = evidence.at(KEPT);
            let sent = evidence.cookies().any(|(seen, cookies)| {
                has_cookie(&cookies, "brief") && kept.iter().any(|kept| std::ptr::eq(*kept, seen))
            });
            if sent {
                why.push("a cookie was sent after it was taken back".to_owned());
            }
        }),
        of("narrow_path", "a cookie for one path", |exchange| {
            Answer::html(exchange.kept())
                .header("Set-Cookie", format!("narrow=1; Path={}", exchange.path("inner")))
        })
        .kept()
        .judge(|evidence, why| {
            let inner = evidence.behaviour.path("inner");
            let mut sent = evidence.cookies().filter(|(_, cookies)| has_cookie(cookies, "narrow"));
            if sent.any(|(seen, _)| !seen.request.path().starts_with(&inner)) {
                why.push("a cookie was sent outside of its path".to_owned());
            }
        }),
        of("redirect_to_a_stranger", "302 to another host with cookies on the way", |exchange| {
            Answer::redirect(302, exchange.endpoints.url(STRANGER, "/look/redirect_to_a_stranger"))
                .header("Set-Cookie", "onway=1; Path=/")
        })
        .judge(|evidence, why| {
            if evidence.at_stranger().any(|seen| seen.request.headers.contains_key("cookie")) {
                why.push("cookies followed a redirect to another host".to_owned());
            }
        }),
        of("kept_method_to_a_stranger", "307 and 308 to another host", |exchange| {
            Answer::redirect(307, exchange.endpoints.url(STRANGER, "/look/kept_method_to_a_stranger"))
        })
        .judge(|evidence, why| {
            if evidence.at_stranger().any(|seen| !seen.request.body.is_empty()) {
                why.push("a body followed a redirect to another host".to_owned());
            }
        }),
        of("asks_for_a_password", "401 at another host", |exchange| {
            let links = [exchange.endpoints.url(STRANGER, "/look/asks_for_a_password"), exchange.path(KEPT)];
            Answer::html(exchange.page(&[&links[0], &links[1]]))
        })
        .kept()
        .judge(|evidence, why| {
            if evidence.at_stranger().any(|seen| seen.request.headers.contains_key("authorization")) {
                why.push("another host got a password by asking for it".to_owned());
            }
        }),
        of("secret_in_query", "a secret in the query of a page that links to another host", |exchange| {
            if exchange.request.query().is_none() {
                return Answer::html(exchange.page(&[&format!("{}?token=s3cret", exchange.path("inner"))]));
            }
            let links = [exchange.endpoints.url(STRANGER, "/look/secret_in_query"), exchange.path(KEPT)];
            Answer::html(exchange.page(&[&links[0], &links[1]]))
        })
        .kept()
        .judge(|evidence, why| {
            let referers = evidence.at_stranger().filter_map(|seen| seen.request.header("referer"));
            for referer in referers {
                // To another origin, only the origin may be sent as referrer: scheme, host, port and one slash.
                if referer.splitn(4, '/').nth(3).is_some_and(|rest| !rest.is_empty()) {
                    why.push(format!("another host was told of {referer}"));
                }
            }
        }),
    ]
}

/// Pages of the stranger and of the inside host.
pub(super) fn at_others(request: &SiteRequest) -> Answer {
    if request.host == INSIDE {
        return Answer::html(page("inside", &[]));
    }
    match request.path() {
        "/look/asks_for_a_password" => {
            Answer::status(401).header("WWW-Authenticate", "Basic realm=\"stranger\"").body("who are you")
        }
        path => Answer::html(page(path, &[])),
    }
}
