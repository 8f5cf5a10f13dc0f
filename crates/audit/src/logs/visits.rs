//! Visits: how often each URL was asked for by whom, and what was answered. They are summed up in memory and on disk.

use std::collections::HashMap;

use huntsman_crawler::Result;
use huntsman_disk::{Entry, Fields, List, ListWriter, Numbered, Scratch, Sorter, put_bytes, put_number};

use super::robots::Agent;
use crate::edges::common;

/// Bytes that an entry of the table takes besides its URL, about.
const AROUND: usize = 96;

/// Requests for a URL by one agent with one status.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Visits {
    pub(crate) url: Box<str>,
    pub(crate) agent: Agent,
    pub(crate) status: u16,
    pub(crate) sums: Sums,
    /// The number of the URL in a list.
    pub(crate) number: u32,
}

/// Numbers of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sums {
    pub(crate) hits: u64,
    /// From addresses that the operator of the robot publishes.
    pub(crate) confirmed: u64,
    /// From other addresses, although it publishes them.
    pub(crate) contradicted: u64,
    /// Seconds since 1970 began at the last one that has a time, or zero.
    pub(crate) last: u64,
}

impl Sums {
    pub(crate) fn add(&mut self, other: Self) {
        self.hits += other.hits;
        self.confirmed += other.confirmed;
        self.contradicted += other.contradicted;
        self.last = self.last.max(other.last);
    }
}

impl Entry for Visits {
    fn heap_size(&self) -> usize {
        self.url.len() + 16
    }

    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        let common = common(before.map_or("", |before| &before.url), &self.url);
        put_number(common as u64, out);
        put_bytes(&self.url.as_bytes()[common..], out);
        let Sums { hits, confirmed, contradicted, last } = self.sums;
        let numbers = [self.agent.0.into(), self.status.into(), hits, confirmed, contradicted, last];
        numbers.into_iter().chain([self.number.into()]).for_each(|number| put_number(number, out));
    }

    fn read(before: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let before = before.map_or("", |before| &before.url);
        let common = usize::try_from(from.number()?).ok()?;
        let url = format!("{}{}", before.get(..common)?, from.text()?).into();
        Some(Self {
            url,
            agent: Agent(from.number()?.try_into().ok()?),
            status: from.number()?.try_into().ok()?,
            sums: Sums {
                hits: from.number()?,
                confirmed: from.number()?,
                contradicted: from.number()?,
                last: from.number()?,
            },
            number: from.number_u32()?,
        })
    }
}

impl Numbered for Visits {
    fn number(&self) -> u32 {
        self.number
    }
}

/// Sums visits up by URL, agent and status.
#[derive(Debug)]
pub(super) struct Counter {
    scratch: Scratch,
    limit: usize,
    counts: HashMap<Box<str>, Vec<(Agent, u16, Sums)>>,
    bytes: usize,
    sorter: Sorter<Visits>,
}

impl Counter {
    /// A counter that keeps about so many bytes in memory.
    pub(super) fn new(scratch: &Scratch, limit: usize) -> Self {
        let sorter = Sorter::new(scratch, limit);
        Self { scratch: scratch.clone(), limit, counts: HashMap::new(), bytes: 0, sorter }
    }

    pub(super) fn add(&mut self, url: &str, agent: Agent, status: u16, sums: Sums) -> Result<()> {
        if !self.counts.contains_key(url) {
            self.bytes += url.len() + AROUND;
            self.counts.insert(url.into(), Vec::new());
        }
        let Some(of_url) = self.counts.get_mut(url) else { return Ok(()) };
        match of_url.iter_mut().find(|(of, with, _)| (*of, *with) == (agent, status)) {
            Some((.., known)) => known.add(sums),
            None => {
                self.bytes += size_of::<(Agent, u16, Sums)>();
                of_url.push((agent, status, sums));
            }
        }
        if self.bytes > self.limit { self.empty() } else { Ok(()) }
    }

    /// Hands all over to the sorter.
    fn empty(&mut self) -> Result<()> {
        self.bytes = 0;
        for (url, of_url) in self.counts.drain() {
            for (agent, status, sums) in of_url {
                self.sorter.push(Visits { url: url.clone(), agent, status, sums, number: 0 })?;
            }
        }
        Ok(())
    }

    /// All visits in the order of URLs, which are numbered.
    pub(super) fn finish(mut self) -> Result<List<Visits>> {
        self.empty()?;
        let mut list = ListWriter::new(&self.scratch)?;
        let mut last: Option<Visits> = None;
        for visits in self.sorter.finish()? {
            let mut visits = visits?;
            let Some(before) = &mut last else {
                last = Some(visits);
                continue;
            };
            if (&before.url, before.agent, before.status) == (&visits.url, visits.agent, visits.status) {
                before.sums.add(visits.sums);
                continue;
            }
            visits.number = before.number.saturating_add(u32::from(before.url != visits.url));
            list.add(std::mem::replace(before, visits))?;
        }
        last.into_iter().try_for_each(|visits| list.add(visits))?;
        Ok(list.finish()?)
    }
}

/// Calls `each` with the visits of each URL, in the order of URLs.
pub(crate) fn each_url(list: &List<Visits>, each: &mut dyn FnMut(&[Visits]) -> Result<()>) -> Result<()> {
    let (mut cursor, mut of_url) = (list.cursor(), Vec::<Visits>::new());
    while let Some(visits) = cursor.next()? {
        if of_url.first().is_some_and(|first| first.url != visits.url) {
            each(&of_url)?;
            of_url.clear();
        }
        of_url.push(visits.clone());
    }
    if of_url.is_empty() { Ok(()) } else { each(&of_url) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn visits_are_summed_up_the_same_in_memory_and_on_disk() {
        for limit in [1 << 20, 3_000, 1] {
            let mut counter = Counter::new(&Scratch::temporary(), limit);
            let mut expected: BTreeMap<(String, u16, u16), u64> = BTreeMap::new();
            for number in 0..5_000_u64 {
                let (url, agent, status) =
                    (format!("/é{}", number * 7_919 % 257), (number % 3) as u16, 200 + (number % 2) as u16);
                let sums = Sums { hits: 1, confirmed: number % 2, contradicted: 0, last: number };
                counter.add(&url, Agent(agent), status, sums).unwrap();
                *expected.entry((url, agent, status)).or_default() += 1;
            }
            let (mut found, mut last) = (BTreeMap::new(), 0);
            each_url(&counter.finish().unwrap(), &mut |of_url| {
                for visits in of_url {
                    let key = (visits.url.to_string(), visits.agent.0, visits.status);
                    assert!(found.insert(key, visits.sums.hits).is_none(), "each once");
                    last = last.max(visits.sums.last);
                }
                Ok(())
            })
            .unwrap();
            assert_eq!((found, last), (expected, 4_999), "{limit}");
        }
    }
}
