//! Tests of which pages count as the same.

use huntsman_detect::avoid::{Attempt, Decision, Kinship, LinkContext, Options, PageText, Predictor};
use url::{Position, Url};

const SITE: &str = "h.example";

fn url(path: &str) -> Url {
    Url::parse(&format!("https://{SITE}{path}")).expect("a URL")
}

fn predictor() -> Predictor {
    Predictor::new(Options { warmup: 0, exploration: 0.0, ..Options::default() })
}

fn learn_text(predictor: &mut Predictor, path: &str, text: &str) -> u32 {
    predictor.discover(SITE, &url(path), None);
    predictor.learn(SITE, &url(path), PageText::of_page(&url(path), [(1, text)]))
}

/// A number of words that are different for each `n`.
fn words(n: usize, count: usize) -> String {
    (0..count).map(|word| format!("w{n}x{word} ")).collect()
}

fn decide(predictor: &mut Predictor, path: &str) -> Decision {
    predictor.discover(SITE, &url(path), None);
    predictor.decide(SITE, &url(path), Attempt::Regular)
}

fn is_skipped(predictor: &mut Predictor, path: &str) -> bool {
    matches!(decide(predictor, path), Decision::Skip(_))
}

#[test]
fn pages_of_ten_words_are_the_same_if_all_words_are() {
    let mut predictor = predictor();
    for n in 0..60 {
        learn_text(&mut predictor, &format!("/list?id={n}"), &words(n, 10));
        learn_text(&mut predictor, &format!("/list?id={n}&sid=s{n}"), &words(n, 10));
        // A short text of which one word is another is another content.
        learn_text(&mut predictor, &format!("/list?id={n}&page={n}"), &(words(n, 9) + "other"));
    }
    learn_text(&mut predictor, "/list?id=99", &words(99, 10));
    assert!(is_skipped(&mut predictor, "/list?id=99&sid=new"));
    assert!(!is_skipped(&mut predictor, "/list?id=99&page=3"));
}

#[test]
fn pages_without_words_are_never_the_same() {
    let mut predictor = predictor();
    for n in 0..60 {
        learn_text(&mut predictor, &format!("/script?id={n}"), "");
    }
    assert!(!is_skipped(&mut predictor, "/script?id=99"));
}

/// Forms of editing 40 pages, each with the title of its page in the address and twice in a text with so many other words.
fn forms_with_titles(others: usize) -> Predictor {
    let mut predictor = predictor();
    for n in 0..40 {
        let form = {
            let title = title(n).replace('_', " ");
            format!("Editing {title} You are not logged in. {} Back to {title}", words(7_000, others))
        };
        learn_text(&mut predictor, &format!("/index.php?title={}", title(n)), &words(n, 60));
        learn_text(&mut predictor, &format!("/index.php?action=edit&title={}", title(n)), &form);
    }
    predictor
}

fn title(n: usize) -> String {
    format!("Perl{}_delta,_part_{n}", words(n, 1).trim())
}

#[test]
fn a_form_that_repeats_the_title_in_its_address_is_the_same_for_all_titles() {
    let mut predictor = forms_with_titles(80);
    assert!(is_skipped(&mut predictor, &format!("/index.php?action=edit&title={}", title(99))));
    assert!(!is_skipped(&mut predictor, &format!("/index.php?title={}", title(99))));
}

#[test]
fn a_page_on_which_the_title_is_more_than_a_tenth_is_another_one_for_each_title() {
    let mut predictor = forms_with_titles(40);
    assert!(!is_skipped(&mut predictor, &format!("/index.php?action=edit&title={}", title(99))));
}

#[test]
fn an_address_in_another_spelling_leads_to_the_same_page() {
    let mut predictor = predictor();
    let title =
        |n: usize, space: &str| format!("The{space}book{space}of{space}n{n},{space}part{space}{}", n % 9);
    for n in 0..60 {
        learn_text(&mut predictor, &format!("/wiki/{}", title(n, "_")), &words(n, 60));
        if n < 30 {
            learn_text(
                &mut predictor,
                &format!("/index.php?title={}", title(n, "+").to_uppercase()),
                &words(n, 60),
            );
        }
    }
    let Decision::Skip(reason) = decide(&mut predictor, &format!("/index.php?title={}", title(45, "+")))
    else {
        panic!("it is known")
    };
    assert_eq!(reason.kinship, Kinship::Moved);
    assert!(!is_skipped(&mut predictor, &format!("/index.php?title={}", title(70, "+"))));
}

