//! Tests of explanations and of the picture of a site.

use huntsman_detect::avoid::{
    Attempt, Decision, Kinship, Obstacle, Options, Overrides, PageText, Predictor, Relation, TemplateCounts,
    Verdict,
};
use url::Url;

const SITE: &str = "h.example";

fn url(path: &str) -> Url {
    Url::parse(&format!("https://{SITE}{path}")).expect("a URL")
}

fn predictor(warmup: u32) -> Predictor {
    Predictor::new(Options { warmup, exploration: 0.0, ..Options::default() })
}

fn learn(predictor: &mut Predictor, path: &str, content: usize) {
    let text: String = (0..60).map(|word| format!("w{content}x{} ", word * 7 + content % 3)).collect();
    predictor.discover(SITE, &url(path), None);
    predictor.learn(SITE, &url(path), PageText::of_page(&url(path), [(1, text.as_str())]));
}

fn best(predictor: &Predictor, path: &str) -> (Verdict, Relation) {
    let explained = predictor.explain_url(SITE, &url(path));
    (explained.verdict, explained.relations.into_iter().next().expect("it is tied to something"))
}

#[test]
fn a_rule_needs_as_many_tests_as_it_says() {
    let mut predictor = predictor(0);
    for n in 0..20 {
        learn(&mut predictor, &format!("/article?id={n}"), n);
    }
    for n in 0..2 {
        learn(&mut predictor, &format!("/article?id={n}&sid=s"), n);
    }
    let (verdict, relation) = best(&predictor, "/article?id=9&sid=s");
    assert_eq!((verdict, relation.kind), (Verdict::NotYet, Kinship::Removed), "{relation:?}");
    assert_eq!(relation.obstacles, [Obstacle::TooFewTests]);
    assert_eq!(relation.evidence.dup, 2.0);
    assert_eq!(relation.equals.as_deref(), Some("https://h.example/article?id=9"));
    let needs = relation.needs.expect("it can be believed") as usize;
    assert!(needs > 0 && relation.why.contains(&format!("{needs} more pages")), "{relation:?}");
    for n in 2..2 + needs {
        assert_eq!(best(&predictor, "/article?id=9&sid=s").0, Verdict::NotYet, "before test {n}");
        learn(&mut predictor, &format!("/article?id={n}&sid=s"), n);
    }
    let (verdict, relation) = best(&predictor, "/article?id=9&sid=s");
    assert!(verdict == Verdict::Skip && relation.active && relation.needs.is_none(), "{relation:?}");
    let decision = predictor.decide(SITE, &url("/article?id=9&sid=s"), Attempt::Regular);
    assert!(matches!(decision, Decision::Skip(_)), "what is explained is what is decided: {decision:?}");
}

/// Sixty documents, each at four of twenty revisions, which all show the same.
fn revisions(warmup: u32) -> Predictor {
    let mut predictor = predictor(warmup);
    for n in 0..60 {
        for revision in 0..4 {
            learn(&mut predictor, &format!("/doc/{n}?rev={}", 1 + (7 * n + 5 * revision) % 20), n);
        }
    }
    predictor
}

#[test]
fn a_value_far_from_those_that_were_tested_is_the_obstacle() {
    let explained = revisions(0).explain_url(SITE, &url("/doc/3?rev=900"));
    let changed =
        explained.relations.iter().find(|tie| tie.kind == Kinship::Changed && tie.ignores == ["rev"]);
    let relation = changed.expect("the same document was fetched at other revisions");
    assert!(!relation.active && relation.probability <= 0.6, "{relation:?}");
    assert!(relation.obstacles.contains(&Obstacle::OutsideRange), "{relation:?}");
    let range = &relation.tested[0];
    assert_eq!((range.slot.as_str(), range.low.as_str(), range.high.as_str()), ("rev", "1", "20"));
    assert!(range.outside && range.words.contains("believed from -37 to 58"), "{range:?}");
}

#[test]
fn before_the_warm_up_is_over_it_is_the_only_obstacle() {
    let (verdict, relation) = best(&revisions(500), "/doc/3?rev=9");
    assert_eq!(
        (verdict, &relation.obstacles[..]),
        (Verdict::WarmUp, &[Obstacle::WarmUp][..]),
        "{relation:?}"
    );
    assert!(
        !relation.active && relation.needs.is_none() && relation.why.contains("500 pages"),
        "{relation:?}"
    );
    assert_eq!(best(&revisions(0), "/doc/3?rev=9").0, Verdict::Skip);
}

#[test]
fn pages_that_were_different_are_the_obstacle() {
    let mut predictor = predictor(0);
    for n in 0..60 {
        learn(&mut predictor, &format!("/list?page={n}"), n);
    }
    let (verdict, relation) = best(&predictor, "/list?page=70");
    assert_eq!(
        (verdict, &relation.obstacles[..]),
        (Verdict::NotYet, &[Obstacle::Contradicted][..]),
        "{relation:?}"
    );
    assert!(relation.sisters.is_none() && relation.evidence.decayed, "{relation:?}");
    assert!(relation.evidence.nodup > 30.0 && relation.probability < 0.1, "{relation:?}");
}

