//! Passages that two texts have in common, with gaps on both sides.
//!
//! Seeds are windows of three words that both texts have. Equal words around a seed make a block; blocks that follow each
//! other closely and in the same order in both texts make a run. So one word changed in five breaks nothing, a moved
//! sentence is a run of its own, and three common words alone are no evidence.

use std::collections::VecDeque;

use super::document::{Document, Token};

/// Words of a seed.
const SEED: usize = 3;
/// Places of a seed in the article that are looked at; of more the first are. A seed that stands everywhere says little.
const MAX_PLACES: usize = 24;
/// Words that may be skipped between two blocks of a run, on either side.
const MAX_GAP: usize = 6;
/// Runs that may go on at a time; the oldest is ended for a new one.
const MAX_OPEN: usize = 48;
/// Words that are compared to make blocks longer, per word of both texts: a word a million times over would be compared with
/// itself a million million times.
const MAX_COMPARED: usize = 64;

/// Equal words of both texts: places in their lists of tokens.
#[derive(Clone, Copy, Debug)]
struct Block {
    article: usize,
    source: usize,
    len: usize,
}

/// A run of blocks.
#[derive(Clone, Debug)]
pub(super) struct TokenRun {
    /// First and last place (exclusive) in the article and in the source.
    pub(super) article: (usize, usize),
    pub(super) source: (usize, usize),
    /// Words that are equal, in quarters.
    pub(super) matched: u32,
    /// Words of the longest block, in quarters.
    pub(super) longest: u32,
    /// Places in the article that are equal, as ranges.
    blocks: Vec<(usize, usize)>,
}

impl TokenRun {
    /// Words of the longer side, in quarters.
    fn span(&self, article: &[Token], source: &[Token]) -> u32 {
        let quarters = |tokens: &[Token], range: (usize, usize)| -> u32 {
            tokens[range.0..range.1].iter().map(|token| u32::from(token.weight)).sum()
        };
        quarters(article, self.article).max(quarters(source, self.source))
    }
}

/// The windows of three words of a text, sorted by hash and place.
#[derive(Debug)]
pub(super) struct Seeds(Vec<(u64, u32)>);

impl Seeds {
    pub(super) fn of(tokens: &[Token]) -> Self {
        let mut seeds: Vec<(u64, u32)> =
            tokens.windows(SEED).enumerate().map(|(at, window)| (seed(window), at as u32)).collect();
        seeds.sort_unstable();
        Self(seeds)
    }

    fn places(&self, hash: u64) -> &[(u64, u32)] {
        let start = self.0.partition_point(|(other, _)| *other < hash);
        let count = self.0[start..].iter().take(MAX_PLACES).take_while(|(other, _)| *other == hash).count();
        &self.0[start..start + count]
    }
}

fn seed(window: &[Token]) -> u64 {
    window
        .iter()
        .fold(0, |hash: u64, token| (hash ^ token.hash).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29))
}

/// The runs of an article and a source that have at least `min_matched` equal words (in quarters) and are equal in at least
/// half of their words, each word of the article in one run at most, in the order of the article.
pub(super) fn runs(
    article: &Document<'_>,
    seeds: &Seeds,
    source: &Document<'_>,
    min_matched: u32,
) -> Vec<TokenRun> {
    let blocks = blocks(&article.tokens, seeds, &source.tokens);
    let mut runs = join(&blocks, &article.tokens);
    let is_dense = |run: &TokenRun| run.matched * 2 >= run.span(&article.tokens, &source.tokens);
    runs.retain(|run| run.matched >= min_matched && is_dense(run));
    without_overlap(runs, &article.tokens, min_matched)
}

fn blocks(article: &[Token], seeds: &Seeds, source: &[Token]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut budget = MAX_COMPARED * (article.len() + source.len());
    for (at, window) in source.windows(SEED).enumerate() {
        for (_, place) in seeds.places(seed(window)) {
            let place = *place as usize;
            // It was found with the word before.
            if at > 0 && place > 0 && article[place - 1].hash == source[at - 1].hash {
                continue;
            }
            let equal = article[place..].iter().zip(&source[at..]).take(budget);
            let len = equal.take_while(|(a, b)| a.hash == b.hash).count();
            budget = budget.saturating_sub(len);
            // Two seeds may have one hash, and the budget may be used up.
            if len >= SEED {
                blocks.push(Block { article: place, source: at, len });
            }
        }
    }
    blocks.sort_unstable_by_key(|block| (block.article, block.source));
    blocks
}

fn join(blocks: &[Block], article: &[Token]) -> Vec<TokenRun> {
    let mut open: VecDeque<TokenRun> = VecDeque::new();
    let mut ended = Vec::new();
    for block in blocks {
        while let Some(at) = open.iter().position(|run| run.article.1 + MAX_GAP < block.article) {
            ended.extend(open.remove(at));
        }
        // How many words of the block a run has already, and how far apart they are on both sides.
        let fit = |run: &TokenRun| {
            let overlap =
                run.article.1.saturating_sub(block.article).max(run.source.1.saturating_sub(block.source));
            let (article, source) = (block.article + overlap, block.source + overlap);
            let gaps = (article.checked_sub(run.article.1)?, source.checked_sub(run.source.1)?);
            let fits = overlap < block.len && gaps.0 <= MAX_GAP && gaps.1 <= MAX_GAP;
            fits.then(|| (gaps.0.abs_diff(gaps.1) + gaps.0.max(gaps.1) + overlap, overlap))
        };
        let best = open.iter().enumerate().filter_map(|(at, run)| Some((fit(run)?, at))).min();
        let (run, overlap) = match best {
            Some(((_, overlap), at)) => (&mut open[at], overlap),
            None => {
                if open.len() == MAX_OPEN {
                    ended.extend(open.pop_front());
                }
                open.push_back(TokenRun {
                    article: (block.article, block.article),
                    source: (block.source, block.source),
                    matched: 0,
                    longest: 0,
                    blocks: Vec::new(),
                });
                (open.back_mut().expect("it was pushed"), 0)
            }
        };
        let range = (block.article + overlap, block.article + block.len);
        let quarters = article[range.0..range.1].iter().map(|token| u32::from(token.weight)).sum();
        run.article.1 = range.1;
        run.source.1 = block.source + block.len;
        run.matched += quarters;
        run.longest = run.longest.max(quarters);
        run.blocks.push(range);
    }
    ended.extend(open);
    ended
}

/// Of runs that overlap in the article the one with more equal words goes first; what is left of the others stays if it is
/// enough.
fn without_overlap(mut runs: Vec<TokenRun>, article: &[Token], min_matched: u32) -> Vec<TokenRun> {
    runs.sort_by_key(|run| (std::cmp::Reverse(run.matched), run.article, run.source));
    let mut is_taken = vec![false; article.len()];
    runs.retain_mut(|run| {
        let free = run.blocks.iter().flat_map(|(start, end)| *start..*end).filter(|at| !is_taken[*at]);
        let matched = free.clone().map(|at| u32::from(article[at].weight)).sum();
        if matched < min_matched {
            return false;
        }
        let (first, last) = (free.clone().next(), free.clone().next_back());
        free.collect::<Vec<_>>().into_iter().for_each(|at| is_taken[at] = true);
        if let (Some(first), Some(last)) = (first, last) {
            run.article = (first, last + 1);
        }
        run.matched = matched;
        run.longest = run.longest.min(matched);
        true
    });
    runs.sort_by_key(|run| run.article);
    runs
}
