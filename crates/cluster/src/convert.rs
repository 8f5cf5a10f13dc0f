//! Replies of scripts as values.

use huntsman_redis::{Error, Reply};

use crate::script::damaged;

/// The items of a reply that is a list, taken one by one.
#[derive(Debug)]
pub(crate) struct Items {
    items: std::vec::IntoIter<Reply>,
    what: &'static str,
}

impl Items {
    /// Takes a reply apart; `what` names it in errors.
    pub(crate) fn of(reply: Reply, what: &'static str) -> Result<Self, Error> {
        let items = reply.into_list().ok_or_else(|| damaged(what))?;
        Ok(Self { items: items.into_iter(), what })
    }

    fn next(&mut self) -> Result<Reply, Error> {
        self.items.next().ok_or_else(|| damaged(self.what))
    }

    /// A whole number, which is not negative.
    pub(crate) fn count(&mut self) -> Result<u64, Error> {
        let number = self.next()?.number().and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| damaged(self.what))
    }

    /// A whole number.
    pub(crate) fn number(&mut self) -> Result<i64, Error> {
        self.next()?.number().ok_or_else(|| damaged(self.what))
    }

    /// A text.
    pub(crate) fn text(&mut self) -> Result<String, Error> {
        let bytes = self.next()?.into_bytes().flatten();
        bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| damaged(self.what))
    }

    /// A list of strings.
    pub(crate) fn strings(&mut self) -> Result<Vec<Vec<u8>>, Error> {
        let what = self.what;
        let values = self.next()?.into_values().ok_or_else(|| damaged(what))?;
        values.into_iter().collect::<Option<_>>().ok_or_else(|| damaged(what))
    }

    /// A list of texts.
    pub(crate) fn texts(&mut self) -> Result<Vec<String>, Error> {
        let strings = self.strings()?;
        strings.into_iter().map(|bytes| String::from_utf8(bytes).map_err(|_| damaged(self.what))).collect()
    }

    /// A list of whole numbers.
    pub(crate) fn numbers(&mut self) -> Result<Vec<u64>, Error> {
        let list = self.next()?.into_list().ok_or_else(|| damaged(self.what))?;
        let number = |reply: Reply| reply.number().and_then(|number| u64::try_from(number).ok());
        list.into_iter().map(|reply| number(reply).ok_or_else(|| damaged(self.what))).collect()
    }

    /// Whether all items were taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.len() == 0
    }

    /// The next item as bytes.
    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, Error> {
        self.next()?.into_bytes().flatten().ok_or_else(|| damaged(self.what))
    }
}