#[test]
fn one_identity_has_more_than_eight_views() {
    let mut predictor = predictor();
    for n in 0..40 {
        for view in 0..20 {
            let text = if view < 19 { words(20 * n + view, 60) } else { words(20 * n + 15, 60) };
            learn_text(&mut predictor, &format!("/view{view}?id=item{n}"), &text);
        }
    }
    // The twentieth view shows what the sixteenth shows.
    for view in 0..19 {
        learn_text(&mut predictor, &format!("/view{view}?id=item99"), &words(5_000 + view, 60));
    }
    assert!(is_skipped(&mut predictor, "/view19?id=item99"));
}

#[test]
fn two_tests_of_a_rule_are_on_their_way_and_the_others_wait() {
    let mut predictor = predictor();
    for n in 0..60 {
        learn_text(&mut predictor, &format!("/a?id={n}"), &words(n, 60));
    }
    for n in 0..2 {
        learn_text(&mut predictor, &format!("/a?id={n}&edition=e{n}"), &words(n, 60));
    }
    let mut sent = Vec::new();
    for n in 2..20 {
        let path = format!("/a?id={n}&edition=e{n}");
        match decide(&mut predictor, &path) {
            Decision::Hold => {}
            Decision::Fetch => {
                predictor.request_started(SITE, &url(&path));
                sent.push(n);
            }
            other => panic!("{path}: {other:?}"),
        }
    }
    assert_eq!(sent, [2, 3]);
    predictor.request_finished(SITE, &url("/a?id=2&edition=e2"));
    assert_eq!(decide(&mut predictor, "/a?id=9&edition=e9"), Decision::Fetch);
}

#[test]
fn what_holds_for_long_pages_is_tested_anew_on_short_ones() {
    let mut predictor = predictor();
    // The print view has a line of ten words more: a twentieth of a long page, half of a short one.
    let page = |n: usize| words(n, if n < 80 { 200 } else { 20 });
    let print = |n: usize| format!("{}{}", page(n), words(9_000 + n, 10));
    for n in 0..30 {
        learn_text(&mut predictor, &format!("/show?id=item{n}"), &page(n));
        learn_text(&mut predictor, &format!("/print?id=item{n}"), &print(n));
    }
    for n in [70, 90] {
        learn_text(&mut predictor, &format!("/show?id=item{n}"), &page(n));
    }
    assert!(is_skipped(&mut predictor, "/print?id=item70"), "it is as long as those that were tested");
    assert!(!is_skipped(&mut predictor, "/print?id=item90"), "it is a tenth as long");
    // Short pages that are not the same say nothing about long ones.
    for n in 91..99 {
        learn_text(&mut predictor, &format!("/show?id=item{n}"), &page(n));
        learn_text(&mut predictor, &format!("/print?id=item{n}"), &print(n));
    }
    assert!(is_skipped(&mut predictor, "/print?id=item70"));
}

fn path_of(url: &Url) -> &str {
    &url[Position::BeforePath..]
}

/// The number of the item whose URL this is.
fn item(url: &Url) -> usize {
    let id = url.query_pairs().find_map(|(name, value)| (name == "id").then_some(value)).expect("an id");
    id.trim_start_matches("item").parse().expect("a number")
}

/// A page of which forty words depend on the number, and twelve on the visit.
fn visited(path: &str, n: usize, visit: usize) -> PageText {
    let (content, beside) = (words(n, 40), words(10_000 + visit, 12));
    PageText::of_page(&url(path), [(1, content.as_str()), (2, beside.as_str())])
}

#[test]
fn places_whose_text_changes_from_visit_to_visit_are_no_content_and_a_restart_knows_them() {
    let options = Options { warmup: 0, exploration: 0.0, ..Options::default() };
    let (mut predictor, mut visit, mut again) = (Predictor::new(options), 0, Vec::new());
    predictor.keep_journal();
    for n in 0..60 {
        for path in [format!("/item?id=item{n}"), format!("/item?id=item{n}&sid=s{n}")] {
            visit += 1;
            predictor.discover(SITE, &url(&path), None);
            predictor.learn(SITE, &url(&path), visited(&path, n, visit));
        }
        if let Some(page) = predictor.next_again(SITE) {
            visit += 1;
            predictor.fetched_again(SITE, &page, &visited(path_of(&page), item(&page), visit));
            again.push(page);
        }
    }
    assert_eq!(again.len(), 3, "{again:?}");
    assert!(is_skipped(&mut predictor, "/item?id=item40&sid=new"));
    let batch = predictor.take_journal().expect("there is one");
    let mut restored = Predictor::restored(options, [&batch[..]]).expect("it is read");
    assert!(is_skipped(&mut restored, "/item?id=item40&sid=new"));
    assert_eq!(restored.next_again(SITE), None);
}

