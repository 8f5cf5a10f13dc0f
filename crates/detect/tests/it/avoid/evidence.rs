//! Tests of what counts as evidence, and of prior knowledge.

use huntsman_detect::avoid::{
    Attempt, Decision, Kinship, LinkContext, LinkPlaces, Options, Overrides, PageText, Predictor,
};
use huntsman_html::{Scan, ScanOptions};
use url::Url;

const SITE: &str = "h.example";

fn url(path: &str) -> Url {
    Url::parse(&format!("https://{SITE}{path}")).expect("a URL")
}

fn predictor() -> Predictor {
    Predictor::new(Options { warmup: 0, exploration: 0.0, ..Options::default() })
}

/// A different text for each number.
fn text(n: usize) -> String {
    (0..60).map(|word| format!("w{}x{} ", n, word * 7 + n % 3)).collect()
}

fn learn(predictor: &mut Predictor, path: &str, content: usize) -> u32 {
    predictor.discover(SITE, &url(path), None);
    let text = text(content);
    predictor.learn(SITE, &url(path), PageText::of_page(&url(path), [(1, text.as_str())]))
}

fn decide(predictor: &mut Predictor, path: &str) -> Decision {
    predictor.discover(SITE, &url(path), None);
    predictor.decide(SITE, &url(path), Attempt::Regular)
}

fn is_skipped(predictor: &mut Predictor, path: &str) -> bool {
    matches!(decide(predictor, path), Decision::Skip(_) | Decision::Drop(_))
}

#[test]
fn a_redirect_shows_what_its_target_shows_whichever_was_fetched_first() {
    for is_target_first in [true, false] {
        let mut predictor = predictor();
        for topic in 0..40 {
            let (page, post) = (format!("/topic/{topic}"), format!("/post/{}", 1_000 + 7 * topic));
            if is_target_first {
                let number = learn(&mut predictor, &page, topic);
                predictor.discover(SITE, &url(&post), Some(LinkContext { page: number, position: 5 }));
                predictor.redirect(SITE, &url(&post), &url(&page));
            } else {
                let list = learn(&mut predictor, &format!("/list?page={topic}"), 1_000 + topic);
                predictor.discover(SITE, &url(&post), Some(LinkContext { page: list, position: 6 }));
                predictor.redirect(SITE, &url(&post), &url(&page));
                learn(&mut predictor, &page, topic);
            }
        }
        // Posts that are linked from their own topic lead back to it; those linked from lists lead to new content.
        let topic = learn(&mut predictor, "/topic/99", 99);
        predictor.discover(SITE, &url("/post/5"), Some(LinkContext { page: topic, position: 5 }));
        let decision = predictor.decide(SITE, &url("/post/5"), Attempt::Regular);
        assert_eq!(matches!(decision, Decision::Skip(_)), is_target_first, "{decision:?}");
    }
}

#[test]
fn what_pages_name_as_their_own_address_is_believed_once_it_was_true() {
    let mut predictor = predictor();
    for n in 0..30 {
        let page = format!("/story/s{n}-and-what-it-is-called");
        let number = learn(&mut predictor, &page, n);
        predictor.claim(SITE, number, &url(&page), &url(&format!("/?p={}", 500 + n)));
        if n < 10 {
            let is_tested = n >= 4 || !is_skipped(&mut predictor, &format!("/?p={}", 500 + n));
            assert!(is_tested, "claim {n} was not believed before there were five");
            learn(&mut predictor, &format!("/?p={}", 500 + n), n);
        }
    }
    let Decision::Skip(reason) = decide(&mut predictor, "/?p=520") else { panic!("it is known") };
    assert_eq!(reason.kinship, Kinship::Named);
    assert_eq!(reason.equals.as_deref(), Some("https://h.example/story/s20-and-what-it-is-called"));
    // No page named this URL.
    assert!(!is_skipped(&mut predictor, "/?p=777"));
}

#[test]
fn a_claim_that_is_never_true_saves_nothing() {
    let mut predictor = predictor();
    for n in 0..30 {
        let number = learn(&mut predictor, &format!("/list?page={n}"), n);
        predictor.claim(SITE, number, &url(&format!("/list?page={n}")), &url(&format!("/l{n}")));
        learn(&mut predictor, &format!("/l{n}"), 1_000 + n);
    }
    let number = learn(&mut predictor, "/list?page=99", 99);
    predictor.claim(SITE, number, &url("/list?page=99"), &url("/l99"));
    assert!(!is_skipped(&mut predictor, "/l99"));
}

#[test]
fn what_is_forbidden_is_never_a_reason() {
    let sessions = |overrides: Overrides| {
        let mut predictor = predictor().with_overrides(overrides);
        for n in 0..40 {
            for session in 0..2 {
                learn(&mut predictor, &format!("/article?id={n}&sid={n}{session}"), n);
            }
        }
        is_skipped(&mut predictor, "/article?id=7&sid=new")
    };
    let of = |pinned: &[&str], forbidden: &[&str]| Overrides {
        pinned: pinned.iter().map(ToString::to_string).collect(),
        forbidden: forbidden.iter().map(ToString::to_string).collect(),
    };
    assert!(sessions(Overrides::default()));
    assert!(!sessions(of(&[], &["s*d"])));
    assert!(!sessions(of(&["sid"], &["sid"])), "forbidden wins");
    assert!(sessions(of(&[], &["other"])));
}

#[test]
fn what_is_pinned_needs_no_evidence_but_a_page() {
    let overrides =
        Overrides { pinned: vec!["sid".into(), "/1".into(), "host".into()], ..Overrides::default() };
    let mut predictor = Predictor::new(Options::default()).with_overrides(overrides);
    learn(&mut predictor, "/a/one/b?id=1", 1);
    let Decision::Drop(reason) = decide(&mut predictor, "/a/two/b?id=1&sid=3") else {
        panic!("it is pinned")
    };
    assert_eq!((reason.kinship, reason.probability), (Kinship::Pinned, 1.0));
    assert!(!is_skipped(&mut predictor, "/a/two/b?id=2&sid=3"), "another id");
    assert!(!is_skipped(&mut predictor, "/a/one/b?id=1"), "the page itself, fetched again");
    let elsewhere = Url::parse("https://www.h.example/a/x/b?id=1").expect("a URL");
    assert!(matches!(predictor.decide(SITE, &elsewhere, Attempt::Regular), Decision::Drop(_)));
}

