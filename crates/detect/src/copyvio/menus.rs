//! Recognises menus that are not marked by an element: rows of short links.

use std::ops::Range;

use huntsman_html::{Region, Scan};

/// The least number of links in a menu.
const MIN_LINKS: usize = 5;
/// The greatest average number of characters of their labels; headlines are longer.
const MAX_LABEL: usize = 40;

/// Byte ranges of the scan's text that contain practically only links. A range is a row of consecutive blocks in which at least four fifths
/// of the letters are in links, with at least five links whose labels have at most 40 characters on average. (This is link density, as in
/// Kohlschütter, Fankhauser, Nejdl, WSDM 2010, whose limit is a third; here the limit is higher, because a mistake would excuse a copy.)
/// Text in `main` is never a menu.
///
/// `scan` must have been made with links and blocks. Linear in its text.
pub(super) fn menus(scan: &Scan, html: &str) -> Vec<Range<usize>> {
    let start = scan.text().as_ptr() as usize;
    let range = |piece: &str| {
        let from = piece.as_ptr() as usize - start;
        from..from + piece.len()
    };
    let mut links: Vec<Range<usize>> =
        scan.links(html).filter(|link| !link.text.trim().is_empty()).map(|link| range(link.text)).collect();
    links.sort_by_key(|link| (link.start, link.end));
    let main = scan.regions().filter(|(_, region)| *region == Region::Main);
    let main: Vec<Range<usize>> = main.map(|(piece, _)| range(piece)).collect();
    let (mut links, mut main) = (links.into_iter().peekable(), main.into_iter().peekable());
    let mut menus: Vec<Range<usize>> = Vec::new();
    let mut row = Row::default();
    for block in scan.blocks().map(|block| range(block.text)) {
        let (mut count, mut linked) = (0, 0);
        // Links before the block are in no block.
        while links.next_if(|link| link.end <= block.start).is_some() {}
        while let Some(link) = links.next_if(|link| link.start < block.end) {
            count += 1;
            // A link that continues into the next block counts for this one only.
            linked += letters(&scan.text()[link.start.max(block.start)..link.end.min(block.end)]);
        }
        while main.next_if(|piece| piece.end <= block.start).is_some() {}
        let is_own = main.peek().is_some_and(|piece| piece.start < block.end);
        if count == 0 || is_own || linked * 5 < letters(&scan.text()[block.clone()]) * 4 {
            menus.extend(std::mem::take(&mut row).menu());
            continue;
        }
        let chars = scan.text()[block.clone()].chars().count();
        row = Row {
            start: if row.links == 0 { block.start } else { row.start },
            end: block.end,
            links: row.links + count,
            chars: row.chars + chars,
        };
    }
    menus.extend(row.menu());
    menus
}

fn letters(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphanumeric()).count()
}

/// A row of consecutive blocks of links.
#[derive(Default)]
struct Row {
    start: usize,
    end: usize,
    links: usize,
    chars: usize,
}

impl Row {
    fn menu(self) -> Option<Range<usize>> {
        let is_menu = self.links >= MIN_LINKS && self.chars <= self.links * MAX_LABEL;
        is_menu.then_some(self.start..self.end)
    }
}

#[cfg(test)]
mod tests {
    use huntsman_html::ScanOptions;

    use super::*;

    fn found(html: &str) -> Vec<String> {
        let scan = Scan::of(html, &ScanOptions { blocks: true, ..ScanOptions::default() });
        menus(&scan, html).into_iter().map(|range| scan.text()[range].replace('\n', "|")).collect()
    }

    #[test]
    fn rows_of_short_links_are_menus_whatever_elements_they_stand_in() {
        let list: String = (0..6).map(|n| format!("<li><a href=/{n}>Über {n}</a>")).collect();
        let line: String = (0..6).map(|n| format!("<a href=/{n}>Part {n}</a> / ")).collect();
        let html = format!("<p>Text <a href=/>with</a> a link.<ul>{list}</ul><p>More.<div>{line}</div>");
        assert_eq!(
            found(&html),
            [
                "Über 0|Über 1|Über 2|Über 3|Über 4|Über 5",
                "Part 0 / Part 1 / Part 2 / Part 3 / Part 4 / Part 5 /"
            ]
        );
    }

    #[test]
    fn few_links_headlines_prose_and_what_stands_in_main_are_no_menus() {
        let four: String = (0..4).map(|n| format!("<li><a href=/{n}>Part {n}</a>")).collect();
        let headlines: String = (0..8)
            .map(|n| {
                format!(
                    "<h3><a href=/{n}>The council of town {n} has agreed to mend the bridge at last</a></h3>"
                )
            })
            .collect();
        let prose: String =
            (0..8).map(|n| format!("<p>A word <a href=/{n}>of {n}</a> and others.")).collect();
        let list: String = (0..8).map(|n| format!("<li><a href=/{n}>Part {n}</a>")).collect();
        for html in [four, headlines, prose, format!("<main>{list}</main>"), String::new()] {
            assert_eq!(found(&html), Vec::<String>::new(), "{html}");
        }
    }
}
