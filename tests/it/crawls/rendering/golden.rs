//! Pages whose truth is known, and the parts of a rendered page.

use huntsman::browser::{Action, Ready, Shot};
use huntsman_testkit::Site;

use super::*;

#[tokio::test]
async fn a_list_that_a_script_fetches_is_in_the_page_and_its_links_are_followed() {
    let site = Site::builder()
        .page("/", "<ul></ul><script src=/list.js></script>")
        .answer("/list.js", script("fetch('/api').then(a => a.json()).then(a => document.querySelector('ul').innerHTML = a.map(n => `<li><a href=/item/${n}>item ${n}</a>`).join(''))"))
        .answer("/api", data("[1,2,3]".to_owned()))
        .route("/item/*", |asked| Answer::html(format!("<p>text of {}</p>", asked.path())))
        .start()
        .await;
    let crawled = crawl_all(&site, "/", &[]).await;
    let page = crawled.page("/");
    assert_eq!((page.text.as_str(), page.links.len()), ("item 1 item 2 item 3", 3));
    assert_eq!(crawled.page("/item/3").text, "text of /item/3");
    assert_eq!((crawled.report.pages, site.count("/")), (4, 1));
    let rendered = page.rendered.as_ref().unwrap();
    assert_eq!(&rendered.static_body[..], b"<ul></ul><script src=/list.js></script>");
    let asked: Vec<&str> = rendered.requests.iter().map(|request| path_of_text(&request.url)).collect();
    assert!(asked.contains(&"/list.js") && asked.contains(&"/api"), "{asked:?}");
    assert!(!rendered.is_incomplete);
}

fn path_of_text(url: &str) -> &str {
    url.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..])).unwrap_or(url)
}

#[tokio::test]
async fn the_address_of_an_application_is_the_one_that_it_shows() {
    let site = Site::builder()
        .page("/", "<main></main><script>history.pushState(0, '', '/books?page=1'); document.querySelector('main').textContent = 'books'</script>")
        .start()
        .await;
    let crawled = crawl_all(&site, "/", &[]).await;
    assert_eq!(crawled.page("/books?page=1").text, "books");
}

#[tokio::test]
async fn rows_that_are_recycled_while_scrolling_are_all_in_the_page() {
    const ROWS: usize = 40;
    // As long lists do it, only the last rows stay in the tree.
    let page = "<style>.row { height: 400px }</style><div id=rows></div><script>
        let next = 0, busy = false;
        async function more() {
            if (busy) return;
            busy = true;
            const rows = await (await fetch('/rows?from=' + next)).json();
            const list = document.getElementById('rows');
            for (const row of rows) list.insertAdjacentHTML('beforeend', `<p class=row><a href='/row/${row}'>row number ${row}</a></p>`);
            next += rows.length;
            while (list.children.length > 20) { list.style.paddingTop = (parseInt(list.style.paddingTop || 0) + 400) + 'px'; list.firstChild.remove(); }
            busy = false;
        }
        addEventListener('scroll', () => { if (innerHeight + scrollY > document.body.scrollHeight - 500) more() });
        more();</script>";
    let site = Site::builder()
        .page("/", page)
        .route("/rows", |asked| {
            let from: usize = asked.param("from").unwrap().parse().unwrap();
            let rows: Vec<String> = (from..(from + 10).min(ROWS)).map(|row| row.to_string()).collect();
            data(format!("[{}]", rows.join(",")))
        })
        .start()
        .await;
    let crawled =
        crawl_all(&site, "/", &[("render_scroll", json!(20)), ("closespider_pagecount", json!(1))]).await;
    let page = crawled.page("/");
    for row in 0..ROWS {
        assert!(page.links.contains(&format!("/row/{row}")), "row {row} of {:?}", page.links);
        assert!(page.text.contains(&format!("row number {row}")), "row {row}");
    }
}

