//! What is done on a page before it is read.

use std::time::Duration;

use huntsman_browser::{Action, Error, Ready, Rendering, Shot, Step};

use crate::kit::{Site, render, run, steps};

const PAGE: &str = "https://a.test/";

fn click(selector: &str) -> Action {
    Action::Click(selector.to_owned())
}

fn fill(selector: &str, text: &str) -> Action {
    Action::Fill { selector: selector.to_owned(), text: text.to_owned() }
}

fn evaluate(expression: &str) -> Action {
    Action::Evaluate(expression.to_owned())
}

#[test]
fn a_form_is_filled_and_sent_and_the_page_that_comes_is_delivered() {
    run(async {
        let form = "<form action=/found><input name=q><select name=s><option value=a>A<option value=b>B</select><button>Go</button></form>";
        let site = Site::new()
            .html(PAGE, form)
            .html("https://a.test/found?q=two+words&s=b", "<h1>Found</h1><script>fetch('/more').then(r => r.text()).then(t => document.body.append(t))</script>")
            .with("https://a.test/more", "text/plain", "and more")
            .share();
        let list = Action::Select { selector: "select".to_owned(), value: "b".to_owned() };
        for last in [vec![click("button")], vec![click("input"), Action::Press("Enter".to_owned())]] {
            let before = [fill("input", "two words"), list.clone()];
            let page = render(&site, PAGE, steps(before.into_iter().chain(last))).await.unwrap();
            assert_eq!(page.url, "https://a.test/found?q=two+words&s=b");
            assert!(page.html.contains("<h1>Found</h1>") && page.html.contains("and more"), "{}", page.html);
            assert_eq!(page.static_body.as_ref(), &b"<h1>Found</h1><script>fetch('/more').then(r => r.text()).then(t => document.body.append(t))</script>"[..]);
        }
    });
}

