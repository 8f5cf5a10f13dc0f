//! Walks over the links of a site: how many of them lead from the start to each page, and how much of a reader's random walk each page gets.
//!
//! The links are on disk, twice: by their pages for the first walk, by their targets for the second. Memory holds some numbers for each URL.

use std::collections::VecDeque;

use huntsman_crawler::{Error, Result};

use super::Addresses;
use super::columns::{Columns, Flag};
use super::references::Pointer;
use crate::record::{EdgeKind, Kind};
use huntsman_disk::{FRAME, Fields, Framed, Frames, List, ListWriter, Scratch, Spool, put_number};

/// Bytes of the links of a page that are read at first.
const READ_AT_ONCE: usize = 512;

/// Writes the links of pages, one page after the other.
#[derive(Debug)]
pub(super) struct LinksWriter {
    spool: Spool,
    /// Where the links of each page begin; `u64::MAX` if it has none.
    starts: Vec<u64>,
    out: Vec<u8>,
}

impl LinksWriter {
    pub(super) fn new(scratch: &Scratch, number: u32) -> Self {
        Self { spool: Spool::new(scratch), starts: vec![u64::MAX; number as usize], out: Vec::new() }
    }

    /// Adds a page with the targets of its links, in any order.
    pub(super) fn add(&mut self, page: u32, targets: &mut Vec<u32>) -> Result<()> {
        if targets.is_empty() {
            return Ok(());
        }
        targets.sort_unstable();
        targets.dedup();
        self.out.clear();
        let mut before = 0;
        for target in targets.iter() {
            put_number(u64::from(target - before), &mut self.out);
            before = *target;
        }
        self.starts[page as usize] = self.spool.len();
        let mut length = Vec::new();
        put_number(self.out.len() as u64, &mut length);
        self.spool.write(&length)?;
        Ok(self.spool.write(&self.out)?)
    }

    pub(super) fn finish(self) -> Links {
        Links { spool: self.spool, starts: self.starts }
    }
}

/// The links of pages, each target once.
#[derive(Debug)]
pub(super) struct Links {
    spool: Spool,
    starts: Vec<u64>,
}

impl Links {
    /// Reads the targets of a page.
    pub(super) fn of(&self, page: u32, bytes: &mut Vec<u8>, targets: &mut Vec<u32>) -> Result<()> {
        targets.clear();
        let start = self.starts[page as usize];
        if start == u64::MAX {
            return Ok(());
        }
        self.spool.read(start, READ_AT_ONCE, bytes)?;
        let damaged = || Error::msg(format!("{} has links that were not written there", self.spool.name()));
        let mut fields = Fields::new(bytes);
        let length = usize::try_from(fields.number().ok_or_else(damaged)?).map_err(|_| damaged())?;
        let head = bytes.len() - fields.len();
        if fields.len() < length {
            self.spool.read(start, head + length, bytes)?;
        }
        let mut fields = Fields::new(bytes.get(head..head + length).ok_or_else(damaged)?);
        let mut target = 0_u32;
        while !fields.is_empty() {
            target = target.checked_add(fields.number_u32().ok_or_else(damaged)?).ok_or_else(damaged)?;
            targets.push(target);
        }
        Ok(())
    }

    /// The fewest links from a start URL to each answer; redirects do not count.
    pub(super) fn depths(&self, columns: &Columns) -> Result<Vec<u16>> {
        let mut depths = vec![u16::MAX; self.starts.len()];
        let mut queue: VecDeque<u32> =
            (0..columns.len()).filter(|at| columns.has(*at, Flag::START)).collect();
        queue.iter().for_each(|at| depths[*at as usize] = 0);
        let (mut bytes, mut targets) = (Vec::new(), Vec::new());
        while let Some(at) = queue.pop_front() {
            let depth = depths[at as usize];
            let next = columns.redirect(at).and_then(|to| columns.requested(to));
            if let Some(next) = next.filter(|next| depths[*next as usize] == u16::MAX) {
                depths[next as usize] = depth;
                queue.push_front(next);
            }
            self.of(at, &mut bytes, &mut targets)?;
            for next in &targets {
                if columns.has(*next, Flag::ANSWERED) && depths[*next as usize] == u16::MAX {
                    // One less than the number that means none.
                    depths[*next as usize] = (depth + 1).min(u16::MAX - 1);
                    queue.push_back(*next);
                }
            }
        }
        Ok(depths)
    }
}

/// Share of the steps that follow a link, as in the original paper of PageRank; the others begin anew at any page.
const DAMPING: f64 = 0.85;
/// The ranks are final when they change by less than this in a round, all together.
const ENOUGH: f64 = 1e-6;
/// Rounds at most: each divides what is left to change by at least 1 / `DAMPING`.
const MAX_ROUNDS: usize = 50;

