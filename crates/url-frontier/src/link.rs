//! The way to the server over connections that may break: each call is made again until the server has answered it.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use huntsman_crawler::Timestamp;
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::message::{BlockQueueParams, GetParams, QueueDelayParams, QueueWithinCrawlParams, Stats, UrlInfo};
use crate::settings::UrlFrontierSettings;

/// The first and the longest pause before another attempt.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// The longest wait of a call that is given up rather than made again.
const QUICK: Duration = Duration::from_secs(2);
/// Delays and blocks that are remembered, each. Beyond it they are forgotten, and told again when their queue is next asked.
const TOLD: usize = 100_000;
/// Calls at a time that tell delays and blocks again.
const TELLING: usize = 32;

/// The server, the job in it, and what the server was told and would forget in a restart.
#[derive(Debug)]
pub(crate) struct Link {
    settings: UrlFrontierSettings,
    connection: tokio::sync::Mutex<Connection>,
    told: Mutex<Told>,
    /// Whether the server knows `PutDiscovered`, as far as it was tried.
    takes_batches: AtomicBool,
}

/// The connection, if there is one, and how many there were.
#[derive(Debug, Default)]
struct Connection {
    client: Option<Client>,
    number: u64,
}

/// Delays and ends of blocks by queue, in seconds.
#[derive(Debug, Default)]
struct Told {
    delays: HashMap<String, u32>,
    blocks: HashMap<String, u64>,
}

impl Link {
    /// Connects to the server, once.
    ///
    /// # Errors
    /// The server cannot be reached, or is no URLFrontier server.
    pub(crate) async fn connect(settings: UrlFrontierSettings) -> Result<Self, Error> {
        settings.check()?;
        let link = Self {
            settings,
            connection: tokio::sync::Mutex::default(),
            told: Mutex::default(),
            takes_batches: AtomicBool::new(true),
        };
        let asked = link.queue("");
        let ask = |mut client: Client| {
            let asked = asked.clone();
            async move { client.stats(asked).await }
        };
        let asked = link.attempt(ask, link.settings.timeout).await;
        asked.map_err(|failure| link.error(&failure))?;
        Ok(link)
    }

