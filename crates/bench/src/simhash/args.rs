//! The flags of `simhash`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::sheet::FormArgs;

/// The text below the flags in the help.
pub(crate) const HELP: &str = "\
--pairs FILE has a JSON object a line (also packed with gzip or zstd): the texts `a` and `b`, and if you like `kind` (a name of what was \
done) and `level` (how much of it), by which shares are told, `len` (words, a class of its own), and `dup`: 1 if one text was made from the \
other, which is the default, 0 for texts that must not be found. Other fields are passed over.\n\n\
--redis without a URL starts servers of its own. A server that is named keeps what was measured, under the languages BENCH-...: name an \
empty database, and flush it afterwards. Its memory is that of the whole server. The password may stand in HUNTSMAN_REDIS_PASSWORD.";

/// Flags of `simhash`.
#[derive(Debug, Args)]
pub(crate) struct SimhashArgs {
    /// Only these parts [default: all; redis if there is a redis-server].
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub(crate) only: Vec<Part>,

    /// Where all random numbers begin.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Stories for each kind of change, of ten languages.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(40..=100_000))]
    pub(crate) stories: u64,

    /// Words of a story.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(50..=100_000))]
    pub(crate) words: u64,

    /// Judges the pairs of a file instead: see below. Without --only, nothing else is measured.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pairs: Option<PathBuf>,

    /// Writes the pairs that are made to a file, as --pairs reads it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "pairs")]
    pub(crate) write_pairs: Option<PathBuf>,

    /// Also measures the speed with this text (repeatable).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) text: Vec<PathBuf>,

    /// Documents of the indexes.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..=200_000_000))]
    pub(crate) documents: u64,

    /// Indexes for these numbers of bits.
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [3, 7], value_parser = clap::value_parser!(u32).range(0..=7))]
    pub(crate) k: Vec<u32>,

    /// Stories that are added to an index.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) add: u64,

    /// Measures with this Redis server; without a URL, with one that is started here.
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "clap's form for a flag with a value that may be left out")]
    pub(crate) redis: Option<Option<String>>,

    /// Documents of the indexes in Redis.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    pub(crate) redis_documents: u64,

    /// Folder for temporary files [default: that of the system].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) form: FormArgs,

    /// Measures this part for another process.
    #[arg(long, hide = true)]
    pub(crate) part: Option<Part>,
}

/// Values of `simhash --only`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Which changes of a text are found.
    Quality,
    /// How fast texts become fingerprints.
    Speed,
    /// Memory and time of indexes.
    Index,
    /// `dedup add` from texts to flags.
    Add,
    /// `dedup join` from an export to pairs.
    Join,
    /// Memory and time of indexes in Redis.
    Redis,
}

impl Part {
    /// All parts, in the order in which they are measured.
    pub(crate) const ALL: [Self; 6] =
        [Self::Quality, Self::Speed, Self::Index, Self::Add, Self::Join, Self::Redis];

    /// The value of the flag for this part.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Quality => "quality",
            Self::Speed => "speed",
            Self::Index => "index",
            Self::Add => "add",
            Self::Join => "join",
            Self::Redis => "redis",
        }
    }
}