#[test]
fn parameters_that_everybody_uses_for_tracking_need_little_evidence() {
    let after = |parameter: &str, pages: usize| {
        let mut predictor = predictor();
        for n in 0..60 {
            learn(&mut predictor, &format!("/a/{n}"), n);
        }
        for n in 0..pages {
            learn(&mut predictor, &format!("/a/{n}?{parameter}=x{n}"), n);
        }
        is_skipped(&mut predictor, &format!("/a/50?{parameter}=new"))
    };
    assert!(!after("utm_source", 1));
    assert!(after("utm_source", 3) && after("GCLID", 3) && after("fbclid", 3));
    assert!(!after("edition", 3));
    assert!(after("edition", 30));
}

#[test]
fn a_tracking_parameter_that_matters_is_believed_to_matter() {
    let mut predictor = predictor();
    for n in 0..60 {
        learn(&mut predictor, &format!("/a/{n}"), n);
    }
    for n in 0..4 {
        learn(&mut predictor, &format!("/a/{n}?utm_source=x{n}"), 1_000 + n);
    }
    assert!(!is_skipped(&mut predictor, "/a/50?utm_source=new"));
}

#[test]
fn one_rule_speaks_for_all_depths_of_a_tree() {
    let mut predictor = predictor();
    // Files two to five folders deep, each under two revisions, neither of which changed it.
    let path = |n: usize| {
        let folders: Vec<String> =
            (0..2 + n % 4).map(|depth| format!("d{}", (n * 31 + depth * 7) % 23)).collect();
        format!("{}/f{n}.c", folders.join("/"))
    };
    for n in 0..120 {
        for revision in 0..2 {
            learn(&mut predictor, &format!("/repo/tree/rev{}/{}", (n + revision) % 60, path(n)), n);
        }
    }
    // A depth at which no file was seen under two revisions.
    let deep = "a/b/c/d/e/f/g/h/deep.c";
    learn(&mut predictor, &format!("/repo/tree/rev1/{deep}"), 7_000);
    assert!(is_skipped(&mut predictor, &format!("/repo/tree/rev2/{deep}")));
    assert!(!is_skipped(&mut predictor, "/repo/tree/rev2/a/b/c/d/e/f/g/h/other.c"));
}

#[test]
fn a_few_ends_of_paths_are_views_and_no_files() {
    let mut predictor = predictor();
    // Messages, the thread of each in two views, and a source: paths of three depths, but no tree.
    for n in 0..60 {
        learn(&mut predictor, &format!("/list/message{n}/"), n);
        learn(&mut predictor, &format!("/list/message{n}/source/raw/"), 1_000 + n);
        for view in ["thread", "flat"] {
            learn(&mut predictor, &format!("/list/message{n}/{view}/"), 2_000 + n / 3);
        }
    }
    learn(&mut predictor, "/list/message99/thread/", 9_000);
    assert!(is_skipped(&mut predictor, "/list/message99/flat/"));
    for end in ["", "source/raw/"] {
        assert!(!is_skipped(&mut predictor, &format!("/list/message99/{end}")), "{end}");
    }
}

#[test]
fn what_tells_many_contents_apart_matters_however_many_pages_are_alike_then() {
    let mut predictor = predictor();
    // Lists from a time on: another one for the first 20 times, and then always the same. Of events, each has a page of its own.
    for n in 0..300 {
        learn(&mut predictor, &format!("/list?from={}", 10 * n), n.min(20));
        learn(&mut predictor, &format!("/event?from={}", 10 * n), 1_000 + n);
    }
    for from in [45, 155] {
        let decision = decide(&mut predictor, &format!("/list?from={from}"));
        assert!(!matches!(decision, Decision::Skip(_)), "{from}: {decision:?}");
    }
}

#[test]
fn repeated_parameters_meet_in_any_order() {
    let mut predictor = predictor();
    let facets = |a: usize, b: usize| format!("/shop?f=colour{a}&f=size{b}");
    let swapped = |a: usize, b: usize| format!("/shop?f=size{b}&f=colour{a}");
    for a in 0..8 {
        for b in 0..8 {
            learn(&mut predictor, &facets(a, b), a * 8 + b);
            if a < 5 {
                learn(&mut predictor, &swapped(a, b), a * 8 + b);
            }
        }
    }
    assert!(is_skipped(&mut predictor, &swapped(7, 3)));
    assert!(!is_skipped(&mut predictor, &swapped(9, 3)), "nobody fetched it in the other order");
}

#[test]
fn a_parameter_that_repeats_its_value_is_learnt_apart_from_others() {
    let mut predictor = predictor();
    for n in 0..12 {
        let shop = format!("/shop/{}?f=red", name(n));
        learn(&mut predictor, &shop, 10 * n);
        learn(&mut predictor, &format!("{shop}&f=round"), 10 * n + 1);
        learn(&mut predictor, &format!("{shop}&f=red"), 10 * n);
    }
    learn(&mut predictor, "/shop/new?f=blue", 500);
    assert!(is_skipped(&mut predictor, "/shop/new?f=blue&f=blue"));
    assert!(!is_skipped(&mut predictor, "/shop/new?f=blue&f=flat"));
}

#[test]
fn an_identifier_of_its_own_url_on_a_page_says_nothing() {
    let mut predictor = predictor();
    for n in 0..60 {
        for revision in [n * 2, n * 2 + 1] {
            let revision = format!("a{:07}", revision * 7919);
            let path = format!("/file/{revision}/doc{n}.txt");
            // The identifier is in every third window of words, and one word in twelve.
            let line = |at: usize| format!("{} of {revision} is ", format!("w{n}x{at} ").repeat(9));
            let body: String = (0..9).map(line).collect();
            predictor.discover(SITE, &url(&path), None);
            predictor.learn(SITE, &url(&path), PageText::of_page(&url(&path), [(1, body.as_str())]));
        }
    }
    assert!(is_skipped(&mut predictor, "/file/b7654321/doc7.txt"));
}

#[test]
fn a_line_about_the_making_of_a_page_is_chrome() {
    let mut predictor = predictor();
    for n in 0..60 {
        for (at, view) in ["show", "print", "flat", "list"].iter().enumerate() {
            let path = format!("/{view}?id={n}");
            let made = format!(
                "this page was generated by version 1.2.{at} in 0.{n}{at} seconds at 10:{n}:{at} of the clock"
            );
            let text: String = (0..12).map(|word| format!("w{n}x{word} ")).collect();
            predictor.discover(SITE, &url(&path), None);
            predictor.learn(
                SITE,
                &url(&path),
                PageText::of_page(&url(&path), [(1, text.as_str()), (2, &made)]),
            );
        }
    }
    learn(&mut predictor, "/show?id=900", 900);
    assert!(is_skipped(&mut predictor, "/print?id=900"));
}

