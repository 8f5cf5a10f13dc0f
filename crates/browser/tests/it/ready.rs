//! When a page is ready, and what happens when it never is.

use std::sync::Arc;
use std::time::Duration;

use huntsman_browser::{Error, Ready, Rendering};
use tokio::sync::Semaphore;

use crate::kit::{Site, render, rendered, run};

const PAGE: &str = "https://a.test/";

fn ready(ready: Ready) -> Rendering {
    Rendering { ready, ..Rendering::default() }
}

#[test]
fn a_page_is_not_quiet_while_a_request_is_in_flight() {
    run(async {
        let late = Arc::new(Semaphore::new(0));
        let site = Site::new()
            .html(PAGE, "<script>fetch('/late').then(r => r.text()).then(t => document.body.append(t)); console.log('begun')</script>")
            .with("https://a.test/late", "text/plain", "came late")
            .hold("https://a.test/late", &late)
            .share();
        let rendering = tokio::spawn(async move { rendered(&site, PAGE).await });
        // Longer than a page without requests takes until it is quiet.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert!(!rendering.is_finished());
        late.add_permits(1);
        let page = rendering.await.unwrap();
        assert!(page.html.contains("came late") && !page.is_incomplete, "{}", page.html);
    });
}

#[test]
fn a_page_is_not_quiet_while_its_tree_changes() {
    run(async {
        let page = "<ol></ol><script>let n = 0; const t = setInterval(() => { document.querySelector('ol').append(document.createElement('li'));
            if (++n === 20) { clearInterval(t); document.title = 'all'; } }, 100)</script>";
        let page = rendered(&Site::new().html(PAGE, page).share(), PAGE).await;
        assert_eq!((page.html.matches("<li>").count(), page.is_incomplete), (20, false));
    });
}

#[test]
fn changes_in_shadow_roots_and_frames_count_and_those_of_looks_do_not() {
    run(async {
        let page = "<div id=host></div><iframe srcdoc='<p></p>'></iframe><b style='opacity: 0'></b><script>
            const root = host.attachShadow({ mode: 'open' }); let n = 0;
            setInterval(() => { document.querySelector('b').style.opacity = Math.random(); document.body.className = 'c' + Math.random(); }, 20);
            const t = setInterval(() => { n += 1; if (n <= 10) root.append('s'); else frames[0].document.body.append('f'); if (n === 20) clearInterval(t); }, 100)</script>";
        let page = rendered(&Site::new().html(PAGE, page).share(), PAGE).await;
        let counts = (page.html.contains("ssssssssss"), page.html.contains("ffffffffff"), page.is_incomplete);
        assert_eq!(counts, (true, true, false), "{}", page.html);
    });
}

#[test]
fn a_selector_and_an_expression_say_when_a_page_is_ready() {
    run(async {
        let page = "<div id=host></div><script>setInterval(() => fetch('/poll'), 50); window.state = 'begun';
            setTimeout(() => { host.attachShadow({ mode: 'open' }).innerHTML = '<p class=done>done</p>'; window.state = 'done' }, 300)</script>";
        let site = Site::new().html(PAGE, page).share();
        for wanted in
            [Ready::Selector("p.done".to_owned()), Ready::Expression("window.state === 'done'".to_owned())]
        {
            let page = render(&site, PAGE, ready(wanted)).await.unwrap();
            assert!(page.html.contains("done</p>") && !page.is_incomplete, "{}", page.html);
        }
        let invalid = render(&site, PAGE, ready(Ready::Selector("p[".to_owned()))).await;
        assert!(matches!(invalid, Err(Error::Invalid { .. })), "{invalid:?}");
    });
}

#[test]
fn a_page_that_is_never_ready_is_delivered_as_it_is() {
    run(async {
        let site = Site::new()
            .html(PAGE, "<p>there</p><script>setInterval(() => fetch('/poll'), 50)</script>")
            .share();
        let timeout = Some(Duration::from_secs(4));
        let page = render(&site, PAGE, Rendering { timeout, ..Rendering::default() }).await.unwrap();
        assert!(page.html.contains("<p>there</p>") && page.is_incomplete, "{}", page.html);
    });
}

#[test]
fn a_page_whose_document_never_comes_is_an_error() {
    run(async {
        let never = Arc::new(Semaphore::new(0));
        let site = Site::new().html(PAGE, "").hold(PAGE, &never).share();
        let timeout = Some(Duration::from_millis(500));
        let none = render(&site, PAGE, Rendering { timeout, ..Rendering::default() }).await;
        assert!(matches!(none, Err(Error::Timeout { .. })), "{none:?}");
    });
}

#[test]
fn time_in_which_a_page_waits_for_the_pace_of_a_host_counts_for_nothing() {
    run(async {
        let late = Arc::new(Semaphore::new(0));
        let site = Site::new()
            .html(
                PAGE,
                "<script>fetch('/late').then(r => r.text()).then(t => document.body.append(t))</script>",
            )
            .with("https://a.test/late", "text/plain", "came late")
            .hold("https://a.test/late", &late)
            .share();
        let timeout = Some(Duration::from_secs(20));
        site.set_waiting(true);
        let shared = Arc::clone(&site);
        // The limit is many times shorter than the wait.
        let limit = Duration::from_millis(100);
        let held = tokio::spawn(async move {
            render(&shared, PAGE, Rendering { timeout: Some(limit), ..Rendering::default() }).await
        });
        while !site.asked().iter().any(|asked| asked.url.ends_with("late")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(limit * 10).await;
        assert!(!held.is_finished());
        site.set_waiting(false);
        assert!(held.await.unwrap().unwrap().is_incomplete);
        // With time enough it is whole.
        late.add_permits(1);
        let page = render(&site, PAGE, Rendering { timeout, ..Rendering::default() }).await.unwrap();
        assert!(page.html.contains("came late") && !page.is_incomplete);
    });
}