#[test]
fn pages_that_differ_in_a_place_that_does_not_change_are_different() {
    let mut predictor = predictor();
    let of_path = |path: &str| path.bytes().fold(7, |sum, byte| (sum * 31 + usize::from(byte)) % 99_991);
    for n in 0..60 {
        for path in [format!("/item?id=item{n}"), format!("/item?id=item{n}&sid=s{n}")] {
            predictor.discover(SITE, &url(&path), None);
            predictor.learn(SITE, &url(&path), visited(&path, n, of_path(&path)));
        }
    }
    let page = predictor.next_again(SITE).expect("the pages are nearly equal");
    assert_eq!(predictor.next_again(SITE), None, "one after the other");
    let path = path_of(&page);
    predictor.fetched_again(SITE, &page, &visited(path, item(&page), of_path(path)));
    assert_eq!(predictor.next_again(SITE), None, "nothing changed");
    assert!(!is_skipped(&mut predictor, "/item?id=item40&sid=new"));
}

fn restored(journal: &[u8]) -> Predictor {
    let options = Options { warmup: 0, exploration: 0.0, ..Options::default() };
    Predictor::restored(options, [journal]).expect("it is read")
}

#[test]
fn a_journal_of_the_first_format_is_read() {
    // Written by the version before: 90 articles, each with a session id that does not matter, with redirects and claims.
    let mut predictor = restored(include_bytes!("../../data/avoid-journal-1.bin"));
    assert!(is_skipped(&mut predictor, "/article?id=7&sid=new"));
    assert!(!is_skipped(&mut predictor, "/article?id=999"));
    // It goes on with pages of today.
    predictor.keep_journal();
    learn_text(&mut predictor, "/article?id=500", &words(500, 40));
    let link = LinkContext { page: 1, position: 7 };
    predictor.discover(SITE, &url("/article?id=500&sid=x"), Some(link));
    assert!(predictor.take_journal().is_some_and(|batch| batch[0] == 7));
}

#[test]
fn a_journal_of_the_second_format_is_read() {
    // Written by the version before: 120 articles of 8 to 302 words, the first 60 also with a session id that does not matter, with
    // redirects and claims. The texts of the first pages are kept for relearning, and only sketches of the later ones.
    let journal = include_bytes!("../../data/avoid-journal-2.bin");
    let options = Options { warmup: 0, exploration: 0.0, learning_bytes: 60_000, ..Options::default() };
    let mut predictor = Predictor::restored(options, [&journal[..]]).expect("it is read");
    assert_eq!(predictor.relearning_bytes(), 0);
    let article = |n: usize| format!("article id{n} {}", words(n, [6, 60, 300][n % 3]));
    for n in [10, 11, 12, 110, 111, 112] {
        assert!(is_skipped(&mut predictor, &format!("/article?id=id{n}&sid=new")));
    }
    assert!(!is_skipped(&mut predictor, "/article?id=id999"));
    // Pages of today are compared with those of the journal, of each length, and so is what is learnt from them.
    for n in 60..100 {
        let path = format!("/print?id=id{n}");
        let blocks = [(1, "The site of articles"), (2, &article(n)[..]), (3, "made in 0.03 s of 2024")];
        predictor.discover(SITE, &url(&path), None);
        predictor.learn(SITE, &url(&path), PageText::of_page(&url(&path), blocks));
    }
    for n in 110..113 {
        let Decision::Skip(reason) = decide(&mut predictor, &format!("/print?id=id{n}")) else {
            panic!("{n}: it is known")
        };
        assert_eq!(reason.evidence.nodup, 0.0, "{reason}");
        assert!(reason.evidence.dup >= 30.0, "{reason}");
    }
}

#[test]
fn a_journal_of_the_third_format_is_read() {
    // Written by the version before: 60 articles, each under two sessions. The second copies of the first ten lead to notes, to which other
    // copies link later. A request for the seventh under a new session was skipped.
    let mut predictor = restored(include_bytes!("../../data/avoid-journal-3.bin"));
    assert!(is_skipped(&mut predictor, "/article?id=art7&sid=waits"));
    let decision = predictor.decide(SITE, &url("/article?id=art7&sid=waits"), Attempt::Last);
    assert!(matches!(decision, Decision::Drop(_)), "its notes are known: {decision:?}");
    assert!(is_skipped(&mut predictor, "/article?id=art40&sid=new"));
    let decision = predictor.decide(SITE, &url("/article?id=art40&sid=new"), Attempt::Last);
    assert!(matches!(decision, Decision::Explore(_)), "its notes were not found: {decision:?}");
}