/// Pages of 60 identities in six views, each of which has contents of its own; in so many of them an author stands beside it.
fn views_with_authors(views_with_author: usize) -> Predictor {
    let mut predictor = predictor();
    for n in 0..60 {
        // In another order for each, so that all pairs of views come one after the other.
        for view in (0..6).map(|view| (view + n) % 6) {
            learn_view(&mut predictor, n, view, view < views_with_author);
        }
        // The second one has the first one's content without the author.
        learn_view(&mut predictor, n, 6, false);
    }
    learn_view(&mut predictor, 900, 0, true);
    predictor
}

fn learn_view(predictor: &mut Predictor, n: usize, view: usize, has_author: bool) {
    let path = format!("/view{view}?id=n{n}");
    let words =
        |count: usize, of: usize| -> String { (0..count).map(|word| format!("w{n}v{of}x{word} ")).collect() };
    let content = words(60, view % 6);
    let author = if has_author { words(20, 7) } else { String::new() };
    let blocks = [(1, content.as_str()), (2, author.as_str())];
    predictor.discover(SITE, &url(&path), None);
    predictor.learn(SITE, &url(&path), PageText::of_page(&url(&path), blocks));
}

#[test]
fn what_stands_on_most_views_of_an_identity_is_chrome_and_what_stands_on_few_is_content() {
    assert!(is_skipped(&mut views_with_authors(6), "/view6?id=n900"));
    assert!(!is_skipped(&mut views_with_authors(2), "/view6?id=n900"));
}

#[test]
fn words_in_the_places_of_the_numbers_of_a_common_line_are_chrome_too() {
    let learn = |predictor: &mut Predictor, view: &str, id: &str, changed: &str| {
        let path = format!("/{view}?id={id}");
        let content: String = match view {
            "show" => (0..30).map(|word| format!("{id}w{word} ")).collect(),
            _ => (0..30).map(|word| format!("{view}w{word} ")).collect(),
        };
        predictor.discover(SITE, &url(&path), None);
        let blocks = [(1, content.as_str()), (2, changed)];
        predictor.learn(SITE, &url(&path), PageText::of_page(&url(&path), blocks));
    };
    for words_in_between in ["on monday at noon by alice", "once more for monday at noon by alice"] {
        let mut predictor = predictor();
        for n in 0..60 {
            for view in ["show", "login", "index"] {
                let changed = format!("file {n} was changed last on {n}.4.2021 at 10:{n} by 10.0.0.{n}");
                learn(&mut predictor, view, &format!("page_{n}"), &changed);
            }
        }
        for id in ["alpha", "beta", "gamma"] {
            let changed = format!("file {id} was changed last {words_in_between}");
            learn(&mut predictor, "login", id, &changed);
        }
        let is_same_line = words_in_between.starts_with("on monday");
        assert_eq!(is_skipped(&mut predictor, "/login?id=page_900"), is_same_line, "{words_in_between}");
    }
}

#[test]
fn exploration_falls_with_the_age_of_a_rule_where_it_may() {
    let run = |exploration_min: Option<f64>| {
        let options = Options { warmup: 0, exploration_min, seed: 3, ..Options::default() };
        let mut predictor = Predictor::new(options);
        for n in 0..6_000 {
            let path = format!("/article?id={}&sid=s{n}", n % 40);
            predictor.discover(SITE, &url(&path), None);
            let decision = predictor.decide(SITE, &url(&path), Attempt::Regular);
            if !matches!(decision, Decision::Skip(_)) {
                learn(&mut predictor, &path, n % 40);
            }
        }
        predictor.totals()
    };
    let (constant, falling) = (run(None), run(Some(0.005)));
    assert!(falling.explored * 2 < constant.explored, "{falling:?} {constant:?}");
    assert!(falling.explored > 20, "{falling:?}");
    let (estimate, most) = falling.loss().expect("something was explored");
    let (_, narrower) = constant.loss().expect("something was explored");
    assert_eq!(estimate, 0.0);
    assert!(most > narrower, "fewer explorations tell less");
}

#[test]
fn what_never_mattered_is_named_and_what_did_is_not() {
    let mut predictor = predictor();
    for n in 0..60 {
        for session in 0..2 {
            learn(&mut predictor, &format!("/article?id={n}&sid={n}{session}"), n);
        }
    }
    let idle = predictor.idle_parameters();
    let names: Vec<&str> = idle.iter().map(|idle| idle.parameter.as_str()).collect();
    assert_eq!(names, ["sid"]);
    assert!(idle[0].evidence.total() >= 20.0);
    // One page whose content the parameter changes.
    learn(&mut predictor, "/article?id=3&sid=other", 9_000);
    assert!(predictor.idle_parameters().is_empty());
}

#[test]
fn a_restart_keeps_redirects_and_claims() {
    let mut predictor = predictor();
    predictor.keep_journal();
    for n in 0..30 {
        let page = format!("/story/s{n}");
        let number = learn(&mut predictor, &page, n);
        predictor.claim(SITE, number, &url(&page), &url(&format!("/?p={}", 500 + n)));
        let go = format!("/go/{}", 900 + n);
        predictor.discover(SITE, &url(&go), Some(LinkContext { page: number, position: 9 }));
        if n < 14 {
            learn(&mut predictor, &format!("/?p={}", 500 + n), n);
            predictor.redirect(SITE, &url(&go), &url(&page));
        }
    }
    let options = *predictor.options();
    let batch = predictor.take_journal().expect("something was told");
    let restored = Predictor::restored(options, [batch.as_slice()]).expect("as it was");
    for path in ["/?p=520", "/go/925"] {
        let (was, is) = (predictor.explain(SITE, &url(path)), restored.explain(SITE, &url(path)));
        assert!(was.as_ref().is_some_and(|reason| reason.probability > 0.98), "{path}: {was:?}");
        assert_eq!(was, is);
    }
}

/// Another way to what a copy leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum OtherWay {
    Nothing,
    Link,
    /// A page with the same content, to which another page links.
    SameContent,
    /// The same, and it is skipped.
    SkippedContent,
}

