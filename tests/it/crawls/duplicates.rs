//! The duplicate filter in a crawl, and the fingerprint behind it.

use huntsman::{Fingerprinter, Output, Page, Request, spider_fn};
use huntsman_testkit::{Reply, ScriptedDownloader, Site};

use super::support::{links, on_site, quick};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn urls_are_sent_as_written_and_compared_in_canonical_form() {
    let site = Site::builder()
        .page(
            "/",
            "<a href='/p?b=2&amp;a=1'>x</a><a href='/p?a=1&amp;b=2'>y</a><a href='/./p?b=2&amp;a=1'>z</a>",
        )
        .page("/p", "x")
        .start()
        .await;
    let report = on_site(links([site.url("/")]), &site).set("robotstxt_obey", false).run().await.unwrap();
    assert_eq!(site.targets(), ["/", "/p?b=2&a=1"]);
    assert_eq!((report.pages, report.stat("dupefilter/filtered")), (2, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fragment_is_not_sent_and_makes_no_new_request() {
    let site = Site::builder()
        .page("/", "<a href='/p#one'>x</a><a href='/p#two'>y</a><a href='/p'>z</a><a href='#top'>t</a>")
        .page("/p", "x")
        .start()
        .await;
    on_site(links([site.url("/#start")]), &site).set("robotstxt_obey", false).run().await.unwrap();
    assert_eq!(site.targets(), ["/", "/p"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_may_skip_the_duplicate_filter() {
    let web = ScriptedDownloader::new().otherwise(|_, _| Reply::html("x"));
    let spider = spider_fn(["http://a.test/"], |page: &Page, out: &mut Output<()>| {
        if page.request().depth == 0 {
            let again = |path: &str| Request::parse(&format!("http://a.test/{path}"));
            out.request(again("")?.unfiltered());
            out.request(again("once")?);
            out.request(again("once")?);
        }
        Ok(())
    });
    let report = quick(spider, &web).run().await.unwrap();
    assert_eq!((web.count("http://a.test/"), web.count("http://a.test/once")), (2, 1));
    assert_eq!((report.pages, report.stat("dupefilter/filtered")), (3, 1));
}

#[test]
fn method_body_and_listed_headers_tell_requests_apart() {
    let get = |url: &str| Request::parse(url).unwrap();
    let plain = Fingerprinter::default();
    let page = plain.of(&get("http://a.test/x"));
    assert_ne!(page, plain.of(&get("http://a.test/x").method("POST".parse().unwrap())));
    assert_ne!(page, plain.of(&get("http://a.test/x").method("HEAD".parse().unwrap())));
    assert_ne!(page, plain.of(&get("http://a.test/x").body("b")));
    assert_ne!(page, plain.of(&get("https://a.test/x")));
    assert_ne!(page, plain.of(&get("http://a.test:8080/x")));
    assert_eq!(page, plain.of(&get("http://A.test.:80/x#f")));
    let other = get("http://a.test/x").header("accept-language", "de").unwrap().cookie("a", "b").meta("k", 1);
    assert_eq!(page, plain.of(&other));
    let by_language = Fingerprinter::new(&[], false, vec!["accept-language".parse().unwrap()]);
    assert_ne!(by_language.of(&get("http://a.test/x")), by_language.of(&other));
    let stripped = Fingerprinter::new(&["utm_*".to_owned()], true, Vec::new());
    assert_eq!(stripped.of(&get("http://a.test/x;jsessionid=1?utm_source=m")), page);
}

/// Fingerprints are stored in jobs: changing these values would make every stored job useless.
#[test]
fn fingerprints_are_those_that_jobs_on_disk_hold() {
    let of = |request: Request| format!("{:?}", Fingerprinter::default().of(&request));
    let get = |url: &str| Request::parse(url).unwrap();
    let form = Request::form("http://a.test/f".parse().unwrap(), [("q", "a b")]);
    let found = [of(get("http://a.test/")), of(get("https://www.Example.com/b?b=2&a=1#f")), of(form)];
    assert_eq!(
        found,
        [
            "402cd7ef4780d6b448fe26521a5b04e6",
            "3d2c056f34d17400ff1f0d3da037e6a7",
            "d0fc624064bdeac64c0c474659b57a8b"
        ]
    );
}
