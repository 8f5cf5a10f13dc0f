//! Finds passages that two texts have in common, with gaps on both sides.
//!
//! Seeds are windows of three words that both texts have. Equal words around a seed make a block; blocks that follow each other closely and
//! in the same order in both texts make a run. So changing one word in five breaks no run, a moved sentence is a run of its own, and three
//! common words alone are no evidence.

use std::collections::VecDeque;

use super::document::{Document, Token};

/// Words per seed.
const SEED: usize = 3;
/// The most positions of a seed in the article that are examined; the first ones are. A seed that occurs everywhere is weak evidence.
const MAX_PLACES: usize = 24;
/// The most words that may be skipped between two blocks of a run, on either side.
const MAX_GAP: usize = 6;
/// The most runs that may be open at a time; the oldest is closed for a new one.
const MAX_OPEN: usize = 48;
/// The most comparisons that extend blocks, per word of both texts. Otherwise a word that is repeated a million times would be compared
/// with itself a million million times.
const MAX_COMPARED: usize = 64;

/// The most blocks that are kept, in addition to one for each word of both texts. If there are more, the shortest are dropped, because in
/// texts of a few repeated words only long blocks show what was copied.
const MAX_BLOCKS: usize = 1 << 16;

/// Equal words of both texts: indices into their lists of tokens.
#[derive(Clone, Copy, Debug)]
struct Block {
    // There may be one block for each word of both texts, of which there are far fewer than 2^32.
    article: u32,
    source: u32,
    len: u32,
}

impl Block {
    fn new(article: usize, source: usize, len: usize) -> Self {
        let small = |place| u32::try_from(place).expect("MAX_DOCUMENT is far below 2^32");
        Self { article: small(article), source: small(source), len: small(len) }
    }

    fn article(&self) -> usize {
        self.article as usize
    }

    fn source(&self) -> usize {
        self.source as usize
    }

    fn len(&self) -> usize {
        self.len as usize
    }
}

/// A run of blocks.
#[derive(Clone, Debug)]
pub(super) struct TokenRun {
    /// First and last (exclusive) token in the article and in the source.
    pub(super) article: (usize, usize),
    pub(super) source: (usize, usize),
    /// The number of equal words, in quarters.
    pub(super) matched: u32,
    /// The number of words of the longest block, in quarters.
    pub(super) longest: u32,
    blocks: Vec<Block>,
}

impl TokenRun {
    fn new(block: Block, article: &[Token]) -> Self {
        let (at, source) = ((block.article(), block.article()), (block.source(), block.source()));
        let mut run = Self { article: at, source, matched: 0, longest: 0, blocks: Vec::new() };
        run.push(block, article);
        run
    }

    fn push(&mut self, block: Block, article: &[Token]) {
        let quarters = quarters(article, (block.article(), block.article() + block.len()));
        self.article.1 = block.article() + block.len();
        self.source.1 = block.source() + block.len();
        self.matched += quarters;
        self.longest = self.longest.max(quarters);
        self.blocks.push(block);
    }

    /// Whether the run has enough equal words, and at least half of its words are equal.
    fn is_evidence(&self, article: &[Token], source: &[Token], min_matched: u32) -> bool {
        let span = || quarters(article, self.article).max(quarters(source, self.source));
        self.matched >= min_matched && self.matched * 2 >= span()
    }
}

fn quarters(tokens: &[Token], range: (usize, usize)) -> u32 {
    tokens[range.0..range.1].iter().map(|token| u32::from(token.weight)).sum()
}

/// The windows of three words of a text, sorted by hash and position.
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

/// The runs of an article and a source, in the order of the article and without overlap there. A run has at least `min_matched` equal words
/// (in quarters), and at least half of its words are equal.
pub(super) fn runs(
    article: &Document<'_>,
    seeds: &Seeds,
    source: &Document<'_>,
    min_matched: u32,
) -> Vec<TokenRun> {
    let blocks = blocks(&article.tokens, seeds, &source.tokens);
    let runs = join(&blocks, &article.tokens, &source.tokens, min_matched);
    drop(blocks);
    without_overlap(runs, &article.tokens, &source.tokens, min_matched)
}