#[test]
fn what_copies_alone_lead_to_is_not_given_up_at_the_end() {
    for way in [OtherWay::Nothing, OtherWay::Link, OtherWay::SameContent, OtherWay::SkippedContent] {
        let mut predictor = predictor();
        predictor.keep_journal();
        for n in 100..140 {
            learn(&mut predictor, &format!("/more/{n}"), n);
            learn(&mut predictor, &format!("/more/{n}?sid={n}a"), n);
        }
        for n in 0..40 {
            learn(&mut predictor, &format!("/article?id={n}&sid={n}a"), n);
            let copy = learn(&mut predictor, &format!("/article?id={n}&sid={n}b"), n);
            if n % 10 == 0 {
                let more = format!("/more/{n}");
                predictor.discover(SITE, &url(&more), Some(LinkContext { page: copy, position: 3 }));
                learn(&mut predictor, &more, 1_000 + n);
                let page = learn(&mut predictor, &format!("/list/{n}"), 2_000 + n);
                let (link, again) = (LinkContext { page, position: 4 }, format!("{more}?sid={n}b"));
                match way {
                    OtherWay::Nothing => {}
                    OtherWay::Link => predictor.link(SITE, &url(&more), link),
                    OtherWay::SameContent | OtherWay::SkippedContent => {
                        predictor.discover(SITE, &url(&again), Some(link));
                        if way == OtherWay::SameContent {
                            learn(&mut predictor, &again, 1_000 + n);
                        } else {
                            assert!(is_skipped(&mut predictor, &again));
                        }
                    }
                }
            }
        }
        let batch = predictor.take_journal().expect("something was told");
        let mut restored = Predictor::restored(*predictor.options(), [batch.as_slice()]).expect("as it was");
        for predictor in [&mut predictor, &mut restored] {
            assert!(is_skipped(predictor, "/article?id=7&sid=new"));
            let decision = predictor.decide(SITE, &url("/article?id=7&sid=new"), Attempt::Last);
            let is_fetched = way == OtherWay::Nothing;
            assert_eq!(matches!(decision, Decision::Explore(_)), is_fetched, "{way:?}: {decision:?}");
            assert_eq!(matches!(decision, Decision::Drop(_)), !is_fetched, "{way:?}: {decision:?}");
        }
    }
}

/// A site of articles under sessions. An article says at which address its notes are; the second copy of the first ten leads to them
/// first, and to new content if `has_content`. Articles have another kind of page, which is no copy, so that copies do not lead on alone.
fn articles_with_notes(has_content: bool) -> Predictor {
    let mut predictor = predictor();
    predictor.keep_journal();
    for n in 0..60 {
        learn(&mut predictor, &format!("/article?id=art{n}&sid=s{n}a"), n);
        let copy = learn(&mut predictor, &format!("/article?id=art{n}&sid=s{n}b"), n);
        if n < 10 {
            let notes = format!("/notes?of=art{n}");
            predictor.discover(SITE, &url(&notes), Some(LinkContext { page: copy, position: 3 }));
            let other = learn(&mut predictor, &format!("/list/{n}"), 2_000 + n);
            predictor.link(SITE, &url(&notes), LinkContext { page: other, position: 4 });
            learn(&mut predictor, &notes, if has_content { 1_000 + n } else { 1_000 });
        }
    }
    predictor
}

/// Three hundred more articles, whose notes are known: without them most articles have no notes, and none would be fetched for notes that it may have.
fn learn_articles_with_known_notes(predictor: &mut Predictor) {
    for n in 100..400 {
        learn(predictor, &format!("/article?id=art{n}&sid=s{n}a"), n);
        predictor.discover(SITE, &url(&format!("/notes?of=art{n}")), None);
    }
}

fn at_the_end(predictor: &mut Predictor, n: usize) -> Decision {
    let path = format!("/article?id=art{n}&sid=new");
    assert!(is_skipped(predictor, &path), "it is a copy");
    predictor.decide(SITE, &url(&path), Attempt::Last)
}

#[test]
fn a_copy_is_fetched_at_the_end_if_it_may_have_a_link_that_no_page_has() {
    let mut predictor = articles_with_notes(true);
    let decision = at_the_end(&mut predictor, 40);
    assert!(matches!(decision, Decision::Explore(_)), "its notes were not found: {decision:?}");
    let decision = at_the_end(&mut predictor, 5);
    assert!(matches!(decision, Decision::Drop(_)), "its notes are known: {decision:?}");
}

#[test]
fn links_that_led_to_nothing_new_are_no_reason_to_fetch_a_copy() {
    let decision = at_the_end(&mut articles_with_notes(false), 40);
    assert!(matches!(decision, Decision::Drop(_)), "{decision:?}");
}

#[test]
fn a_form_of_links_is_dropped_after_some_tests_and_kept_by_new_content() {
    for brings_new in [true, false] {
        let mut predictor = articles_with_notes(true);
        let mut fetched = 0;
        for n in 10..60 {
            if matches!(at_the_end(&mut predictor, n), Decision::Explore(_)) {
                fetched += 1;
                let page = learn(&mut predictor, &format!("/article?id=art{n}&sid=new"), n);
                if brings_new {
                    let notes = format!("/notes?of=art{n}");
                    predictor.discover(SITE, &url(&notes), Some(LinkContext { page, position: 3 }));
                    learn(&mut predictor, &notes, 1_000 + n);
                }
            }
        }
        if brings_new {
            assert_eq!(fetched, 50, "each leads to notes of its own");
        } else {
            assert!((2..=10).contains(&fetched), "{fetched} were fetched in vain");
        }
    }
}

/// Tells that the crawl follows no links of a page to these addresses.
fn refuse(predictor: &mut Predictor, page: u32, addresses: impl Iterator<Item = String>) {
    let html: String = addresses.map(|address| format!("<a href='{address}'>x</a>")).collect();
    let scan = Scan::of(&html, &ScanOptions::default());
    let links = LinkPlaces::of(scan.links(&html), Some(&url("/")), |address| url("/").join(address).ok());
    predictor.refuse_others(SITE, page, &links);
}

