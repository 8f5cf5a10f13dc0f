//! `--render=auto` on a whole site of static pages, pages that a script fills, and pages of both kinds.
//!
//! `HUNTSMAN_RENDER_SITE=50` for 500 static, 300 filled and 200 mixed pages; by default a twenty-fifth part of it. `HUNTSMAN_SEED` for kills that
//! were seen before.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use huntsman_testkit::{Answer, RunningSite, Site};
use rand::RngExt as _;
use serde_json::Value;

use super::TRUSTED;
use super::kills::{chance, setting, wait};
use crate::common::{crawl, lines, report, run};

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

fn command(folder: &Path, site: &RunningSite, which: &str) -> Command {
    let mut command = crawl(folder, site);
    command.args(TRUSTED).args([which, "--text", "--store", "redb", "--set", "job_commit_interval=0.2"]);
    command
}

fn pages(folder: &Path, site: &RunningSite, which: &str) -> Pages {
    let said = run(&mut command(folder, site, which));
    assert_eq!(said.code, Some(0), "{said:?}");
    by_path(folder, site)
}

/// The same crawl, killed some times on its way, each time after fewer than `most` requests.
fn pages_with_kills(folder: &Path, site: &RunningSite, which: &str, most: usize) -> Pages {
    let (_, mut random) = chance();
    for _ in 0..random.random_range(1..4) {
        let mut child = command(folder, site, which);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait(site, most, &mut child, &mut random);
        // It may have ended by itself.
        let _ = child.kill();
        if child.wait().unwrap().success() {
            return by_path(folder, site);
        }
    }
    pages(folder, site, which)
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
    let all = pages(all.path(), &site, "--render");
    let auto = pages(auto.path(), &site, "--render=auto");
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
    assert!(statics <= most_static(part), "{statics} static pages were rendered");
}

/// Static pages that are rendered at most. Of each shape three are looked at before anything is known; on a small site that is much.
fn most_static(part: usize) -> usize {
    3 + part * 7 / 10 + usize::from(part < 50) * 3
}

/// The first segment of a path, by which the shapes of the site differ.
fn kind(path: &str) -> String {
    path.split(['/', '{']).nth(1).unwrap_or_default().to_owned()
}

/// What a crawl decided: of each kind of page, how many were rendered and how many were not, by its report; and what it believes of each shape.
type Decisions = (BTreeMap<String, (u64, u64)>, BTreeMap<(String, String), bool>);

fn decisions(folder: &Path) -> Decisions {
    let (mut counts, mut beliefs): Decisions = Default::default();
    for of in report(&folder.join("out"))["render"]["by_shape"].as_array().unwrap() {
        let text = |name: &str| of[name].as_str().unwrap().to_owned();
        let count = counts.entry(kind(&text("shape"))).or_default();
        count.0 += of["compared"].as_u64().unwrap();
        count.1 += of["static"].as_u64().unwrap();
        beliefs.insert((text("shape"), text("looks")), of["renders"].as_bool().unwrap());
    }
    (counts, beliefs)
}

/// The decisions after kills are those of a crawl that runs through, as far as pages come in another order: of each shape the same is believed;
/// what needs the browser gets it; each page taught once, those that the crawl has and no others; and as few are rendered to learn from them.
#[test]
fn after_kills_the_same_is_decided() {
    let part = part();
    let site = site(part);
    let (whole, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let once = pages(whole.path(), &site, "--render=auto");
    let asked = site.requests().len();
    let again = pages_with_kills(killed.path(), &site, "--render=auto", asked / 2);
    let is_needed = |path: &&str| path.starts_with("/app/") || path.starts_with("/mixed/");
    for pages in [&once, &again] {
        assert_eq!(rendered(pages).into_iter().filter(is_needed).count(), 10 * part);
    }
    assert_eq!(content(&again), content(&once));
    assert_eq!(decisions(killed.path()).1, decisions(whole.path()).1);
    for (folder, pages) in [(&whole, &once), (&killed, &again)] {
        let mut counted: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (path, page) in pages {
            let count = counted.entry(kind(path)).or_default();
            *(if page["render"].is_object() { &mut count.0 } else { &mut count.1 }) += 1;
        }
        assert_eq!(decisions(folder.path()).0, counted);
        let statics = counted["text"].0;
        assert!((3..=most_static(part) as u64).contains(&statics), "{statics} static pages were rendered");
    }
    let differ = rendered(&once).symmetric_difference(&rendered(&again)).count();
    println!("{} pages; {differ} that need no browser were rendered in one of both crawls only", once.len());
}