#[test]
fn fetched_pinned_and_unknown_urls_are_told_apart() {
    let overrides = Overrides { pinned: vec!["sid".to_owned()], forbidden: vec!["page".to_owned()] };
    let mut predictor = predictor(300).with_overrides(overrides);
    learn(&mut predictor, "/news?page=1&sid=a", 1);
    let explained = predictor.explain_url(SITE, &url("/news?page=1&sid=a"));
    assert_eq!(explained.verdict, Verdict::Fetched, "{explained}");
    let explained = predictor.explain_url(SITE, &url("/news?page=1&sid=b"));
    assert_eq!(
        (explained.verdict, explained.relations[0].kind),
        (Verdict::Skip, Kinship::Pinned),
        "{explained}"
    );
    let kinds: Vec<_> = explained.slots.iter().map(|slot| (slot.name.as_str(), slot.kind)).collect();
    assert!(kinds.contains(&("sid", "pinned")) && kinds.contains(&("page", "forbidden")), "{kinds:?}");
    let explained = predictor.explain_url(SITE, &url("/other/place?x=1"));
    assert_eq!((explained.verdict, explained.relations.len()), (Verdict::Unknown, 0), "{explained}");
    let explained = predictor.explain_url("other.example", &url("/news"));
    assert_eq!((explained.verdict, explained.pages), (Verdict::Unknown, 0));
}

#[test]
fn the_parts_of_a_date_with_a_time_are_named() {
    let mut predictor = predictor(0);
    for n in 0..200 {
        learn(
            &mut predictor,
            &format!("/log?at=2024-{:02}-{:02}T{:02}:15:00", 1 + n % 12, 1 + n % 28, n / 12),
            n / 12,
        );
    }
    let path = "/log?at=2024-05-30T03:15:00";
    let explained = predictor.explain_url(SITE, &url(path));
    let names: Vec<&str> = explained.slots.iter().map(|slot| slot.name.as_str()).collect();
    assert_eq!(names, ["host", "/0", "at (first part)", "at"]);
    let (verdict, relation) = best(&predictor, path);
    assert_eq!(verdict, Verdict::Skip);
    assert_eq!(relation.ignores, ["at (first part)"], "{relation:?}");
    let slots = |path: &str| predictor.explain_url(SITE, &url(path)).slots.into_iter();
    let day: Vec<String> = slots("/log?at=2024-05-30").map(|slot| slot.name).collect();
    assert_eq!(day, ["host", "/0", "at (first part)"], "a day alone");
    let word: Vec<String> = slots("/log?at=now").map(|slot| slot.name).collect();
    assert_eq!(word, ["host", "/0", "at"], "what is no date");
}

#[test]
fn control_characters_of_a_url_do_not_reach_the_text() {
    let mut predictor = predictor(0);
    for n in 0..20 {
        learn(&mut predictor, &format!("/a?id={n}&%0A%1B[31mx=%0Ay"), n);
    }
    let text = predictor.explain_url(SITE, &url("/a?id=3&%0A%1B[31mx=%0Az")).to_string();
    assert!(!text.contains('\u{1b}') && text.contains("\\u{1b}"), "{text}");
    assert!(text.lines().all(|line| !line.starts_with('y') && !line.starts_with('z')), "{text}");
}

#[test]
fn a_picture_counts_pages_contents_and_skips_of_each_template() {
    let mut predictor = predictor(0);
    for n in 0..40 {
        learn(&mut predictor, &format!("/article?id={n}"), n);
        learn(&mut predictor, &format!("/article?id={n}&sid=x{n}"), n);
    }
    for n in 0..5 {
        let copy = url(&format!("/article?id={n}&sid=new"));
        predictor.discover(SITE, &copy, None);
        assert!(matches!(predictor.decide(SITE, &copy, Attempt::Regular), Decision::Skip(_)));
        let waiting = predictor.decide(SITE, &copy, Attempt::Waiting);
        assert_eq!(waiting, Decision::Hold, "pages that are being processed may speak against it");
        assert!(matches!(predictor.decide(SITE, &copy, Attempt::Last), Decision::Drop(_)));
    }
    let picture = predictor.picture(30);
    let found = |text: &str| {
        let found = picture.templates.iter().find(|template| template.template == text);
        found.unwrap_or_else(|| panic!("{text}: {picture:?}")).counts
    };
    let counts =
        |pages, new, contents, skipped| TemplateCounts { pages, new, contents, skipped, explored: 0 };
    assert_eq!(found("/article?id={number}"), counts(40, 40, 40, 0));
    assert_eq!(found("/article?id={number}&sid={text}"), counts(40, 0, 40, 5));
    let short = predictor.picture(1);
    assert_eq!((short.templates.len(), short.others, short.rest), (1, 1, counts(40, 40, 40, 0)));
}

#[test]
fn rules_that_were_not_believed_are_counted_with_their_requests() {
    let mut predictor = predictor(0);
    for n in 0..40 {
        let page = url(&format!("/list?page={n}"));
        predictor.discover(SITE, &page, None);
        assert!(!matches!(predictor.decide(SITE, &page, Attempt::Regular), Decision::Skip(_)));
        predictor.request_started(SITE, &page);
        predictor.request_finished(SITE, &page);
        learn(&mut predictor, &format!("/list?page={n}"), n);
    }
    assert!(predictor.rules().is_empty(), "nothing was skipped");
    let rules = predictor.rules_not_believed();
    let page = rules.iter().find(|rule| rule.dropped == ["page"]).expect("it was tried");
    assert!(page.fetched > 10 && page.skipped == 0, "{page:?}");
    let relation = predictor.explain_rule(page).expect("its example is known");
    assert_eq!(relation.obstacles, [Obstacle::Contradicted], "{relation:?}");
    assert_ne!(relation.equals.as_deref(), Some(page.example.as_str()), "another page than itself");
}