#[test]
fn a_url_that_the_crawl_refused_is_no_reason_to_fetch_a_copy() {
    let mut predictor = articles_with_notes(true);
    let page = learn(&mut predictor, "/contents", 4_000);
    refuse(&mut predictor, page, (5..42).map(|n| format!("/notes?of=art{n}")));
    // Found on another page, or by another rule of the crawl.
    predictor.discover(SITE, &url("/notes?of=art41"), None);
    learn(&mut predictor, "/notes?of=art41", 1_041);
    let batch = predictor.take_journal().expect("something was told");
    let mut restored = Predictor::restored(*predictor.options(), [batch.as_slice()]).expect("as it was");
    for predictor in [&mut predictor, &mut restored] {
        let decision = at_the_end(predictor, 40);
        assert!(matches!(decision, Decision::Drop(_)), "its notes are not fetched: {decision:?}");
        let decision = at_the_end(predictor, 41);
        assert!(matches!(decision, Decision::Drop(_)), "its notes are known: {decision:?}");
        let decision = at_the_end(predictor, 42);
        assert!(matches!(decision, Decision::Explore(_)), "nothing is known of its notes: {decision:?}");
    }
}

#[test]
fn where_most_links_are_refused_few_copies_are_fetched_for_links() {
    let in_vain = |are_refused: bool| {
        let mut predictor = articles_with_notes(true);
        learn_articles_with_known_notes(&mut predictor);
        let far = way_from_the_start(&mut predictor, 5);
        for n in 0..20 {
            let path = format!("/far/{n}");
            predictor.discover(SITE, &url(&path), Some(LinkContext { page: far, position: 9 }));
            let page = learn(&mut predictor, &path, 5_000 + n);
            if are_refused {
                refuse(&mut predictor, page, (0..9).map(|link| format!("/farther/{n}/{link}")));
            }
        }
        let fetched = (10..60).filter(|n| {
            let path = format!("/article?id=art{n}&sid=new");
            predictor.discover(SITE, &url(&path), Some(LinkContext { page: far, position: 9 }));
            let is_fetched = matches!(at_the_end(&mut predictor, *n), Decision::Explore(_));
            if is_fetched {
                learn(&mut predictor, &path, *n);
            }
            is_fetched
        });
        fetched.count()
    };
    let (refused, followed) = (in_vain(true), in_vain(false));
    assert!(refused < followed, "{refused} and {followed}");
}

#[test]
fn a_restart_keeps_which_pages_say_whether_links_are_followed() {
    let mut predictor = articles_with_notes(true);
    learn_articles_with_known_notes(&mut predictor);
    let far = way_from_the_start(&mut predictor, 5);
    let far_page = |predictor: &mut Predictor, path: &str, content: usize| {
        predictor.discover(SITE, &url(path), Some(LinkContext { page: far, position: 9 }));
        learn(predictor, path, content)
    };
    let refused_page = |predictor: &mut Predictor, n: usize| {
        let page = far_page(predictor, &format!("/far/{n}"), 5_000 + n);
        refuse(predictor, page, std::iter::once(format!("/farther/{n}")));
    };
    (0..60).for_each(|n| refused_page(&mut predictor, n));
    let at_the_far_end = |predictor: &mut Predictor, n: usize| {
        let path = format!("/article?id=art{n}&sid=new");
        predictor.discover(SITE, &url(&path), Some(LinkContext { page: far, position: 9 }));
        let decision = at_the_end(predictor, n);
        if matches!(decision, Decision::Explore(_)) {
            learn(predictor, &path, n);
        }
        decision
    };
    let in_vain =
        (10..20).filter(|n| matches!(at_the_far_end(&mut predictor, *n), Decision::Explore(_))).count();
    assert!((1..5).contains(&in_vain), "{in_vain}");
    // With more pages, all pages are looked at again.
    (60..120).for_each(|n| refused_page(&mut predictor, n));
    let decision = at_the_far_end(&mut predictor, 29);
    assert!(matches!(decision, Decision::Drop(_)), "{decision:?}");
    // Links are followed on further pages, but these are too few for another look.
    for n in 120..123 {
        let page = far_page(&mut predictor, &format!("/far/{n}"), 5_000 + n);
        let farther = url(&format!("/farther/{n}"));
        predictor.discover(SITE, &farther, Some(LinkContext { page, position: 9 }));
    }
    let batch = predictor.take_journal().expect("something was told");
    let mut restored = Predictor::restored(*predictor.options(), [batch.as_slice()]).expect("as it was");
    for n in 20..23 {
        let (one, other) = (at_the_far_end(&mut predictor, n), at_the_far_end(&mut restored, n));
        assert_eq!(one, other, "article {n}");
        assert!(matches!(one, Decision::Drop(_)), "article {n}: {one:?}");
    }
}

/// Pages of which each is found on the one before, and that no other page links to; returns the number of the last.
fn way_from_the_start(predictor: &mut Predictor, steps: usize) -> u32 {
    let mut last = learn(predictor, "/way/0", 3_000);
    for step in 1..=steps {
        let path = format!("/way/{step}");
        predictor.discover(SITE, &url(&path), Some(LinkContext { page: last, position: 7 }));
        last = learn(predictor, &path, 3_000 + step);
    }
    last
}

#[test]
fn tests_of_a_form_far_from_the_start_say_nothing_about_nearer_pages() {
    for far_first in [true, false] {
        let mut predictor = articles_with_notes(true);
        learn_articles_with_known_notes(&mut predictor);
        let far = way_from_the_start(&mut predictor, 5);
        let mut fetched = [0, 0];
        for turn in [far_first, !far_first] {
            for n in if turn == far_first { 10..30 } else { 30..50 } {
                if turn {
                    let path = format!("/article?id=art{n}&sid=new");
                    predictor.discover(SITE, &url(&path), Some(LinkContext { page: far, position: 9 }));
                }
                // None of the copies has the link.
                if matches!(at_the_end(&mut predictor, n), Decision::Explore(_)) {
                    fetched[usize::from(turn)] += 1;
                    learn(&mut predictor, &format!("/article?id=art{n}&sid=new"), n);
                }
            }
        }
        let [near, far] = fetched;
        assert!((2..=10).contains(&near), "{near} near pages were fetched, far ones first: {far_first}");
        assert_eq!(far > 0, far_first, "{far} far pages were fetched in vain");
    }
}