#[test]
fn what_a_click_brings_is_waited_for_and_listeners_see_what_people_do() {
    run(async {
        let page = "<button>more</button><input><ol></ol><script>
            const note = (text) => { const li = document.createElement('li'); li.textContent = text; document.querySelector('ol').append(li) };
            for (const name of ['mousedown', 'click']) document.querySelector('button').addEventListener(name, (e) => note(name));
            document.querySelector('input').addEventListener('input', (e) => note('input ' + e.target.value));
            document.addEventListener('keydown', (e) => note('key ' + e.key + ' ' + e.isTrusted));
            document.querySelector('button').onclick = () => fetch('/more').then(r => r.text()).then(note)</script>";
        let site = Site::new().html(PAGE, page).with("https://a.test/more", "text/plain", "came").share();
        let done = steps([
            click("button"),
            fill("input", "x"),
            Action::Press("Escape".to_owned()),
            evaluate("[document.querySelectorAll('li').length, 'a\"b']"),
        ]);
        let page = render(&site, PAGE, done).await.unwrap();
        for text in ["mousedown", "click", "came", "input x", "key Escape true"] {
            assert!(page.html.contains(&format!("<li>{text}</li>")), "{text}: {}", page.html);
        }
        assert_eq!(page.values, [r#"[5,"a\"b"]"#]);
    });
}

#[test]
fn a_step_that_fails_is_an_error_with_its_number_unless_it_is_optional() {
    run(async {
        let site = Site::new().html(PAGE, "<p>here</p>").share();
        let failing = [
            click("#none"),
            evaluate("nothing.there"),
            Action::Press("Any".to_owned()),
            fill("p", "x"),
            Action::WaitFor(Ready::Selector("p[".to_owned())),
        ];
        for action in failing {
            let error = render(&site, PAGE, steps([evaluate("1"), action.clone()])).await.unwrap_err();
            let Error::Step { number: 2, reason } = &error else { panic!("{action:?}: {error:?}") };
            assert!(!reason.is_empty());
            let optional = Step { action, is_optional: true };
            let rendering = Rendering { steps: vec![optional, evaluate("2").into()], ..Rendering::default() };
            let page = render(&site, PAGE, rendering).await.unwrap();
            assert_eq!(
                (page.values.as_slice(), page.html.contains("<p>here</p>")),
                (&["2".to_owned()][..], true)
            );
        }
    });
}

#[test]
fn a_step_that_is_not_done_when_the_time_is_over_is_an_error() {
    run(async {
        let site = Site::new().html(PAGE, "<p>here</p>").share();
        let wait = Action::WaitFor(Ready::Selector("#never".to_owned()));
        let rendering = Rendering { timeout: Some(Duration::from_secs(4)), ..steps([wait]) };
        let error = render(&site, PAGE, rendering).await.unwrap_err();
        assert!(matches!(error, Error::Step { number: 1, .. }), "{error:?}");
    });
}

/// A list that loads more at its end, and keeps only the last rows.
const LIST: &str = "<style>li { height: 100px }</style><main></main><ul></ul><script>
    const KEPT = 20; let next = 0;
    const more = async () => {
        const rows = await fetch('/rows/' + next).then(r => r.ok ? r.json() : []);
        next += rows.length;
        for (const row of rows) { const li = document.createElement('li'); li.innerHTML = `row <a href='/row/${row}'>number ${row}</a>`; document.querySelector('ul').append(li); }
        const list = document.querySelectorAll('li');
        for (let i = 0; i < list.length - KEPT; i++) list[i].remove();
    };
    more();
    let isBusy = false;
    addEventListener('scroll', async () => {
        if (isBusy || innerHeight + scrollY < document.documentElement.scrollHeight - 50) return;
        isBusy = true; await more(); isBusy = false;
    });</script>";

#[test]
fn scrolling_unites_what_every_round_showed() {
    run(async {
        let mut site = Site::new().html(PAGE, LIST);
        for begin in (0..60).step_by(15) {
            let rows: Vec<String> = (begin..begin + 15).map(|row: u32| row.to_string()).collect();
            site = site.with(
                &format!("https://a.test/rows/{begin}"),
                "application/json",
                format!("[{}]", rows.join(",")),
            );
        }
        let site = site.share();
        let scroll = Action::ScrollToEnd { rounds: 40, until: None };
        let page = render(&site, PAGE, steps([scroll])).await.unwrap();
        for row in 0..60 {
            let link = format!("/row/{row}\">number {row}</a>");
            assert_eq!(page.html.matches(&link).count(), 1, "{row}: {}", page.html);
        }
        assert!(!page.is_incomplete);
        let until = Some("a[href='/row/16']".to_owned());
        let page = render(&site, PAGE, steps([Action::ScrollToEnd { rounds: 40, until }])).await.unwrap();
        assert!(page.html.contains("number 29<") && !page.html.contains("number 59<"), "{}", page.html);
        let page =
            render(&site, PAGE, steps([Action::ScrollToEnd { rounds: 1, until: None }])).await.unwrap();
        assert!(!page.html.contains("number 59<"), "{}", page.html);
    });
}

/// A list that loads more at once whenever its end is in view, and keeps only the last rows.
const QUICK_LIST: &str = "<style>html { scroll-behavior: smooth } li { height: 100px }</style><ul></ul><script>
    const KEPT = 20; let next = 0;
    const more = () => {
        for (const end = Math.min(next + 15, 150); next < end; next++) { const li = document.createElement('li'); li.innerHTML = `<a href='/row/${next}'>number ${next}</a>`; document.querySelector('ul').append(li); }
        const list = document.querySelectorAll('li');
        for (let i = 0; i < list.length - KEPT; i++) list[i].remove();
    };
    more();
    addEventListener('scroll', () => {
        if (innerHeight + scrollY >= document.documentElement.scrollHeight - 50) more();
    });</script>";

#[test]
fn a_round_of_scrolling_ends_where_the_page_ended_when_it_began() {
    run(async {
        let site = Site::new().html(PAGE, QUICK_LIST).share();
        let until = |row: u32| Some(format!("a[href='/row/{row}']"));
        let scroll = async |rounds, until| {
            render(&site, PAGE, steps([Action::ScrollToEnd { rounds, until }])).await.unwrap().html
        };
        let html = scroll(1, None).await;
        assert!(html.contains("number 29<") && !html.contains("number 100<"), "{html}");
        let html = scroll(40, until(16)).await;
        assert!(html.contains("number 16<") && !html.contains("number 60<"), "{html}");
        let html = scroll(40, None).await;
        for row in 0..150 {
            assert_eq!(html.matches(&format!("number {row}</a>")).count(), 1, "{row}: {html}");
        }
    });
}

#[test]
fn pictures_and_prints_are_given_in_the_order_of_their_steps() {
    run(async {
        let site =
            Site::new().html(PAGE, "<!doctype html><body style='margin: 0; height: 3000px'>Print me").share();
        let shots =
            [Action::Screenshot { is_full: false }, Action::Pdf, Action::Screenshot { is_full: true }];
        let page = render(&site, PAGE, steps(shots)).await.unwrap();
        let [Shot::Png(view), Shot::Pdf(print), Shot::Png(full)] = &page.shots[..] else {
            panic!("{:?}", page.shots.len())
        };
        // Width and height are the first two numbers of the first chunk.
        let size = |png: &[u8]| {
            assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
            let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
            (number(16), number(20))
        };
        assert!(size(view).1 <= 900, "{:?}", size(view));
        assert_eq!(size(full).1, 3000);
        assert!(print.starts_with(b"%PDF-"));
    });
}