#[test]
fn a_journal_of_the_fourth_format_is_read() {
    // Written by the version before: 60 articles, each under two sessions. The second copies of the first ten lead to notes, to which other
    // copies link later. Further copies of four articles were fetched for their notes; that of the last is on its way.
    let mut predictor = restored(include_bytes!("../../data/avoid-journal-4.bin"));
    let is_explored = [14, 15, 16].map(|n| {
        let path = format!("/article?id=art{n}&sid=new");
        assert!(is_skipped(&mut predictor, &path));
        matches!(predictor.decide(SITE, &url(&path), Attempt::Last), Decision::Explore(_))
    });
    assert_eq!(is_explored, [true, true, false], "six tests in vain end a form");
}

#[test]
fn a_journal_of_the_fifth_format_is_read() {
    // Written by the version before: 60 articles, each under two sessions. Copies link to notes, which were found for the first ten and are not
    // followed for the others, and to votes, which are never followed.
    let mut predictor = restored(include_bytes!("../../data/avoid-journal-5.bin"));
    for n in [7, 40] {
        let path = format!("/article?id=art{n}&sid=new");
        assert!(is_skipped(&mut predictor, &path), "{n}");
        let decision = predictor.decide(SITE, &url(&path), Attempt::Last);
        assert!(matches!(decision, Decision::Drop(_)), "its links are known, or not followed: {decision:?}");
    }
    assert_eq!(decide(&mut predictor, "/article?id=new&sid=new"), Decision::Fetch);
}

/// A page of which twelve words depend on the number, between a menu and a line with numbers that are different on each visit.
fn framed(path: &str, n: usize, visit: usize) -> PageText {
    let (content, made) = (words(n, 12), format!("made in 0.{visit} s at {visit}:10 for all readers"));
    let blocks = [(1, "The site of articles and of their authors"), (2, &content[..]), (3, &made[..])];
    PageText::of_page(&url(path), blocks)
}

#[test]
fn a_journal_of_the_sixth_format_is_read() {
    // Written by the version before: 60 articles, each with a session, too, and at an older address, and as many authors. All pages have a menu, and a line
    // with numbers that are different on each of them.
    let mut predictor = restored(include_bytes!("../../data/avoid-journal-6.bin"));
    assert!(is_skipped(&mut predictor, "/article?id=art7&sid=new"));
    // What surrounds the contents is the same on pages of today.
    for n in 0..40 {
        let path = format!("/print?id=art{n}");
        predictor.discover(SITE, &url(&path), None);
        predictor.learn(SITE, &url(&path), framed(&path, n, 500 + n));
    }
    let Decision::Skip(reason) = decide(&mut predictor, "/print?id=art50") else { panic!("it is known") };
    assert_eq!(reason.evidence.nodup, 0.0, "{reason}");
    assert!(reason.evidence.dup >= 30.0, "{reason}");
}

#[test]
fn a_restart_after_the_end_of_relearning_changes_no_answer() {
    let options = Options { warmup: 0, exploration: 0.0, learning_bytes: 60_000, ..Options::default() };
    let mut predictor = Predictor::new(options);
    predictor.keep_journal();
    let learn = |predictor: &mut Predictor, n: usize| {
        let text = |n: usize| format!("article id{n} {}", words(n, [6, 60, 300][n % 3]));
        // An old version differs in a word, or not at all.
        let paths =
            [format!("/article?id=id{n}"), format!("/article?id=id{n}&sid=s{n}"), format!("/old?id=id{n}")];
        let texts = [text(n), text(n), text(n) + if n.is_multiple_of(2) { "changed" } else { "" }];
        for (path, text) in paths.iter().zip(&texts) {
            learn_text(predictor, path, text);
        }
    };
    (0..80).for_each(|n| learn(&mut predictor, n));
    assert_eq!(predictor.relearning_bytes(), 0, "the log is closed by now");
    let batch = predictor.take_journal().expect("there is one");
    let mut restored = Predictor::restored(options, [&batch[..]]).expect("it is read");
    for n in 80..160 {
        for path in
            [format!("/article?id=id{n}&sid=x"), format!("/old?id=id{n}"), format!("/old?id=id{}", n - 70)]
        {
            let (one, other) = (decide(&mut predictor, &path), decide(&mut restored, &path));
            assert_eq!(one, other, "{path}");
        }
        learn(&mut predictor, n);
        learn(&mut restored, n);
    }
    assert!(is_skipped(&mut restored, "/article?id=id100&sid=new"));
}