#[test]
fn a_url_is_as_far_from_the_start_as_the_shortest_way_to_it() {
    let mut predictor = predictor();
    predictor.keep_journal();
    let last = way_from_the_start(&mut predictor, 6);
    predictor.discover(SITE, &url("/end"), Some(LinkContext { page: last, position: 7 }));
    let depths = |predictor: &Predictor| {
        // The highest bits are the number of links from the start.
        ["/way/0", "/way/3", "/way/6", "/end"].map(|path| predictor.rank(SITE, &url(path)) >> 24)
    };
    assert_eq!(depths(&predictor), [0, 3, 6, 7]);
    // A short cut to a page shortens the ways to what it leads to.
    let start = learn(&mut predictor, "/contents", 4_000);
    predictor.link(SITE, &url("/way/3"), LinkContext { page: start, position: 8 });
    assert_eq!(depths(&predictor), [0, 1, 4, 5]);
    let batch = predictor.take_journal().expect("something was told");
    let restored = Predictor::restored(*predictor.options(), [batch.as_slice()]).expect("as it was");
    assert_eq!(depths(&restored), depths(&predictor));
}

#[test]
fn the_first_copy_on_the_way_from_the_start_is_fetched_at_the_end() {
    let mut predictor = predictor();
    let far = way_from_the_start(&mut predictor, 5);
    for n in 0..60 {
        for copy in ['a', 'b'] {
            let path = format!("/article?id=art{n}&sid=s{n}{copy}");
            predictor.discover(SITE, &url(&path), Some(LinkContext { page: far, position: 9 }));
            learn(&mut predictor, &path, n);
        }
    }
    // All copies so far are where a crawl may end. What a nearer one links to is not known.
    let start = learn(&mut predictor, "/contents", 4_000);
    for (page, id, is_fetched) in [(far, 7, false), (start, 8, true), (far, 9, false)] {
        let path = format!("/article?id=art{id}&sid=new");
        predictor.discover(SITE, &url(&path), Some(LinkContext { page, position: 9 }));
        let decision = at_the_end(&mut predictor, id);
        assert_eq!(matches!(decision, Decision::Explore(_)), is_fetched, "{id}: {decision:?}");
        if is_fetched {
            learn(&mut predictor, &path, id);
        }
    }
}

#[test]
fn a_restart_in_the_tests_of_the_end_changes_no_decision() {
    for restart in [12, 13, 14, 20] {
        let mut predictor = articles_with_notes(true);
        let mut cut = articles_with_notes(true);
        let far = [&mut predictor, &mut cut].map(|predictor| way_from_the_start(predictor, 3));
        for n in 10..30 {
            if n % 2 == 0 {
                for (predictor, far) in [&mut predictor, &mut cut].into_iter().zip(far) {
                    let path = format!("/article?id=art{n}&sid=new");
                    predictor.discover(SITE, &url(&path), Some(LinkContext { page: far, position: 9 }));
                }
            }
            if n == restart {
                let batch = cut.take_journal().expect("something was told");
                cut = Predictor::restored(*predictor.options(), [batch.as_slice()]).expect("as it was");
            }
            let (one, other) = (at_the_end(&mut predictor, n), at_the_end(&mut cut, n));
            assert_eq!(one, other, "page {n}, restart at {restart}");
        }
    }
}

/// A name of letters for each number; such names have no order.
fn name(n: usize) -> String {
    [n / 400, n / 20 % 20, n % 20]
        .into_iter()
        .flat_map(|part| ["ma", "re"][part % 2].chars().chain([char::from(b'a' + part as u8)]))
        .collect()
}

#[test]
fn one_test_is_enough_for_a_skip_where_nearly_all_sisters_always_held() {
    let after = |tests: usize, mixed_views: usize| {
        let mut predictor = predictor();
        // Lists that are the same for all pages, but for some views, where every second page has a list of its own.
        for n in 0..240 {
            let (view, page) = (n % 12, n / 12);
            let is_own = view < mixed_views && page % 2 == 1;
            learn(
                &mut predictor,
                &format!("/show/{}?view=v{view}", name(n)),
                if is_own { 1_000 + n } else { view },
            );
        }
        for test in 0..=tests {
            learn(&mut predictor, &format!("/show/{}?view=new", name(500 + test)), 50);
        }
        is_skipped(&mut predictor, &format!("/show/{}?view=new", name(600)))
    };
    assert!(!after(0, 0), "a view that was not tested is fetched");
    assert!(after(1, 0));
    assert!(!after(2, 4), "a third of the sisters is mixed");
    assert!(after(20, 4));
}

/// A site of so many pages, of which so many have a copy: the same article for the print.
fn pages_with_prints(pages: usize, prints: usize) -> Predictor {
    let mut predictor = predictor();
    for n in 0..pages {
        learn(&mut predictor, &format!("/article?id={}", name(n)), n);
        if n < prints {
            learn(&mut predictor, &format!("/article?id={}&print=1", name(n)), n);
        }
    }
    predictor
}

#[test]
fn a_page_that_may_be_a_copy_waits_for_those_that_cannot_be_one() {
    let mut predictor = pages_with_prints(20, 10);
    let decision = decide(&mut predictor, &format!("/article?id={}", name(600)));
    assert_eq!(decision, Decision::Fetch, "nothing like it is known");
    // Another view of known pages, for which nothing is known: prints say that it may show the same.
    let decision = decide(&mut predictor, &format!("/article?id={}&mobile=1", name(3)));
    let Decision::Delay { probability } = decision else { panic!("{decision:?}") };
    assert!(probability > 0.5 && probability < 0.61, "{probability}");
}

#[test]
fn pages_that_may_be_copies_do_not_wait_where_few_pages_were_such_ones() {
    let mut predictor = pages_with_prints(60, 5);
    let decision = decide(&mut predictor, &format!("/article?id={}&mobile=1", name(3)));
    assert_eq!(decision, Decision::Fetch, "fewer than a quarter of the pages may have been copies");
}

#[test]
fn four_requests_in_flight_test_the_same_parts_of_one_kind_of_url() {
    let mut predictor = predictor();
    // In some views all pages show the same, and in others every second one has a list of its own. So each view has a row of its own, and one test says little.
    for n in 0..240 {
        let (view, page) = (n % 12, n / 12);
        let is_own = view < 4 && page % 2 == 1;
        learn(
            &mut predictor,
            &format!("/show/{}?view=v{view}", name(page)),
            if is_own { 1_000 + n } else { view },
        );
    }
    let path = |view: usize, page: usize| format!("/show/{}?view=new{view}", name(500 + page));
    for view in 0..8 {
        learn(&mut predictor, &path(view, 0), 2_000 + view);
    }
    let mut started = 0;
    for view in 0..8 {
        let decision = decide(&mut predictor, &path(view, 1));
        if matches!(decision, Decision::Hold) {
            continue;
        }
        predictor.request_started(SITE, &url(&path(view, 1)));
        started += 1;
    }
    assert_eq!(started, 4);
}