/// The links between pages of a site that answered, by their targets.
#[derive(Debug)]
pub(super) struct Graph {
    spool: Spool,
    /// Number of links of each page, with those that pass nothing on; `u32::MAX` for what is no page that answered.
    degrees: Vec<u32>,
}

/// Writes a graph.
#[derive(Debug)]
struct GraphWriter {
    graph: Graph,
    framed: Framed,
    frame: Vec<u8>,
    out: Vec<u8>,
    /// Sources of links to one target, each doubled, and one more if the link passes nothing on.
    sources: Vec<u64>,
}

impl Graph {
    /// The graph of these references, which are sorted. They come back as a list.
    pub(super) fn of(
        references: impl Iterator<Item = huntsman_disk::Result<Pointer>>,
        columns: &Columns,
        scratch: &Scratch,
    ) -> Result<(Self, List<Pointer>)> {
        // URLs of the site that answered: to a dead link nothing is passed on.
        let is_node = |number: u32| {
            columns.has(number, Flag::ANSWERED)
                && columns.kind(number) == Kind::Page
                && columns.statuses[number as usize] != 0
        };
        let degrees = (0..columns.len()).map(|at| if is_node(at) { 0 } else { u32::MAX }).collect();
        let mut writer = GraphWriter::new(degrees, scratch)?;
        let mut list = ListWriter::new(scratch)?;
        let mut target = Addresses::NONE;
        for pointer in references {
            let pointer = pointer?;
            list.add(pointer)?;
            if pointer.to != target {
                writer.end_target(target)?;
                target = pointer.to;
            }
            let counts = pointer.is_redirect() || pointer.kind() == Some(EdgeKind::Link);
            if counts && pointer.source != target && is_node(target) && is_node(pointer.source) {
                let is_lost = pointer.nofollow() || columns.has(pointer.source, Flag::NOFOLLOW);
                writer.add(pointer.source, is_lost);
            }
        }
        writer.end_target(target)?;
        Ok((writer.finish()?, list.finish()?))
    }

    /// The rank of each page, from 0 to 100, which is that of the first; NaN for what is none. Pages without links pass their rank to all pages.
    pub(super) fn ranks(&self) -> Result<Vec<f32>> {
        let number = self.degrees.iter().filter(|degree| **degree != u32::MAX).count();
        let even = 1.0 / number.max(1) as f64;
        // Sums are made in 64 bits and kept in 32, whose error is far below what is shown.
        let mut ranks: Vec<f32> = self
            .degrees
            .iter()
            .map(|degree| if *degree == u32::MAX { f32::NAN } else { even as f32 })
            .collect();
        let mut shares = vec![0.0_f32; ranks.len()];
        for _ in 0..MAX_ROUNDS {
            let mut without_links = 0.0;
            for ((rank, degree), share) in ranks.iter().zip(&self.degrees).zip(&mut shares) {
                match degree {
                    0 => without_links += f64::from(*rank),
                    &u32::MAX => {}
                    degree => *share = (DAMPING * f64::from(*rank) / f64::from(*degree)) as f32,
                }
            }
            let base = (1.0 - DAMPING + DAMPING * without_links) * even;
            let (mut change, mut next) = (0.0, 0_usize);
            let mut settle = |ranks: &mut [f32], upto: usize, sum: Option<f64>| {
                for (at, rank) in ranks.iter_mut().enumerate().take(upto).skip(next) {
                    if self.degrees[at] != u32::MAX {
                        let new = base + sum.filter(|_| at + 1 == upto).unwrap_or(0.0);
                        change += (f64::from(*rank) - new).abs();
                        *rank = new as f32;
                    }
                }
                next = upto;
            };
            self.each_target(&shares, &mut |target, sum| settle(&mut ranks, target as usize + 1, Some(sum)))?;
            let all = ranks.len();
            settle(&mut ranks, all, None);
            if change < ENOUGH {
                break;
            }
        }
        let most = ranks.iter().copied().fold(0.0, f32::max);
        // One decimal: of the error of the first round up to 0.85^50, which is 0.03 %, is left where links go back and forth.
        ranks.iter_mut().for_each(|rank| *rank = (*rank / most * 1_000.0).round() / 10.0);
        Ok(ranks)
    }

    /// Calls `each` with the targets of links in order, and the sum of what their sources pass on.
    fn each_target(&self, shares: &[f32], each: &mut dyn FnMut(u32, f64)) -> Result<()> {
        let damaged = || Error::msg(format!("{} has links that were not written there", self.spool.name()));
        let (mut frames, mut offset, mut frame) = (Frames::new()?, 0, Vec::new());
        while let Some(next) = frames.read(&self.spool, offset, &mut frame)? {
            let mut fields = Fields::new(&frame);
            while !fields.is_empty() {
                let target = fields.number_u32().ok_or_else(damaged)?;
                let (mut source, mut sum) = (0_u32, 0.0);
                for _ in 0..fields.number().ok_or_else(damaged)? {
                    source = source.wrapping_add(fields.number_u32().ok_or_else(damaged)?);
                    sum += f64::from(*shares.get(source as usize).ok_or_else(damaged)?);
                }
                each(target, sum);
            }
            offset = next;
        }
        Ok(())
    }
}

