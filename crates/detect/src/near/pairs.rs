//! All pairs of near-duplicates at once.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::document::DocId;
use super::engine::Engine;
use super::frozen::Frozen;
use super::language::Language;
use super::partition::Snapshot;
use super::rows::Rows;
use super::work::Work;

/// Two documents of a language within k bits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    /// Their language.
    pub language: Language,
    /// Their ids, the lower one first.
    pub ids: [DocId; 2],
    /// The number of bits in which their fingerprints differ: 0 to k.
    pub distance: u32,
}

pub(super) fn all(engine: &Engine, each: &mut dyn FnMut(&Pair) -> ControlFlow<()>) {
    let k = engine.identity().k();
    for (language, snapshot) in engine.snapshots() {
        let parts = frozen(snapshot, k);
        if of_parts(&parts, language, k, each).is_break() {
            return;
        }
    }
}

/// The parts of a language, the largest first; its new documents become a part of their own.
fn frozen(snapshot: Snapshot, k: u32) -> Vec<Arc<Frozen>> {
    let mut rows = Rows::default();
    snapshot.delta.iter().for_each(|(id, hash)| rows.push(id.into(), *hash));
    let mut parts: Vec<Arc<Frozen>> = snapshot.parts.into_iter().map(|part| part.frozen(k)).collect();
    parts.extend(rows.freeze(k).into_iter().map(Arc::new));
    parts.sort_by_key(|part| std::cmp::Reverse(part.rows()));
    parts
}

fn of_parts(
    parts: &[Arc<Frozen>],
    language: Language,
    k: u32,
    each: &mut dyn FnMut(&Pair) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut pair = |a: DocId, b: DocId, distance| {
        let ids = if a < b { [a, b] } else { [b, a] };
        each(&Pair { language, ids, distance })
    };
    for (at, part) in parts.iter().enumerate() {
        part.pairs(k, &mut |a, b, distance| pair(part.id(a).into(), part.id(b).into(), distance))?;
        // The smaller part is looked up in the larger one.
        let mut work = Work::new(usize::MAX);
        for larger in &parts[..at] {
            for row in (0..part.rows() as u32).filter(|row| !part.is_deleted(*row)) {
                work.next();
                larger.near(part.hash(row), k, &mut work);
                for hit in &work.hits {
                    pair(part.id(row).into(), larger.id(hit.row).into(), hit.distance)?;
                }
            }
        }
    }
    ControlFlow::Continue(())
}