#[test]
fn several_parameters_may_be_left_out_with_the_values_that_show_the_same() {
    // Listings of directories: sorted by name, and by description where there are none, they are what the address without a query shows.
    // Each value of those two queries is also in an address that shows something else.
    let mut predictor = predictor();
    let queries = [("C=D;O=A", 0), ("C=N;O=D", 1), ("C=S;O=A", 2), ("C=D;O=D", 3), ("C=N;O=A", 0)];
    for n in 0..40 {
        learn(&mut predictor, &format!("/{}/", name(n)), n * 10);
        for (query, content) in queries {
            learn(&mut predictor, &format!("/{}/?{query}", name(n)), n * 10 + content);
        }
    }
    learn(&mut predictor, &format!("/{}/", name(41)), 410);
    for (query, content) in queries {
        let decision = decide(&mut predictor, &format!("/{}/?{query}", name(41)));
        assert_eq!(matches!(decision, Decision::Skip(_)), content == 0, "{query}: {decision:?}");
        if let Decision::Skip(reason) = decision {
            let rule = reason.to_string();
            assert!(rule.contains("may be left out with these values"), "{rule}");
        }
    }
}

#[test]
fn a_request_waits_for_a_page_in_flight_that_has_its_content_in_more_than_one_of_three_cases() {
    // Of ten articles, so many have the same text as on their print view.
    let decision = |same: usize| {
        let mut predictor = predictor();
        for n in 0..60 {
            learn(&mut predictor, &format!("/article?id={}", name(n)), n);
            let content = if n % 10 < same { n } else { 1_000 + n };
            learn(&mut predictor, &format!("/article?id={}&print=1", name(n)), content);
        }
        let page = url(&format!("/article?id={}", name(700)));
        predictor.discover(SITE, &page, None);
        predictor.request_started(SITE, &page);
        decide(&mut predictor, &format!("/article?id={}&print=1", name(700)))
    };
    assert!(matches!(decision(2), Decision::Fetch), "{:?}", decision(2));
    assert!(matches!(decision(5), Decision::Hold), "{:?}", decision(5));
}

/// Makes the URL of an aspect at a revision.
type UrlOf = fn(&str, usize) -> String;

/// A file that changes with every third revision, learnt in two aspects. `is_alike` says whether the second aspect is also the same for three
/// revisions, or differs with each.
fn aspects(url: UrlOf, is_alike: bool) -> Predictor {
    let mut predictor = predictor();
    for n in 0..240 {
        learn(&mut predictor, &url("raw", n), n / 3);
        let content = if is_alike { n / 3 } else { n };
        learn(&mut predictor, &url("blame", n), 1_000 + content);
    }
    predictor
}

fn by_parameter(aspect: &str, rev: usize) -> String {
    format!("/{aspect}?rev={}", name(rev))
}

/// Each file has six revisions, with one change.
fn by_path(aspect: &str, rev: usize) -> String {
    let file = if rev == 300 { 3 } else { rev / 6 };
    format!("/{aspect}/{}/{}.c", name(rev), name(file))
}

#[test]
fn values_that_show_the_same_in_one_aspect_do_so_in_another_if_they_did_before() {
    let urls: [(UrlOf, &str); 2] = [(by_parameter, "rev"), (by_path, "/1")];
    for ((url, slot), is_alike) in urls.into_iter().flat_map(|url| [(url, true), (url, false)]) {
        let mut predictor = aspects(url, is_alike);
        assert!(!is_skipped(&mut predictor, &url("blame", 300)), "nothing is known of it");
        learn(&mut predictor, &url("raw", 300), 7);
        let decision = decide(&mut predictor, &url("blame", 300));
        if let Decision::Skip(reason) = &decision {
            assert_eq!(reason.kinship, Kinship::Equivalent);
            let rule = format!("two values of {slot:?} that show the same elsewhere do so at /blame");
            assert!(reason.to_string().starts_with(&rule), "{reason}");
            let like = [21, 22, 23].map(|n| format!("https://h.example{}", url("blame", n)));
            assert!(like.iter().any(|like| Some(like) == reason.equals.as_ref()), "{reason:?}");
        }
        assert_eq!(matches!(decision, Decision::Skip(_)), is_alike, "{slot}: {decision:?}");
    }
}

#[test]
fn a_request_waits_for_another_aspect_of_its_value() {
    for (rev, is_held) in [(300, true), (301, false)] {
        let mut predictor = aspects(by_parameter, true);
        let raw = url(&by_parameter("raw", 300));
        predictor.discover(SITE, &raw, None);
        predictor.request_started(SITE, &raw);
        let decision = decide(&mut predictor, &by_parameter("blame", rev));
        assert_eq!(matches!(decision, Decision::Hold), is_held, "{decision:?}");
    }
}

fn day(n: usize) -> String {
    format!("20{:02}-{:02}-{:02}", 10 + n / 336, 1 + n / 28 % 12, 1 + n % 28)
}

/// Lists of events up to a time of 80 days, and up to the end of 40 of these and of 140 other days. `is_by_day` says whether the former show
/// whole days, too.
fn events(is_by_day: bool) -> Predictor {
    let mut predictor = predictor();
    let learn_day = |predictor: &mut Predictor, n: usize| {
        let content = if is_by_day { n } else { 100_000 + n };
        learn(predictor, &format!("/events?days=30&from={}", day(n)), content);
    };
    (100..240).for_each(|n| learn_day(&mut predictor, n));
    for n in 0..80 {
        for hour in [n * 7 % 24, (n * 7 + 5) % 24] {
            let content = if is_by_day { n } else { n * 24 + hour };
            learn(
                &mut predictor,
                &format!("/events?from={}T{hour:02}:00:00Z&precision=second", day(n)),
                content,
            );
        }
        if n % 2 == 0 {
            learn_day(&mut predictor, n);
        }
    }
    predictor
}

#[test]
fn a_date_shows_what_a_time_of_that_date_shows_if_it_did_before() {
    for is_by_day in [true, false] {
        let mut predictor = events(is_by_day);
        let decision = decide(&mut predictor, &format!("/events?days=30&from={}", day(41)));
        assert_eq!(matches!(decision, Decision::Skip(_)), is_by_day, "{decision:?}");
        assert!(!is_skipped(&mut predictor, &format!("/events?days=30&from={}", day(300))), "another day");
        if let Decision::Skip(reason) = decision {
            let like = format!("https://h.example/events?from={}T", day(41));
            assert!(reason.equals.as_ref().is_some_and(|url| url.starts_with(&like)), "{reason:?}");
        }
    }
}

