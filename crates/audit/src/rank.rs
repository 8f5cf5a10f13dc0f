//! PageRank of the pages of a site: how much of a reader's random walk over its links each page gets.
//!
//! Only links within the site are looked at. It does not know URLs: pages are numbers.

/// Share of the steps that follow a link, as in the original paper; the others begin anew at any page.
const DAMPING: f64 = 0.85;
/// The ranks are final when they change by less than this in a round, all together.
const ENOUGH: f64 = 1e-6;
/// Rounds at most: each divides what is left to change by at least 1 / `DAMPING`.
const MAX_ROUNDS: usize = 50;

/// The links of a site, in two arrays: four bytes a link and eight a page.
#[derive(Debug, Default)]
pub(crate) struct LinkGraph {
    /// Where the links of each page end.
    ends: Vec<u32>,
    /// Number of links of each page, with those that pass nothing on.
    degrees: Vec<u32>,
    targets: Vec<u32>,
}

impl LinkGraph {
    /// Adds the next page. `links` are the pages that it passes its rank to, each once; `lost` is the number of further links, with
    /// `rel=nofollow`, whose share is lost.
    pub(crate) fn add(&mut self, links: impl IntoIterator<Item = u32>, lost: u32) {
        let before = self.targets.len();
        self.targets.extend(links);
        self.ends.push(u32::try_from(self.targets.len()).unwrap_or(u32::MAX));
        self.degrees
            .push(u32::try_from(self.targets.len() - before).unwrap_or(u32::MAX).saturating_add(lost));
    }

    /// The rank of each page, from 0 to 100, which is that of the first. Pages without links pass their rank to all pages.
    pub(crate) fn ranks(&self) -> Vec<f32> {
        let pages = self.ends.len();
        if pages == 0 {
            return Vec::new();
        }
        let even = 1.0 / pages as f64;
        let mut ranks = vec![even; pages];
        let mut next = vec![0.0; pages];
        for _ in 0..MAX_ROUNDS {
            let without_links: f64 = ranks
                .iter()
                .zip(&self.degrees)
                .filter(|(_, degree)| **degree == 0)
                .map(|(rank, _)| rank)
                .sum();
            next.fill((1.0 - DAMPING + DAMPING * without_links) * even);
            let mut start = 0;
            for (page, end) in self.ends.iter().enumerate() {
                let end = *end as usize;
                let share = DAMPING * ranks[page] / f64::from(self.degrees[page].max(1));
                self.targets[start..end].iter().for_each(|target| next[*target as usize] += share);
                start = end;
            }
            let change: f64 = ranks.iter().zip(&next).map(|(old, new)| (old - new).abs()).sum();
            std::mem::swap(&mut ranks, &mut next);
            if change < ENOUGH {
                break;
            }
        }
        let most = ranks.iter().copied().fold(0.0, f64::max);
        // One decimal: of the error of the first round up to 0.85^50, which is 0.03 %, is left where links go back and forth.
        ranks.into_iter().map(|rank| ((rank / most * 1_000.0).round() / 10.0) as f32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(pages: &[(&[u32], u32)]) -> Vec<f32> {
        let mut graph = LinkGraph::default();
        pages.iter().for_each(|(links, lost)| graph.add(links.iter().copied(), *lost));
        graph.ranks()
    }

    #[test]
    fn ranks_are_those_of_the_equations() {
        // start = 0.05 + 0.85 (a + b), a = b = 0.05 + 0.425 start
        assert_eq!(ranks(&[(&[1, 2], 0), (&[0], 0), (&[0], 0)]), [100.0, 52.8, 52.8]);
        // The link to b is lost: start = 0.05 + 0.85 (a + b), a = 0.05 + 0.425 start, b = 0.05
        assert_eq!(ranks(&[(&[1], 1), (&[0], 0), (&[0], 0)]), [100.0, 66.2, 23.7]);
    }

    #[test]
    fn a_page_without_links_keeps_nothing_to_itself() {
        assert_eq!(ranks(&[(&[1], 0), (&[0], 0)]), [100.0, 100.0]);
        assert_eq!(ranks(&[(&[], 0), (&[], 0), (&[], 0)]), [100.0; 3]);
        assert!(ranks(&[]).is_empty());
    }
}
