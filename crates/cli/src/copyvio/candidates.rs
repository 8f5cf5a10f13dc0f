//! Flags that say where to look for the sources of an article.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueHint};
use huntsman::Settings;
use huntsman::sweep::{
    CandidateError, CandidateSource, Engine, GivenUrls, Links, NearCandidates, SearchEngine,
};

use crate::dedup::{IndexArgs, OrFailure, place, told};
use crate::exit::{Failure, Outcome};
use crate::progress::Screen;
use crate::render::escape;
use crate::text_index::{self, TextIndex};

/// Where the sources of an article are searched; the same flags for all commands that check articles.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Sources")]
pub(crate) struct CandidateArgs {
    /// URL of a page that the article may be copied from (repeatable).
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) source: Vec<String>,

    /// Uses the links of the article to other sites as sources (the default).
    #[arg(long, overrides_with = "no_links")]
    pub(crate) links: bool,

    /// Does not use the links of the article as sources.
    #[arg(long, overrides_with = "links")]
    pub(crate) no_links: bool,

    /// Full-text index of earlier crawls, as `huntsman crawl --index DIR` makes it: pages in it that share passages
    /// with the article are sources, and are not fetched again.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) index: Option<PathBuf>,

    /// Index of near-duplicates whose ids are URLs, as `huntsman dedup add pages.jsonl` makes it: a directory, or
    /// `redis://[USER@]HOST[:PORT][/DB]` with the password in HUNTSMAN_REDIS_PASSWORD. Pages in it that nearly equal
    /// the article are sources.
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) near_index: Option<String>,

    /// Folder with the files that are in the index of near-duplicates, if its ids are their names, as in one that
    /// `huntsman dedup build DIR` made: those that nearly equal the article are read there.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "near_index")]
    pub(crate) near_files: Option<PathBuf>,

    /// Search engine that is queried for sentences of the article (repeatable): `searxng=URL` of an instance that
    /// answers in JSON; `brave` with the key in BRAVE_API_KEY; `google` with key and engine in GOOGLE_API_KEY and
    /// GOOGLE_CX. `brave=URL` and `google=URL` query another address than the usual one.
    #[arg(long, value_name = "ENGINE", value_parser = engine)]
    pub(crate) search: Vec<EngineArg>,

    /// Maximum number of queries to search engines per article; each engine gets its share.
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) max_queries: usize,

    /// Maximum number of queries to each search engine for all articles together [default: no limit].
    #[arg(long, value_name = "N")]
    pub(crate) query_budget: Option<usize>,
}

impl CandidateArgs {
    /// All candidate sources, in the order in which they are queried: those that cost nothing first, search engines
    /// last.
    ///
    /// # Errors
    /// One of the named sources cannot be used.
    pub(crate) fn sources(&self, settings: &Settings) -> Outcome<Vec<Arc<dyn CandidateSource>>> {
        let index = self.index.as_deref().map(text_index::open).transpose()?;
        self.sources_with(index, settings)
    }

    /// As [`sources`](Self::sources), but with an index that is already open instead of the one of `--index`: only
    /// one process at a time may open an index to add pages.
    ///
    /// # Errors
    /// One of the named sources cannot be used.
    pub(crate) fn sources_with(
        &self,
        index: Option<TextIndex>,
        settings: &Settings,
    ) -> Outcome<Vec<Arc<dyn CandidateSource>>> {
        let mut sources: Vec<Arc<dyn CandidateSource>> = vec![Arc::new(GivenUrls::new(&self.source))];
        if !self.no_links {
            sources.push(Arc::new(Links));
        }
        #[cfg(feature = "text-index")]
        sources.extend(index.map(|index| Arc::new(index) as Arc<dyn CandidateSource>));
        #[cfg(not(feature = "text-index"))]
        drop(index);
        if let Some(index) = &self.near_index {
            sources.push(Arc::new(near(index, self.near_files.as_deref())?));
        }
        let engines = self.search.len().max(1);
        for (at, engine) in self.search.iter().enumerate() {
            let engine = SearchEngine::new(engine.engine()?, settings)?;
            // Each engine gets its share of the queries; otherwise an engine without a quota would take them all.
            let share = self.max_queries / engines + usize::from(at < self.max_queries % engines);
            sources.push(Arc::new(engine.max_queries(share).budget(self.query_budget.unwrap_or(usize::MAX))));
        }
        Ok(sources)
    }
}

/// The index of `--near-index`.
fn near(index: &str, files: Option<&Path>) -> Outcome<NearCandidates> {
    let args = IndexArgs { index: index.to_owned(), layout: None, k: None, features: None };
    let opened =
        place(&args).and_then(|place| place.open_any(args.wanted(), &told(&Screen::plain())).or_failure());
    let opened = opened.map_err(|failure| Failure {
        // The error names the flag of another command; here the flag is `--near-index`.
        message: failure.message.replace("--index", "--near-index"),
        ..failure
    })?;
    let candidates = NearCandidates::new(opened.into());
    Ok(match files {
        Some(folder) => candidates.files(folder),
        None => candidates,
    })
}

/// A search engine, with its address if that is not the usual one.
#[derive(Clone, Debug)]
pub(crate) enum EngineArg {
    Searxng(String),
    Brave(Option<String>),
    Google(Option<String>),
}

impl EngineArg {
    fn engine(&self) -> Outcome<Engine> {
        let at = |engine: Engine, address: &Option<String>| match address {
            Some(address) => engine.at(address),
            None => Ok(engine),
        };
        let engine = match self {
            Self::Searxng(address) => Engine::searxng(address),
            Self::Brave(address) => Engine::brave_from_env().and_then(|engine| at(engine, address)),
            Self::Google(address) => Engine::google_from_env().and_then(|engine| at(engine, address)),
        };
        engine.map_err(|error: CandidateError| {
            Failure::usage(format!("--search: {}", escape(&error.to_string())))
        })
    }
}

fn engine(text: &str) -> Result<EngineArg, String> {
    let (name, address) = match text.split_once('=') {
        Some((name, address)) => (name, Some(address.to_owned())),
        None => (text, None),
    };
    match (name, address) {
        ("searxng", Some(address)) => Ok(EngineArg::Searxng(address)),
        ("searxng", None) => Err("name the instance: searxng=https://search.example.org/".to_owned()),
        ("brave", address) => Ok(EngineArg::Brave(address)),
        ("google", address) => Ok(EngineArg::Google(address)),
        _ => Err("use searxng=URL, brave or google".to_owned()),
    }
}
