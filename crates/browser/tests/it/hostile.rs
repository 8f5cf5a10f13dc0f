//! Pages that want something else than to be read. Each costs itself only.

use std::sync::Arc;
use std::time::Duration;

use huntsman_browser::{Error, Ready, Rendering};

use crate::kit::{Site, render, rendered, run};

const PAGE: &str = "https://a.test/";

/// Renders a page within some seconds.
async fn brief(site: &Arc<Site>) -> Result<huntsman_browser::Rendered, Error> {
    render(site, PAGE, Rendering { timeout: Some(Duration::from_secs(5)), ..Rendering::default() }).await
}

#[test]
fn windows_and_other_addresses_are_links_and_not_opened() {
    run(async {
        let page = "<p>stays</p><a id=blank target=_blank href=/blank>x</a><script>
            window.open('/popup'); window.open('https://b.test/other', '_blank', 'noopener'); blank.click();
            onload = () => { location.href = '/next#part'; }</script>";
        let site = Site::new().html(PAGE, page).share();
        let page = rendered(&site, PAGE).await;
        assert!(page.html.contains("<p>stays</p>") && page.url == PAGE, "{} {}", page.url, page.html);
        let mut popups = page.popups.clone();
        popups.sort();
        assert_eq!(
            popups,
            [
                "https://a.test/blank",
                "https://a.test/next#part",
                "https://a.test/popup",
                "https://b.test/other"
            ]
        );
        assert_eq!(site.asked().len(), 1, "{:?}", site.asked());
        let refresh =
            Site::new().html(PAGE, "<meta http-equiv=refresh content='0; url=/fresh'><p>stays</p>").share();
        let page = rendered(&refresh, PAGE).await;
        assert_eq!(
            (page.popups.as_slice(), refresh.asked().len()),
            (&["https://a.test/fresh".to_owned()][..], 1)
        );
    });
}

#[test]
fn dialogs_are_answered_with_no() {
    run(async {
        let page = "<p></p><script>alert('a'); document.querySelector('p').textContent = [confirm('b'), prompt('c', 'd')].join();</script>";
        assert!(rendered(&Site::new().html(PAGE, page).share(), PAGE).await.html.contains("<p>false,</p>"));
    });
}

#[test]
fn permissions_and_downloads_are_denied() {
    run(async {
        let page = "<p></p><a download=x href='data:text/plain,x'>x</a><script>
            const say = (text) => { document.querySelector('p').append(text + ';') };
            navigator.geolocation.getCurrentPosition(() => say('place'), (e) => say('no place'));
            navigator.mediaDevices.getUserMedia({ audio: true }).then(() => say('sound'), () => say('no sound'));
            document.querySelector('a').click();</script>";
        // What the browser answers to such questions is no request, so that a page can be quiet before it.
        let has_both = "document.querySelector('p').textContent.split(';').length == 3".to_owned();
        let ready = Rendering { ready: Ready::Expression(has_both), ..Rendering::default() };
        let page = render(&Site::new().html(PAGE, page).share(), PAGE, ready).await.unwrap();
        assert!(page.html.contains("no place;") && page.html.contains("no sound;"), "{}", page.html);
        assert!(!page.is_incomplete);
    });
}

#[test]
fn a_script_that_does_not_end_is_ended_and_what_was_there_is_delivered() {
    run(async {
        for hang in [
            "while (true) {}",
            "setTimeout(() => { while (true) {} })",
            "while (true) alert('again')",
            "const f = () => Promise.resolve().then(f); f()",
        ] {
            let site = Site::new().html(PAGE, format!("<p>before</p><script>{hang}</script>")).share();
            let page = brief(&site).await.unwrap_or_else(|error| panic!("{hang}: {error}"));
            assert!(page.html.contains("<p>before</p>") && page.is_incomplete, "{hang}: {}", page.html);
            assert!(page.took < Duration::from_secs(60), "{hang}");
        }
        assert!(
            rendered(&Site::new().html(PAGE, "<p>next</p>").share(), PAGE).await.html.contains("<p>next</p>")
        );
    });
}

#[test]
fn endless_windows_lines_and_requests_cost_their_page_only() {
    run(async {
        let loops = [
            "setInterval(() => { for (let i = 0; i < 20; i++) window.open('/w' + Math.random()) }, 10)",
            "setInterval(() => { for (let i = 0; i < 500; i++) console.log('x'.repeat(1000)) }, 10)",
            "setInterval(() => { for (let i = 0; i < 100; i++) fetch('/f' + Math.random()) }, 10)",
            "setInterval(() => { for (let i = 0; i < 100; i++) new Image().src = '/i' + Math.random() }, 10)",
            "setInterval(() => { document.body.append(document.createElement('iframe')) }, 10)",
            "setInterval(() => { location.href = '/l' + Math.random() }, 1)",
        ];
        for endless in loops {
            let site = Site::new().html(PAGE, format!("<p>there</p><script>{endless}</script>")).share();
            let page = brief(&site).await.unwrap_or_else(|error| panic!("{endless}: {error}"));
            assert!(page.html.contains("<p>there</p>"), "{endless}");
            assert!(
                site.asked().len() <= 500 && page.popups.len() <= 100 && page.console.len() <= 100,
                "{endless}"
            );
        }
        assert!(
            rendered(&Site::new().html(PAGE, "<p>next</p>").share(), PAGE).await.html.contains("<p>next</p>")
        );
    });
}

#[test]
fn addresses_of_the_browser_itself_cannot_be_reached() {
    run(async {
        let site = Site::new().html(PAGE, "<p>there</p>").share();
        for url in ["chrome://crash", "chrome://version", "view-source:https://a.test/", "file:///etc/passwd"]
        {
            let go = huntsman_browser::Action::Evaluate(format!("location.href = '{url}'"));
            let page = render(&site, PAGE, crate::kit::steps([go])).await.unwrap();
            assert!(page.html.contains("<p>there</p>") && page.url == PAGE, "{url}: {}", page.html);
        }
    });
}