impl GraphWriter {
    fn new(degrees: Vec<u32>, scratch: &Scratch) -> Result<Self> {
        Ok(Self {
            graph: Graph { spool: Spool::new(scratch), degrees },
            framed: Framed::new()?,
            frame: Vec::new(),
            out: Vec::new(),
            sources: Vec::new(),
        })
    }

    /// Adds a link to the target that is under way.
    fn add(&mut self, source: u32, is_lost: bool) {
        let entry = u64::from(source) << 1 | u64::from(is_lost);
        // Several links of a page stand together, and any that counts is enough.
        match self.sources.last_mut() {
            Some(last) if *last >> 1 == entry >> 1 => *last = (*last).min(entry),
            _ => self.sources.push(entry),
        }
    }

    fn end_target(&mut self, target: u32) -> Result<()> {
        if self.sources.is_empty() {
            return Ok(());
        }
        // Links in another spelling stand apart.
        self.sources.sort_unstable();
        self.sources.dedup_by_key(|entry| *entry >> 1);
        self.sources.iter().for_each(|entry| self.graph.degrees[(entry >> 1) as usize] += 1);
        self.sources.retain(|entry| entry & 1 == 0);
        put_number(target.into(), &mut self.frame);
        put_number(self.sources.len() as u64, &mut self.frame);
        let mut before = 0;
        for source in self.sources.drain(..).map(|entry| entry >> 1) {
            put_number(source - before, &mut self.frame);
            before = source;
        }
        if self.frame.len() < FRAME { Ok(()) } else { self.end_frame() }
    }

    fn end_frame(&mut self) -> Result<()> {
        self.out.clear();
        self.framed.put(&self.frame, &mut self.out)?;
        self.frame.clear();
        Ok(self.graph.spool.write(&self.out)?)
    }

    fn finish(mut self) -> Result<Graph> {
        if !self.frame.is_empty() {
            self.end_frame()?;
        }
        Ok(self.graph)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(pages: &[(&[u32], &[u32])]) -> Vec<f32> {
        let scratch = Scratch::temporary();
        let mut links: Vec<(u32, u64)> = Vec::new();
        for (page, (counting, lost)) in pages.iter().enumerate() {
            links.extend(counting.iter().map(|to| (*to, (page as u64) << 1)));
            links.extend(lost.iter().map(|to| (*to, (page as u64) << 1 | 1)));
        }
        links.sort();
        let mut writer = GraphWriter::new(vec![0; pages.len()], &scratch).unwrap();
        for of_target in links.chunk_by(|a, b| a.0 == b.0) {
            of_target.iter().for_each(|(_, source)| writer.add((source >> 1) as u32, source & 1 == 1));
            writer.end_target(of_target[0].0).unwrap();
        }
        writer.finish().unwrap().ranks().unwrap()
    }

    #[test]
    fn ranks_are_those_of_the_equations() {
        // start = 0.05 + 0.85 (a + b), a = b = 0.05 + 0.425 start
        assert_eq!(ranks(&[(&[1, 2], &[]), (&[0], &[]), (&[0], &[])]), [100.0, 52.8, 52.8]);
        // The link to b is lost: start = 0.05 + 0.85 (a + b), a = 0.05 + 0.425 start, b = 0.05
        assert_eq!(ranks(&[(&[1], &[2]), (&[0], &[]), (&[0], &[])]), [100.0, 66.2, 23.7]);
    }

    #[test]
    fn a_page_without_links_keeps_nothing_to_itself() {
        assert_eq!(ranks(&[(&[1], &[]), (&[0], &[])]), [100.0, 100.0]);
        assert_eq!(ranks(&[(&[], &[]), (&[], &[]), (&[], &[])]), [100.0; 3]);
        assert!(ranks(&[]).is_empty());
    }

    #[test]
    fn links_of_a_page_come_back_each_once() {
        let mut writer = LinksWriter::new(&Scratch::temporary(), 4);
        let many: Vec<u32> = (0..5_000).map(|at| at * 1_000).collect();
        writer.add(2, &mut vec![7, 3, 7]).unwrap();
        writer.add(0, &mut many.iter().rev().copied().collect()).unwrap();
        writer.add(1, &mut Vec::new()).unwrap();
        let links = writer.finish();
        let (mut bytes, mut targets) = (Vec::new(), Vec::new());
        for (page, expected) in [(0, many.as_slice()), (1, &[]), (2, &[3, 7]), (3, &[])] {
            links.of(page, &mut bytes, &mut targets).unwrap();
            assert_eq!(targets, expected);
        }
    }
}
