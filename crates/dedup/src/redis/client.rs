//! The client of the server, with the errors of an index.

use std::sync::Arc;

use huntsman_detect::near::{IndexError, IndexErrorKind};
pub(super) use huntsman_redis::{Batch, Reply, Shape};
use huntsman_redis::{Error, ErrorKind, Settings};

/// A client of the server.
#[derive(Debug)]
pub(super) struct Client(huntsman_redis::Client);

/// The error of an index for one of its server.
pub(super) fn index_error(error: Error) -> IndexError {
    let kind = match error.kind() {
        ErrorKind::Input => IndexErrorKind::Input,
        ErrorKind::Format => IndexErrorKind::Format,
        ErrorKind::Full => IndexErrorKind::Full,
        ErrorKind::Unavailable => IndexErrorKind::Unavailable,
        ErrorKind::Refused => IndexErrorKind::Refused,
        _ => IndexErrorKind::Io,
    };
    let found = IndexError::new(kind, error.message());
    let found = match error.place() {
        Some(place) => found.at(place),
        None => found,
    };
    found.with_source(error)
}

impl Client {
    pub(super) fn connect(settings: Settings) -> Result<Self, IndexError> {
        huntsman_redis::Client::connect(Arc::new(settings)).map(Self).map_err(index_error)
    }

    /// Another client of the same server.
    pub(super) fn sibling(&self) -> Self {
        Self(self.0.sibling())
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.0.is_cluster()
    }

    pub(super) fn run(&mut self, batch: &Batch) -> Result<Vec<Reply>, IndexError> {
        self.0.run(batch).map_err(index_error)
    }

    pub(super) fn run_in_order(&mut self, batches: Vec<Batch>) -> Result<(), IndexError> {
        self.0.run_in_order(batches).map_err(index_error)
    }

    pub(super) fn call(&mut self, parts: &[&[u8]]) -> Result<Reply, IndexError> {
        self.0.call(parts).map_err(index_error)
    }

    pub(super) fn answers(&mut self, batch: &Batch) -> Result<Vec<Reply>, IndexError> {
        self.0.answers(batch).map_err(index_error)
    }

    pub(super) fn each_node(&mut self, parts: &[&[u8]]) -> Result<Vec<(u16, Reply)>, IndexError> {
        self.0.each_node(parts).map_err(index_error)
    }

    pub(super) fn run_at_most_once(
        &mut self,
        parts: &[&[u8]],
    ) -> Result<Result<Reply, IndexError>, IndexError> {
        self.0.run_at_most_once(parts).map(|reply| reply.map_err(index_error)).map_err(index_error)
    }
}