    pub(crate) fn job(&self) -> &str {
        &self.settings.job
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call, again and again until the server has answered it or the patience ends. What is called may be done twice.
    pub(crate) async fn call<T, F>(&self, call: impl Fn(Client) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let began = Instant::now();
        let mut pause = PAUSES.0;
        loop {
            let failure = match self.attempt(&call, self.settings.timeout).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            if is_final(&failure) || began.elapsed() >= self.settings.patience {
                return Err(self.error(&failure));
            }
            tracing::debug!(%failure, "url frontier: trying again");
            // Nodes that lost the server at the same time do not come back at the same time.
            tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..1.0))).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    async fn attempt<T, F>(&self, call: impl Fn(Client) -> F, limit: Duration) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let (client, number) = self.client().await?;
        let reply = tokio::time::timeout(limit, call(client)).await;
        let reply = reply.unwrap_or_else(|_| Err(Status::deadline_exceeded("there is no reply in time")));
        if let Err(failure) = &reply
            && !is_final(failure)
        {
            let mut current = self.connection.lock().await;
            // Another task may have made a new one since.
            if current.number == number {
                current.client = None;
            }
        }
        reply
    }

    /// The connection and its number; it is made if there is none. A new one is used only after the server was told again what it may
    /// have forgotten.
    async fn client(&self) -> Result<(Client, u64), Status> {
        let mut current = self.connection.lock().await;
        if let Some(client) = &current.client {
            return Ok((client.clone(), current.number));
        }
        let connected = tokio::time::timeout(self.settings.timeout, Client::connect(&self.settings)).await;
        let client = match connected {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(Status::unavailable(error.to_string())),
            Err(_) => return Err(Status::deadline_exceeded("the server does not accept the connection")),
        };
        self.tell_again(&client).await?;
        current.client = Some(client.clone());
        current.number += 1;
        Ok((client, current.number))
    }

    async fn tell_again(&self, client: &Client) -> Result<(), Status> {
        let now = Timestamp::wall().0 / 1_000_000;
        let (delays, blocks) = {
            let mut told = self.told();
            told.blocks.retain(|_, until| *until > now);
            let delays: Vec<_> = told.delays.iter().map(|(key, delay)| self.delay(key, *delay)).collect();
            let blocks: Vec<_> = told.blocks.iter().map(|(key, until)| self.block(key, *until)).collect();
            (delays, blocks)
        };
        let delays = delays.into_iter().map(|delay| {
            let mut client = client.clone();
            async move { client.set_delay(delay).await }
        });
        let blocks = blocks.into_iter().map(|block| {
            let mut client = client.clone();
            async move { client.block(block).await }
        });
        let told = async {
            let mut told = stream::iter(delays).buffer_unordered(TELLING);
            while let Some(told) = told.next().await {
                told?;
            }
            let mut told = stream::iter(blocks).buffer_unordered(TELLING);
            while let Some(told) = told.next().await {
                told?;
            }
            Ok(())
        };
        tokio::time::timeout(self.settings.timeout, told)
            .await
            .unwrap_or_else(|_| Err(Status::deadline_exceeded("there is no reply in time")))
    }

    fn queue(&self, key: &str) -> QueueWithinCrawlParams {
        QueueWithinCrawlParams { key: key.to_owned(), crawl_id: self.settings.job.clone() }
    }

    fn delay(&self, key: &str, delay: u32) -> QueueDelayParams {
        QueueDelayParams {
            key: key.to_owned(),
            delay_requestable: delay,
            crawl_id: self.settings.job.clone(),
        }
    }

    fn block(&self, key: &str, until: u64) -> BlockQueueParams {
        BlockQueueParams { key: key.to_owned(), time: until, crawl_id: self.settings.job.clone() }
    }

    /// Takes URLs; those that a lost reply had are served again when their hold ends.
    pub(crate) async fn get_urls(&self, asked: &GetParams) -> Result<Vec<UrlInfo>, Error> {
        self.call(|mut client| {
            let asked = asked.clone();
            async move { client.get_urls(asked).await }
        })
        .await
    }

    /// Takes URLs if the server can be reached and answers at once.
    pub(crate) async fn get_urls_now(&self, asked: &GetParams) -> Option<Vec<UrlInfo>> {
        // The lock is held for longer than a moment only while a connection is made.
        drop(self.connection.try_lock().ok()?);
        let call = |mut client: Client| {
            let asked = asked.clone();
            async move { client.get_urls(asked).await }
        };
        let reply = tokio::time::timeout(QUICK, self.attempt(call, QUICK)).await;
        reply.ok()?.ok()
    }

    /// The numbers of the job.
    pub(crate) async fn stats(&self) -> Result<Stats, Error> {
        let asked = self.queue("");
        self.call(|mut client| {
            let asked = asked.clone();
            async move { client.stats(asked).await }
        })
        .await
    }

    /// Tells the delay of a queue, in whole seconds, unless it was told already.
    pub(crate) async fn set_delay(&self, key: &str, delay: u32) -> Result<(), Error> {
        {
            let mut told = self.told();
            if told.delays.get(key) == Some(&delay) {
                return Ok(());
            }
            if told.delays.len() >= TOLD {
                told.delays.clear();
            }
            told.delays.insert(key.to_owned(), delay);
        }
        let params = self.delay(key, delay);
        self.call(|mut client| {
            let params = params.clone();
            async move { client.set_delay(params).await }
        })
        .await
    }

    /// Blocks a queue until a time in seconds since 1970, or ends its block with 0, unless that was told already.
    pub(crate) async fn block_until(&self, key: &str, until: u64) -> Result<(), Error> {
        {
            let mut told = self.told();
            let last =
                if until == 0 { told.blocks.remove(key) } else { told.blocks.insert(key.to_owned(), until) };
            if last.unwrap_or(0) == until {
                return Ok(());
            }
            if told.blocks.len() > TOLD {
                let now = Timestamp::wall().0 / 1_000_000;
                told.blocks.retain(|_, until| *until > now);
            }
        }
        let params = self.block(key, until);
        self.call(|mut client| {
            let params = params.clone();
            async move { client.block(params).await }
        })
        .await
    }

    pub(crate) fn takes_batches(&self) -> bool {
        self.takes_batches.load(Ordering::Relaxed)
    }

    pub(crate) fn stop_batches(&self) {
        self.takes_batches.store(false, Ordering::Relaxed);
    }

    fn error(&self, failure: &Status) -> Error {
        let address = self.settings.address();
        let why = failure.message();
        match failure.code() {
            Code::Unimplemented => Error::new(
                ErrorKind::Refused,
                format!("{address}: it is no URLFrontier server of version 2: {why}"),
            ),
            _ if is_final(failure) => {
                Error::new(ErrorKind::Refused, format!("{address}: the server refuses: {why}"))
            }
            _ => {
                Error::new(ErrorKind::Unavailable, format!("{address}: the server cannot be reached: {why}"))
            }
        }
    }
}

/// Whether another attempt would fail as well.
pub(crate) fn is_final(failure: &Status) -> bool {
    matches!(
        failure.code(),
        Code::Unimplemented
            | Code::InvalidArgument
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::ResourceExhausted
            | Code::OutOfRange
    )
}
