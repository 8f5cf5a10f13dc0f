//! Hostile documents: the scan does not crash, its work stays proportional, and it finds everything before the damage.

use huntsman_html::{
    Attributes, MetaRefresh, Name, Scan, ScanOptions, Sink, Span, State, TextKind, content_charset,
    decode_body, sniff, tokenize,
};

/// Counts the calls and bytes that a sink receives. Further work would have to be inside the tokenizer, which only
/// moves forward.
#[derive(Default)]
struct Work(usize);

impl Sink for Work {
    fn text(&mut self, raw: Span, _kind: TextKind) {
        self.0 += 1 + raw.len();
    }

    fn open(&mut self, name: Name) -> Attributes {
        self.0 += 1 + name.span().len();
        Attributes::Wanted
    }

    fn attr(&mut self, name: Name, value: Span) {
        self.0 += 1 + name.span().len() + value.len();
    }

    fn opened(&mut self, _name: Name, _self_closing: bool) -> State {
        self.0 += 1;
        State::Data
    }

    fn close(&mut self, name: Name) {
        self.0 += 1 + name.span().len();
    }

    fn comment(&mut self, content: Span, _start: u32) {
        self.0 += 1 + content.len();
    }
}

#[test]
fn every_byte_reaches_the_sink_at_most_once() {
    for (name, make) in crate::hostile::inputs() {
        for size in [1 << 12, 1 << 18] {
            let page = make(size);
            let mut work = Work::default();
            tokenize(&page, &mut work);
            assert!(work.0 <= 2 * page.len() + 8, "{name}: {} for {} bytes", work.0, page.len());
        }
    }
}

#[test]
fn hostile_documents_end_within_their_limits() {
    let inputs = crate::hostile::inputs();
    assert!(inputs.len() >= 60);
    let options = ScanOptions::everything();
    // The full size is used only in optimised builds, where it takes a second; otherwise it would take a minute.
    let size = if cfg!(debug_assertions) { 1 << 19 } else { 8 << 20 };
    let mut scan = Scan::new();
    for (name, make) in inputs {
        let page = format!("<title>T</title><a href=/before>b</a>{}", make(size));
        scan.run(&page, &options);
        assert_eq!(scan.links(&page).next().map(|link| link.href), Some("/before"), "{name}");
        assert_eq!(scan.title(&page), Some("T"), "{name}");
        assert!(scan.links(&page).len() <= options.max_links, "{name}");
        assert!(scan.resources(&page).len() <= options.max_links, "{name}");
        assert!(scan.text().len() <= 2 * page.len(), "{name}");
        // Lists with a limit of their own may be larger than a small document.
        assert!(scan.heap_bytes() <= 6 * page.len() + (4 << 20), "{name}: {} bytes", scan.heap_bytes());
    }
}

#[test]
fn two_hundred_thousand_nested_elements_are_read_to_the_end() {
    for element in
        ["div", "b", "a href=/in", "p", "svg", "table", "ul", "nav", "font size=1", "math", "svg><desc"]
    {
        let page = format!("{}word<a href=/last>x</a>", format!("<{element}>").repeat(200_000));
        let scan = Scan::of(&page, &ScanOptions { max_links: 300_000, ..ScanOptions::everything() });
        assert_eq!(
            scan.links(&page).last().map(|link| (link.href, link.text)).map(|found| found.0),
            Some("/last")
        );
        let muted = element == "svg><desc";
        assert_eq!(scan.text().contains("word"), !muted, "{element}");
    }
}

#[test]
fn damage_at_every_byte_does_not_panic() {
    let page = include_str!("../data/news.html");
    let options = ScanOptions::everything();
    let mut scan = Scan::new();
    for end in (0..page.len()).filter(|&end| page.is_char_boundary(end)).step_by(7) {
        scan.run(&page[..end], &options);
        scan.run(&page[end..], &options);
    }
}

#[test]
fn random_bytes_do_not_panic() {
    const BYTES: &[u8] =
        b"<<<<>>>//!!--\"'==&&##;;  \n\r\t\0aAbBpPsSvVgGxX119[]CDATA\xE2\x82\xAC\xFF\xFE\xEF\xBB\xBF\x1B$";
    const LABELS: [Option<&str>; 8] = [
        None,
        Some("utf-8"),
        Some("utf-16"),
        Some("latin1"),
        Some("shift_jis"),
        Some("gb18030"),
        Some("\"x"),
        Some(""),
    ];
    let mut state = 7_u64;
    let mut random = move |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    let mut scan = Scan::new();
    for _ in 0..5000 {
        let body: Vec<u8> = (0..random(200)).map(|_| BYTES[random(BYTES.len())]).collect();
        let text = String::from_utf8_lossy(&body);
        let _ = sniff(Some(&text), Some(&text), &text, &body);
        let _ = (content_charset(&text), MetaRefresh::parse(&text));
        let page = decode_body(&body, LABELS[random(8)], None).text;
        scan.run(&page, &ScanOptions::everything());
        let links = scan.links(&page).map(|link| link.href.len() + link.text.len()).sum::<usize>();
        let rest =
            scan.resources(&page).count() + scan.metas(&page).count() + scan.link_elements(&page).count();
        let blocks: usize = scan.blocks().map(|block| block.text.len() + 1).sum();
        assert!(links + rest < 4000, "{page:?}");
        assert!(blocks <= scan.text().len() + 1, "{page:?}");
        assert!(!scan.text().contains("  ") && scan.text().trim_ascii() == scan.text(), "{page:?}");
    }
}