#[test]
fn what_lies_between_far_neighbours_speaks_for_near_ones_and_not_the_other_way_round() {
    // Lists that are the same from 0 to 999, and different from then on.
    let is_skipped_after = |tested: u32, asked: u32| {
        let mut predictor = predictor();
        for n in 0..20 {
            for at in [0, tested, 2_000, tested / 2] {
                learn(
                    &mut predictor,
                    &format!("/list/{}?at={at}", name(n)),
                    2 * n + usize::from(at == 2_000),
                );
            }
        }
        for at in [0, asked, 2_000] {
            learn(&mut predictor, &format!("/list/new?at={at}"), 100 + usize::from(at == 2_000));
        }
        is_skipped(&mut predictor, &format!("/list/new?at={}", asked / 2))
    };
    assert!(is_skipped_after(512, 512), "this very distance was tested");
    assert!(is_skipped_after(512, 16));
    assert!(!is_skipped_after(16, 512));
}

#[test]
fn a_number_with_a_sign_behind_it_lies_between_others_with_the_sign_only() {
    // `?at=500` lists what comes after that time, and `?at=500-` what comes before it.
    let mut predictor = predictor();
    let mut learn_list = |name: String, from: usize, at: &[&str]| {
        for at in at {
            learn(
                &mut predictor,
                &format!("/list/{name}?at={at}"),
                2 * from + usize::from(at.ends_with('-')),
            );
        }
    };
    for n in 0..20 {
        learn_list(name(n), n, &["0", "1000", "0-", "1000-", "500", "500-"]);
    }
    learn_list("new".into(), 100, &["0", "1000", "0-", "1000-", "400", "600"]);
    let decision = decide(&mut predictor, "/list/new?at=500-");
    let Decision::Skip(reason) = decision else { panic!("{decision:?}") };
    assert_eq!(reason.kinship, Kinship::Between);
    assert!(reason.equals.as_ref().is_some_and(|url| url.ends_with('-')), "{reason:?}");
}

#[test]
fn what_lies_between_is_not_believed_of_a_form_of_pages_in_which_it_failed() {
    let mut predictor = predictor();
    for n in 0..120 {
        for at in [0, 1_000, 500] {
            learn(&mut predictor, &format!("/list/{}?at={at}", name(n)), n);
        }
        // The first diaries have an entry at 500, and so many lists hide that.
        let of_diary = |at: usize| 1_000 + n + if n < 4 && at == 500 { 500 } else { 0 };
        for at in [0, 1_000, 500].into_iter().filter(|_| n < 4) {
            learn(&mut predictor, &format!("/diary/of/{}?at={at}", name(n)), of_diary(at));
        }
    }
    for path in ["/list", "/diary/of"] {
        for at in [0, 1_000] {
            learn(&mut predictor, &format!("{path}/new?at={at}"), 5_000 + path.len());
        }
    }
    assert!(is_skipped(&mut predictor, "/list/new?at=500"));
    let decision = decide(&mut predictor, "/diary/of/new?at=500");
    assert!(!matches!(decision, Decision::Skip(_)), "{decision:?}");
}

#[test]
fn a_limit_may_be_left_out_of_lists_that_are_shorter_than_it() {
    let entries = |list: usize, count: usize| -> String {
        (0..count)
            .map(|at| format!("entry {list}x{at} of list{list} with words w{at} v{at} u{at}. "))
            .collect()
    };
    let mut predictor = predictor();
    let mut learn_list = |folder: &str, list: usize, limit: Option<usize>, length: usize| {
        let limited = limit.map(|limit| format!("?limit={limit}")).unwrap_or_default();
        let path = format!("/{folder}/{}{limited}", name(list));
        let body = entries(list, length.min(limit.unwrap_or(length)));
        predictor.discover(SITE, &url(&path), None);
        predictor.learn(SITE, &url(&path), PageText::of_page(&url(&path), [(1, body.as_str())]));
    };
    // Each folder is a choice, so that the rows of one say nothing about another.
    for (at, folder) in ["news", "films", "songs", "plays", "poems", "tales"].iter().enumerate() {
        for n in 0..12 {
            let (list, length) = (100 * at + n, if n % 2 == 0 { 4 } else { 60 });
            learn_list(folder, list, None, length);
            learn_list(folder, list, Some(20), length);
        }
    }
    for list in [900, 901] {
        learn_list("maps", list, None, if list == 900 { 4 } else { 60 });
    }
    let address = |list: usize| format!("/maps/{}?limit=20", name(list));
    let Decision::Skip(reason) = decide(&mut predictor, &address(900)) else { panic!("a short list") };
    assert!(reason.rule.ends_with("may be left out of pages of this size"), "{reason:?}");
    let explained = predictor.explain_url(SITE, &url(&address(901))).decision;
    assert!(!is_skipped(&mut predictor, &address(901)), "{explained}");
}

#[test]
fn copies_that_were_foreseen_do_not_end_a_form_of_links() {
    // Six of ten notes in a row are the remarks on the same article, or on another one.
    let fetched = |is_foreseen: bool| {
        let notes = |n: usize| if n % 10 < 6 { 1_000 + n } else { 5_000 + n };
        let mut predictor = articles_with_notes(true);
        for n in (60..160).chain(10..60) {
            let of = if is_foreseen { n } else { n + 1_000 };
            learn(&mut predictor, &format!("/remarks?on=art{of}"), 1_000 + n);
            if n >= 60 {
                learn(&mut predictor, &format!("/notes?of=art{n}"), notes(n));
            }
        }
        let mut is_fetched = |n: &usize| {
            let is_fetched = matches!(at_the_end(&mut predictor, *n), Decision::Explore(_));
            if is_fetched {
                let page = learn(&mut predictor, &format!("/article?id=art{n}&sid=new"), *n);
                let path = format!("/notes?of=art{n}");
                predictor.discover(SITE, &url(&path), Some(LinkContext { page, position: 3 }));
                learn(&mut predictor, &path, notes(*n));
            }
            is_fetched
        };
        (10..60).filter(|n| is_fetched(n)).count()
    };
    let (foreseen, surprising) = (fetched(true), fetched(false));
    assert_eq!((foreseen, surprising), (50, 6));
}
