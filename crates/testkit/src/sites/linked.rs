//! A connected graph of pages, for counting, throughput and stop-and-resume.

use super::random::Random;
use super::words::{prose, word};
use crate::answer::Answer;
use crate::site::{Site, SiteBuilder};

/// `pages` pages with about `links` links each.
///
/// Page 0 is `/`, page `i` is [`linked_path`]`(i)`. Every page links to `i + 1`, `2i` and `2i + 1` (modulo `pages`), so
/// breadth-first depth is about log2 of `pages`, and to others by a generator seeded with `i`. All texts differ; a
/// page has about 120 words. There is no robots.txt.
pub fn linked(pages: usize, links: usize) -> SiteBuilder {
    let page = move |index: usize| {
        if index >= pages { Answer::status(404) } else { Answer::html(html(index, pages, links)) }
    };
    Site::builder().route("/", move |_| page(0)).route("/p/*", move |request| {
        let name = request.path().rsplit('/').next().unwrap_or_default();
        let index = name.strip_suffix(".html").and_then(|number| number.parse().ok());
        match index.filter(|&index| linked_path(index) == request.path()) {
            Some(index) => page(index),
            None => Answer::status(404),
        }
    })
}

/// The path of a page of [`linked`].
pub fn linked_path(index: usize) -> String {
    if index == 0 { "/".to_owned() } else { format!("/p/{}/{index}.html", index % 100) }
}

/// The pages that a page of [`linked`] links to, in ascending order.
pub fn linked_targets(index: usize, pages: usize, links: usize) -> Vec<usize> {
    let mut random = Random::new(index as u64 * 7_919 + 1);
    let mut targets = vec![(index + 1) % pages, (2 * index) % pages, (2 * index + 1) % pages];
    targets.sort_unstable();
    targets.dedup();
    let wanted = links.min(pages);
    while targets.len() < wanted {
        let target = random.below(pages);
        if let Err(at) = targets.binary_search(&target) {
            targets.insert(at, target);
        }
    }
    targets
}

fn html(index: usize, pages: usize, links: usize) -> String {
    let mut random = Random::new(index as u64 + 0x5eed);
    let title = word(&mut random);
    let mut out = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Page {index}: {title}</title></head>\
         <body><h1>Page {index}</h1>\n"
    );
    let targets = linked_targets(index, pages, links);
    let words = (120 / (targets.len() + 1)).max(6);
    for target in targets {
        let (text, path, name) = (prose(&mut random, words), linked_path(target), word(&mut random));
        out.push_str(&format!("<p>{text} <a href=\"{path}\">{name}</a></p>\n"));
    }
    out.push_str(&format!("<p>{}</p></body></html>\n", prose(&mut random, words)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_reachable_within_few_steps() {
        let (pages, links) = (1_000, 5);
        let mut depth = vec![usize::MAX; pages];
        depth[0] = 0;
        let mut queue = std::collections::VecDeque::from([0]);
        while let Some(index) = queue.pop_front() {
            for target in linked_targets(index, pages, links) {
                if depth[target] == usize::MAX {
                    depth[target] = depth[index] + 1;
                    queue.push_back(target);
                }
            }
        }
        assert!(depth.iter().all(|&depth| depth <= 12), "deepest: {:?}", depth.iter().max());
    }

    #[test]
    fn pages_are_the_same_on_every_run_and_differ_from_each_other() {
        assert_eq!(html(7, 50, 8), html(7, 50, 8));
        assert_ne!(html(7, 50, 8), html(8, 50, 8));
        assert_eq!(html(7, 50, 8).matches("<a href=").count(), 8);
    }

    #[test]
    fn tiny_sites_have_no_more_links_than_pages() {
        assert_eq!(linked_targets(0, 1, 40), [0]);
        assert_eq!(linked_targets(1, 2, 40), [0, 1]);
    }
}
