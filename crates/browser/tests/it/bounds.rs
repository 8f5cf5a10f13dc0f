//! What a page may have, and what happens above.

use huntsman_browser::{Browser, Error, Network, Rendering};
use std::sync::Arc;
use std::time::Duration;

use crate::kit::{Site, run, settings};

const PAGE: &str = "https://a.test/";

fn as_network(site: &Arc<Site>) -> Arc<dyn Network> {
    Arc::clone(site) as Arc<dyn Network>
}

#[test]
fn answers_beyond_the_bytes_and_requests_of_a_page_fail_and_the_page_is_incomplete() {
    run(async {
        let mut settings = settings();
        settings.bytes_per_page = 10_000;
        settings.requests_per_page = 4;
        let browser = Browser::new(settings).unwrap();
        let large = "<p>there</p><script>fetch('/large').catch(e => document.body.append('failed'))</script>";
        let site = Site::new()
            .html(PAGE, large)
            .with("https://a.test/large", "text/plain", vec![b'x'; 10_000])
            .share();
        let page = browser.render(PAGE, &Rendering::default(), as_network(&site)).await.unwrap();
        assert!(page.html.contains("failed") && page.is_incomplete, "{}", page.html);
        let large = page.requests.iter().find(|request| request.url.ends_with("/large")).unwrap();
        assert_eq!(large.answer, Err("page_bytes".to_owned()));
        let many = "<script>(async () => { for (let i = 0; i < 9; i++) await fetch('/' + i).catch(() => 0); document.title = 'end' })()</script>";
        let site = Site::new().html(PAGE, many).share();
        let page = browser.render(PAGE, &Rendering::default(), as_network(&site)).await.unwrap();
        assert_eq!((site.asked().len(), page.is_incomplete), (4, true));
        // The icon of the page is among the requests, wherever it came.
        let mut asked = page.requests.iter().filter(|request| request.kind.is_some());
        assert_eq!(asked.nth(4).unwrap().answer, Err("page_requests".to_owned()));
        let wide = "<body><script>document.body.append('x'.repeat(50_000)); const p = document.createElement('p'); p.textContent = 'never'; document.body.append(p)</script>";
        let page = browser
            .render(PAGE, &Rendering::default(), as_network(&Site::new().html(PAGE, wide).share()))
            .await
            .unwrap();
        assert!(
            page.is_incomplete && page.html.len() < 60_000 && !page.html.contains("<p>never"),
            "{}",
            page.html.len()
        );
        assert!(page.html.ends_with("</body></html>"), "it is well-formed all the same");
        browser.close().await;
    });
}

#[test]
fn a_browser_is_replaced_after_its_pages_and_all_are_delivered() {
    run(async {
        let mut settings = settings();
        settings.pages_per_browser = 2;
        let browser = Browser::new(settings).unwrap();
        let site = Site::new().html(PAGE, "<p>there</p>").share();
        for _ in 0..5 {
            let page = browser.render(PAGE, &Rendering::default(), as_network(&site)).await.unwrap();
            assert!(page.html.contains("<p>there</p>"));
        }
        let stats = browser.stats().await;
        assert_eq!((stats.pages, stats.restarts, stats.crashes), (5, 2, 0));
        browser.close().await;
        let closed = browser.render(PAGE, &Rendering::default(), as_network(&site)).await;
        assert!(matches!(closed, Err(Error::Closed)), "{closed:?}");
    });
}

#[test]
fn a_page_with_too_much_memory_ends_and_no_other_does() {
    run(async {
        let mut settings = settings();
        settings.memory = 900_000_000;
        let bound = settings.memory;
        let browser = Browser::new(settings).unwrap();
        let greedy = "<script>const kept = []; setInterval(() => { const part = new Uint8Array(50e6); part.fill(1); kept.push(part) }, 50); fetch('/late')</script>";
        let never = Arc::new(tokio::sync::Semaphore::new(0));
        // Without a request in flight it would be ready before it is too large, where a browser is fast and small.
        let site = Site::new()
            .html(PAGE, greedy)
            .html("https://a.test/ok", "<p>ok</p>")
            .hold("https://a.test/late", &Arc::new(tokio::sync::Semaphore::new(0)))
            .share();
        let modest = Site::new()
            .html(PAGE, "<p>modest</p><script>fetch('/late')</script>")
            .with("https://a.test/late", "text/plain", "")
            .hold("https://a.test/late", &never)
            .share();
        let (other, held) = (browser.clone(), Arc::clone(&modest));
        let beside =
            tokio::spawn(async move { other.render(PAGE, &Rendering::default(), as_network(&held)).await });
        while modest.asked().len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let error = browser.render(PAGE, &Rendering::default(), as_network(&site)).await.unwrap_err();
        assert!(error.is_crash(), "{error:?}");
        never.add_permits(1);
        assert!(beside.await.unwrap().unwrap().html.contains("<p>modest</p>"));
        let page =
            browser.render("https://a.test/ok", &Rendering::default(), as_network(&site)).await.unwrap();
        assert!(page.html.contains("<p>ok</p>"));
        let stats = browser.stats().await;
        assert_eq!(stats.crashes, 1);
        assert!(stats.most_memory > bound, "{stats:?}");
        browser.close().await;
    });
}
