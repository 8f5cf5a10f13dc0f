//! `--render=auto` on a whole site of static pages, pages that a script fills, and pages of both kinds.
//!
//! `HUNTSMAN_RENDER_SITE=50` for 500 static, 300 filled and 200 mixed pages; by default a twenty-fifth part of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use huntsman_testkit::{Answer, RunningSite, Site};
use serde_json::Value;

use super::{TRUSTED, kills::setting};
use crate::common::{crawl, lines, run};

/// Words that no other page has.
fn words(of: &str, number: usize) -> String {
    (0..number).map(|n| format!("{of}word{n} ")).collect()
}

/// Pages: static ones, those that a script fills, and those of which a script makes a part. Each is linked from the first page.
fn site(part: usize) -> RunningSite {
    let all = [("text", 10 * part), ("app", 6 * part), ("mixed", 4 * part)];
    let links = all
        .iter()
        .flat_map(|(kind, number)| (0..*number).map(move |n| format!("<a href=/{kind}/{n}>{n}</a>")));
    let script = "const [, kind, n] = location.pathname.split('/');
        const part = Array.from({length: 60}, (_, i) => `made${kind}${n}word${i}`).join(' ');
        document.getElementById('part').innerHTML = `<p>${part}</p><a href=/leaf/${kind}-${n}>leaf</a>`";
    Site::builder()
        .page("/", links.collect::<String>())
        .route("/text/*", |asked| {
            let own = words(&asked.path().replace('/', ""), 80);
            Answer::html(format!(
                "<title>{0}</title><p>{own}</p><script src=/idle.js></script>",
                asked.path()
            ))
        })
        .route("/app/*", |_| Answer::html("<div id=part></div><script src=/made.js></script>"))
        .route("/mixed/*", |asked| {
            let own = words(&asked.path().replace('/', ""), 80);
            Answer::html(format!("<p>{own}</p><div id=part></div><script src=/made.js></script>"))
        })
        .route("/leaf/*", |asked| {
            Answer::html(format!("<p>{}</p>", words(&asked.path().replace(['/', '-'], ""), 40)))
        })
        .answer("/made.js", Answer::text(script).header("Content-Type", "text/javascript"))
        .answer("/idle.js", Answer::text("window.idle = 1").header("Content-Type", "text/javascript"))
        .start_blocking()
}

/// The records of pages by path.
type Pages = BTreeMap<String, Value>;

fn pages(folder: &Path, site: &RunningSite, which: &str, more: &[&str]) -> Pages {
    let mut command = crawl(folder, site);
    command.args(TRUSTED).args([which, "--text"]).args(more);
    let said = run(&mut command);
    assert_eq!(said.code, Some(0), "{said:?}");
    by_path(folder, site)
}

fn by_path(folder: &Path, site: &RunningSite) -> Pages {
    let start = site.url("/").to_string();
    let path = |page: &Value| page["url"].as_str().unwrap().replacen(&start, "/", 1);
    lines(folder.join("out/pages.jsonl")).into_iter().map(|page| (path(&page), page)).collect()
}

fn rendered(pages: &Pages) -> BTreeSet<&str> {
    pages.iter().filter(|(_, page)| page["render"].is_object()).map(|(path, _)| path.as_str()).collect()
}

/// Words and links of all pages.
fn content(pages: &Pages) -> (BTreeSet<&str>, u64) {
    let texts = pages.values().filter_map(|page| page["text"].as_str());
    let links = pages.values().filter_map(|page| page["links"].as_u64()).sum();
    (texts.flat_map(str::split_whitespace).collect(), links)
}

fn part() -> usize {
    usize::try_from(setting("HUNTSMAN_RENDER_SITE").unwrap_or(2)).unwrap()
}

#[test]
fn nearly_all_content_is_found_and_few_static_pages_are_rendered() {
    let (part, site) = (part(), site(part()));
    let (all, auto) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let all = pages(all.path(), &site, "--render", &[]);
    let auto = pages(auto.path(), &site, "--render=auto", &[]);
    let ((words_all, links_all), (words_auto, links_auto)) = (content(&all), content(&auto));
    let share = words_auto.intersection(&words_all).count() as f64 / words_all.len() as f64;
    let of_links = links_auto as f64 / links_all as f64;
    let statics = rendered(&auto).into_iter().filter(|path| path.starts_with("/text/")).count();
    println!(
        "{} pages; words {share:.4}, links {of_links:.4}; rendered {} of {}, static ones {statics} of {}",
        all.len(),
        rendered(&auto).len(),
        auto.len(),
        10 * part
    );
    assert_eq!(rendered(&all).len(), all.len());
    assert!(share >= 0.99 && of_links >= 0.99, "words {share}, links {of_links}");
    // Of each shape three are looked at before anything is known; on a small site that is much.
    assert!(
        statics <= 3 + part * 7 / 10 + usize::from(part < 50) * 3,
        "{statics} static pages were rendered"
    );
}