#[tokio::test]
async fn shadow_roots_workers_and_forms_give_what_a_reader_sees() {
    let site = Site::builder()
        .page("/", "<a href=/shadow></a><a href=/worker></a>")
        .page("/shadow", "<my-card></my-card><script>customElements.define('my-card', class extends HTMLElement { connectedCallback() {
            this.attachShadow({mode: 'open'}).innerHTML = '<p>in the shadow</p><a href=/deep>deep</a>' } })</script>")
        .page("/deep", "<p>deep page</p>")
        .page("/worker", "<p id=a></p><p id=b></p><script>
            new Worker('/dedicated.js').onmessage = e => document.getElementById('a').textContent = e.data;
            const shared = new SharedWorker('/shared.js'); shared.port.onmessage = e => document.getElementById('b').textContent = e.data; shared.port.start();
            </script>")
        .answer("/dedicated.js", script("fetch('/from-dedicated').then(a => a.text()).then(postMessage)"))
        .answer("/shared.js", script("onconnect = e => fetch('/from-shared').then(a => a.text()).then(t => e.ports[0].postMessage(t))"))
        .answer("/from-dedicated", Answer::text("a worker"))
        .answer("/from-shared", Answer::text("a shared worker"))
        .page("/form", "<form><input name=q><button>Go</button></form><p id=out></p><script>document.forms[0].onsubmit = async e => { e.preventDefault();
            document.getElementById('out').textContent = await (await fetch('/search', {method: 'POST', body: new FormData(document.forms[0]).get('q')})).text() }</script>")
        .route("/search", |asked| Answer::text(format!("{} for {}", asked.method, String::from_utf8_lossy(&asked.body))))
        .start()
        .await;
    let steps = vec![
        Action::Fill { selector: "input".to_owned(), text: "mills".to_owned() }.into(),
        Action::Click("button".to_owned()).into(),
        Action::WaitFor(Ready::Expression("document.getElementById('out').textContent != ''".to_owned()))
            .into(),
        Action::Evaluate("1 + 1".to_owned()).into(),
        Action::Screenshot { is_full: true }.into(),
        Action::Pdf.into(),
    ];
    let form = Request::get(site.url("/form")).render(Rendering { steps, ..Rendering::default() });
    let crawled = crawl(&site, vec![Request::get(site.url("/")), form], &[("render", json!("all"))]).await;
    assert_eq!(crawled.page("/shadow").text, "in the shadow deep");
    assert_eq!(crawled.page("/deep").text, "deep page");
    assert_eq!(crawled.page("/worker").text, "a worker a shared worker");
    let form = crawled.page("/form");
    assert!(form.text.ends_with("POST for mills"), "{}", form.text);
    let rendered = form.rendered.as_ref().unwrap();
    assert_eq!(rendered.values, ["2"]);
    let [Shot::Png(picture), Shot::Pdf(print)] = &rendered.shots[..] else { panic!("{:?}", rendered.shots) };
    assert!(picture.starts_with(b"\x89PNG") && print.starts_with(b"%PDF"));
    let har = rendered.har(&site.url("/form"));
    assert!(
        har["log"]["entries"].as_array().unwrap().iter().any(|entry| entry["request"]["method"] == "POST"),
        "{har}"
    );
}

#[tokio::test]
async fn a_step_that_fails_ends_the_request_with_its_number() {
    let site = Site::builder().page("/", "<p>a</p>").start().await;
    // It fails by itself, so that no time of the page has to end for it.
    let fails = Action::Evaluate("(() => { throw new Error('no') })()".to_owned());
    let steps = vec![Action::Evaluate("1".to_owned()).into(), fails.into()];
    let rendering = Rendering { steps, ..Rendering::default() };
    let crawled = crawl(&site, vec![Request::get(site.url("/")).render(rendering)], &[]).await;
    assert_eq!((crawled.report.pages, crawled.report.stat("drops/failed/render_failed")), (0, 1));
    assert!(crawled.report.failed_seeds[0].1.contains("step 2"), "{:?}", crawled.report.failed_seeds);
}

#[tokio::test]
async fn cookies_go_both_ways() {
    let site = Site::builder()
        .route("/", |_| {
            let page = "<a href=/next></a><script>document.cookie = 'script=1; path=/'; fetch('/data')</script>";
            Answer::html(page).header("Set-Cookie", "server=1; Path=/")
        })
        .answer("/data", Answer::text("x").header("Set-Cookie", "hidden=1; Path=/; HttpOnly"))
        .page("/next", "<p></p><script>document.querySelector('p').textContent = document.cookie.split('; ').sort().join(' ')</script>")
        .start()
        .await;
    let crawled = crawl_all(&site, "/", &[]).await;
    assert_eq!(crawled.page("/next").text, "script=1 server=1", "what is for servers only is hidden");
    let requests = site.requests();
    let next = requests.iter().find(|asked| asked.request.path() == "/next").unwrap();
    let mut sent: Vec<&str> = next.request.header("cookie").unwrap().split("; ").collect();
    sent.sort_unstable();
    assert_eq!(sent, ["hidden=1", "script=1", "server=1"]);
    let jars = crawled.report.component::<Cookies>().unwrap();
    assert_eq!(jars.jars().with("", |jar| jar.len()), 3);
}

#[tokio::test]
async fn pages_that_need_it_are_found_out() {
    let words = |of: String| (0..60).map(|n| format!("{of}word{n} ")).collect::<String>();
    let mut links = String::new();
    for n in 0..12 {
        links.push_str(&format!("<a href=/text/{n}></a><a href=/app/{n}></a>"));
    }
    let site = Site::builder()
        .page("/", links)
        .route("/text/*", move |asked| Answer::html(format!("<p>{}</p>", words(asked.path().replace('/', "")))))
        .route("/app/*", |_| Answer::html("<div id=root></div><script src=/app.js></script>"))
        .answer("/app.js", script("document.getElementById('root').textContent = Array.from({length: 60}, (_, n) => location.pathname.slice(5) + 'word' + n).join(' ')"))
        .start()
        .await;
    let crawled = crawl(&site, vec![Request::get(site.url("/"))], &[("render", json!("auto"))]).await;
    let rendered = |kind: &str| {
        let of_kind = crawled.pages.iter().filter(|(path, _)| path.starts_with(kind));
        of_kind.filter(|(_, page)| page.rendered.is_some()).count()
    };
    assert_eq!((crawled.report.pages, rendered("/app/")), (25, 12));
    assert!((3..=6).contains(&rendered("/text/")), "{}", crawled.report.sections["render"]);
    assert!(crawled.page("/app/7").text.contains("7word59"));
    assert_eq!(site.count("/app.js"), 1);
}
