//! Requests for other partitions, which wait in the outbox of the partition in which they were found.

use std::collections::BTreeMap;

use huntsman_crawler::HostKey;
use huntsman_redis::{Error, Reply};

use crate::convert::Items;
use crate::keeper::Keeper;
use crate::script::{Call, OUTBOX, PUSH, TRIM};

/// Requests of an outbox that are moved at once.
const MOVED: u64 = 500;
/// How often requests are moved before other work has its turn.
const MOVES: usize = 8;

impl Keeper {
    /// Moves requests from the outboxes of own partitions to their partitions, until the outboxes are empty or a beat may be due.
    pub(crate) fn move_outboxes(&mut self) -> Result<(), Error> {
        for _ in 0..MOVES {
            let full = |partition: u32| {
                let part = self.shared.partitions.get(partition);
                Some((partition, part.with(|owned| (owned.outbox > 0).then(|| owned.epoch.clone()))??))
            };
            let full: Vec<(u32, String)> =
                self.shared.partitions.owned().into_iter().filter_map(full).collect();
            if full.is_empty() {
                return Ok(());
            }
            self.move_some(&full)?;
        }
        Ok(())
    }

    fn move_some(&mut self, full: &[(u32, String)]) -> Result<(), Error> {
        let asked = full
            .iter()
            .map(|(partition, epoch)| self.shared.fenced(&OUTBOX, *partition, epoch).number(MOVED));
        let asked: Vec<Call> = asked.collect();
        let (mut pushes, mut trims) = (Vec::new(), Vec::new());
        for ((partition, epoch), answer) in full.iter().zip(self.runner.run(&asked)?) {
            let Some(reply) = answer else {
                self.shared.lost(*partition, epoch);
                continue;
            };
            let mut by_target: BTreeMap<u32, Call> = BTreeMap::new();
            let mut last = 0;
            for entry in reply.into_values().unwrap_or_default().into_iter().flatten() {
                let (number, target, request) = self.sent(&entry)?;
                last = number;
                let call = by_target.remove(&target).unwrap_or_else(|| {
                    let call = self.shared.plain(&PUSH, target).arg(format!("p{partition}"));
                    call.arg(self.shared.token.as_str())
                });
                by_target.insert(target, call.number(number).arg(request));
            }
            pushes.extend(by_target);
            trims.push((*partition, epoch, self.shared.fenced(&TRIM, *partition, epoch).number(last)));
        }
        self.push(pushes)?;
        let calls: Vec<Call> = trims.iter().map(|(_, _, call)| call.clone()).collect();
        for ((partition, epoch, _), answer) in trims.iter().zip(self.runner.run(&calls)?) {
            match answer.and_then(|reply| reply.number()) {
                None => self.shared.lost(*partition, epoch),
                Some(left) => {
                    let left = u64::try_from(left).unwrap_or(0);
                    self.shared.partitions.get(*partition).with(|owned| owned.outbox = left);
                }
            }
        }
        Ok(())
    }

    /// An entry of an outbox: its number, its partition, and the request.
    fn sent<'a>(&self, entry: &'a [u8]) -> Result<(u64, u32, &'a [u8]), Error> {
        let damaged = || self.runner.damaged("an outbox");
        let (number, rest) = entry.split_first_chunk().ok_or_else(damaged)?;
        let (target, request) = rest.split_first_chunk().ok_or_else(damaged)?;
        let target = u32::from_be_bytes(*target);
        if target >= self.shared.partitions.count() {
            return Err(damaged());
        }
        Ok((u64::from_be_bytes(*number), target, request))
    }

    fn push(&mut self, pushes: Vec<(u32, Call)>) -> Result<(), Error> {
        let (targets, calls): (Vec<u32>, Vec<Call>) = pushes.into_iter().unzip();
        let mut woken = Vec::new();
        for (target, answer) in targets.into_iter().zip(self.runner.run(&calls)?) {
            let mut items = Items::of(answer.unwrap_or(Reply::Nil), "the reply to a push")?;
            let (_, _) = (items.count()?, items.count()?);
            let (version, queued) = (items.count()?, items.count()?);
            self.shared.partitions.counted(target, version, queued);
            if self.shared.partitions.get(target).epoch().is_some() {
                woken.extend(items.texts()?.iter().map(|name| HostKey::new(name)));
            }
        }
        self.tell_woken(woken);
        Ok(())
    }
}