fn blocks(article: &[Token], seeds: &Seeds, source: &[Token]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut budget = MAX_COMPARED * (article.len() + source.len());
    let most = article.len() + source.len() + MAX_BLOCKS;
    let mut shortest = SEED;
    for (at, window) in source.windows(SEED).enumerate() {
        for (_, place) in seeds.places(seed(window)) {
            let place = *place as usize;
            // This block was found at the previous word already.
            if at > 0 && place > 0 && article[place - 1].hash == source[at - 1].hash {
                continue;
            }
            let equal = article[place..].iter().zip(&source[at..]).take(budget);
            let len = equal.take_while(|(a, b)| a.hash == b.hash).count();
            budget = budget.saturating_sub(len);
            // The texts may differ here in spite of equal seed hashes, and the budget may be used up.
            if len >= shortest {
                blocks.push(Block::new(place, at, len));
            }
            if blocks.len() == most {
                let longest_first =
                    |block: &Block| (std::cmp::Reverse(block.len()), block.source(), block.article());
                let (_, last, _) = blocks.select_nth_unstable_by_key(most / 2, longest_first);
                shortest = last.len();
                blocks.truncate(most / 2);
            }
        }
    }
    blocks.sort_unstable_by_key(|block| (block.article(), block.source()));
    blocks
}

/// The runs that are evidence.
fn join(blocks: &[Block], article: &[Token], source: &[Token], min_matched: u32) -> Vec<TokenRun> {
    let mut open: VecDeque<TokenRun> = VecDeque::new();
    let mut ended = Vec::new();
    let mut end = |mut run: TokenRun| {
        if run.is_evidence(article, source, min_matched) {
            run.blocks.shrink_to_fit();
            ended.push(run);
        }
    };
    for block in blocks {
        while let Some(at) = open.iter().position(|run| run.article.1 + MAX_GAP < block.article()) {
            open.remove(at).into_iter().for_each(&mut end);
        }
        // The number of words of the block that a run contains already, and the gaps between them on both sides.
        let fit = |run: &TokenRun| {
            let overlap = run
                .article
                .1
                .saturating_sub(block.article())
                .max(run.source.1.saturating_sub(block.source()));
            let (article, source) = (block.article() + overlap, block.source() + overlap);
            let gaps = (article.checked_sub(run.article.1)?, source.checked_sub(run.source.1)?);
            let fits = overlap < block.len() && gaps.0 <= MAX_GAP && gaps.1 <= MAX_GAP;
            fits.then(|| (gaps.0.abs_diff(gaps.1) + gaps.0.max(gaps.1) + overlap, overlap))
        };
        let best = open.iter().enumerate().filter_map(|(at, run)| Some((fit(run)?, at))).min();
        match best {
            Some(((_, overlap), at)) => {
                let (place, source) = (block.article() + overlap, block.source() + overlap);
                open[at].push(Block::new(place, source, block.len() - overlap), article);
            }
            None => {
                if open.len() == MAX_OPEN {
                    open.pop_front().into_iter().for_each(&mut end);
                }
                open.push_back(TokenRun::new(*block, article));
            }
        }
    }
    open.into_iter().for_each(end);
    ended
}

/// Removes overlaps in the article. The run with more equal words is kept whole; the parts of other runs outside it are kept if they are
/// enough by themselves.
fn without_overlap(
    mut runs: Vec<TokenRun>,
    article: &[Token],
    source: &[Token],
    min_matched: u32,
) -> Vec<TokenRun> {
    runs.sort_by_key(|run| (std::cmp::Reverse(run.matched), run.article, run.source));
    let mut is_taken = vec![false; article.len()];
    let mut kept: Vec<TokenRun> = Vec::new();
    for run in runs {
        let mut pieces: Vec<TokenRun> = Vec::new();
        for block in &run.blocks {
            let mut at = 0;
            while at < block.len() {
                let taken = &is_taken[block.article() + at..block.article() + block.len()];
                let len = taken.iter().take_while(|taken| !**taken).count();
                if len == 0 {
                    at += 1;
                    continue;
                }
                let free = Block::new(block.article() + at, block.source() + at, len);
                at += len;
                match pieces.last_mut() {
                    Some(piece) if !is_taken[piece.article.1..free.article()].contains(&true) => {
                        piece.push(free, article);
                    }
                    _ => pieces.push(TokenRun::new(free, article)),
                }
            }
        }
        pieces.retain(|piece| piece.is_evidence(article, source, min_matched));
        pieces.iter().for_each(|piece| is_taken[piece.article.0..piece.article.1].fill(true));
        kept.extend(pieces);
    }
    kept.sort_by_key(|run| run.article);
    kept
}
