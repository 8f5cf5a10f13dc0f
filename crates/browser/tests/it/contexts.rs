//! What pages share, and what not.

use std::collections::BTreeSet;

use huntsman_browser::{Action, Rendering};

use crate::kit::{Site, answer, render, rendered, run};

const PAGE: &str = "https://a.test/";

fn of_session(name: &str) -> Rendering {
    Rendering { session: Some(name.to_owned()), ..Rendering::default() }
}

#[test]
fn pages_share_storage_only_within_a_session() {
    run(async {
        let count = "<script>localStorage.n = 1 + Number(localStorage.n || 0); document.write('n is ' + localStorage.n)</script>";
        let site = Site::new().html(PAGE, count).share();
        let mut seen = Vec::new();
        for rendering in
            [of_session("x"), Rendering::default(), of_session("y"), of_session("x"), Rendering::default()]
        {
            let html = render(&site, PAGE, rendering).await.unwrap().html;
            seen.push(html.rsplit_once("n is ").unwrap().1[..1].to_owned());
        }
        assert_eq!(seen, ["1", "1", "1", "2", "1"]);
    });
}

#[test]
fn scripts_see_cookies_of_answers_and_those_that_they_set_are_told() {
    run(async {
        let headers = [
            ("Content-Type", "text/html"),
            ("Set-Cookie", "open=1; Path=/"),
            ("Set-Cookie", "hidden=2; HttpOnly"),
        ];
        let script = "<p></p><script>document.querySelector('p').textContent = document.cookie;
            document.cookie = 'mine=a b; Max-Age=3600; SameSite=Lax'; document.cookie = 'wide=1; Domain=a.test; Secure; Path=/x';
            fetch('/next')</script>";
        let site = Site::new().answer("https://sub.a.test/", answer(200, &headers, script)).share();
        let page = rendered(&site, "https://sub.a.test/").await;
        assert!(page.html.contains("<p>open=1</p>"), "{}", page.html);
        let mut cookies = page.cookies.clone();
        cookies.sort();
        assert_eq!(cookies.len(), 2, "{cookies:?}");
        assert_eq!(
            cookies[0],
            ("https://a.test/".to_owned(), "wide=1; Path=/x; Domain=a.test; Secure".to_owned())
        );
        let (url, mine) = &cookies[1];
        assert_eq!(url, "https://sub.a.test/");
        let age =
            mine.strip_prefix("mine=a b; Path=/; SameSite=Lax; Max-Age=").unwrap_or_else(|| panic!("{mine}"));
        assert!((3000..=3600).contains(&age.parse::<u64>().unwrap()), "{mine}");
        let asked = site.asked();
        let told = |path: &str| {
            let asked = asked.iter().find(|asked| asked.url.ends_with(path)).unwrap();
            asked.cookies.iter().map(|(_, line)| line.split(';').next().unwrap()).collect::<BTreeSet<_>>()
        };
        assert_eq!(told("a.test/"), BTreeSet::new());
        assert_eq!(told("/next"), BTreeSet::from(["mine=a b", "wide=1"]), "before the request that follows");
        // The chain of downloads adds cookies; it has those of answers already.
        assert!(
            asked
                .iter()
                .flat_map(|asked| &asked.headers)
                .all(|(name, _)| !name.eq_ignore_ascii_case("cookie"))
        );
    });
}

#[test]
fn a_session_tells_a_cookie_once_and_again_when_it_changes() {
    run(async {
        let site = Site::new()
            .html(PAGE, "<script>document.cookie = 'a=1'; document.cookie = 'b=1'</script>")
            .html("https://a.test/same", "")
            .html("https://a.test/change", "<script>document.cookie = 'b=2'</script>")
            .share();
        let mut told = Vec::new();
        for url in [PAGE, "https://a.test/same", "https://a.test/change"] {
            let page = render(&site, url, of_session("cookies")).await.unwrap();
            let mut lines: Vec<String> = page.cookies.into_iter().map(|(_, line)| line).collect();
            lines.sort();
            told.push(lines.join(", "));
        }
        assert_eq!(told, ["a=1; Path=/, b=1; Path=/", "", "b=2; Path=/"]);
    });
}

#[test]
fn scripts_and_servers_are_told_the_same_agent() {
    run(async {
        let site = Site::new().html(PAGE, "<script>document.write(navigator.userAgent)</script>").share();
        assert!(rendered(&site, PAGE).await.html.contains("Huntsman-test/1.0"));
    });
}

#[test]
fn several_pages_at_once_are_kept_apart() {
    run(async {
        let tasks: Vec<_> = (0..6)
            .map(|number| {
                let text = format!("page {number}");
                let site = Site::new()
                    .html(PAGE, "<script>fetch('/own').then(r => r.text()).then(t => document.body.append(t))</script>")
                    .with("https://a.test/own", "text/plain", text.clone())
                    .share();
                tokio::spawn(async move {
                    let rendering = if number % 2 == 0 { of_session("at-once") } else { Rendering::default() };
                    (render(&site, PAGE, rendering).await.unwrap(), text)
                })
            })
            .collect();
        for task in tasks {
            let (page, text) = task.await.unwrap();
            assert!(page.html.contains(&text), "{}", page.html);
        }
    });
}

#[test]
fn a_page_that_is_dropped_is_closed_and_the_next_one_is_rendered() {
    run(async {
        let never = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
        let site =
            Site::new().html(PAGE, "").hold(PAGE, &never).html("https://a.test/ok", "<p>ok</p>").share();
        for _ in 0..4 {
            let shared = std::sync::Arc::clone(&site);
            let asked = site.asked().len();
            let task = tokio::spawn(async move { render(&shared, PAGE, Rendering::default()).await });
            while site.asked().len() == asked {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            task.abort();
        }
        let rendering =
            Rendering { steps: vec![Action::Evaluate("1".to_owned()).into()], ..Rendering::default() };
        assert!(render(&site, "https://a.test/ok", rendering).await.unwrap().html.contains("<p>ok</p>"));
    });
}
