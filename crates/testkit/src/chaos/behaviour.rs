//! One bad behaviour: its address, its responses, and what a client may do about it.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use super::judge::Evidence;
use crate::answer::Answer;
use crate::record::SiteRequest;
use crate::sites::{Random, prose};

/// Maximum number of attempts after network failures, the first one included.
const ATTEMPTS: usize = 3;

/// The subject of a behaviour. Every family is served on an address of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Bodies that are too short, too long, endless or of the wrong type.
    Bodies,
    /// Header blocks that are too large or broken.
    Headers,
    /// Content codings: bombs, false declarations, stacked codings.
    Codings,
    /// Silence and slowness.
    Time,
    /// Statuses that ask the client to retry.
    Retries,
    /// Redirects: loops, chains, bad targets.
    Redirects,
    /// Addresses that must not be connected to, or that no request line may hold.
    Addresses,
    /// Cookies, credentials and other data that must not leak to other hosts.
    Cookies,
    /// Markup that is hard on parsers.
    Markup,
    /// Endless sites.
    Traps,
    /// robots.txt and other rules for robots.
    Robots,
    /// Responses that violate HTTP.
    Protocol,
    /// Sitemaps that contain false data, loop, are too large or malformed. They are served if this family is chosen,
    /// or with [`ChaosBuilder::sitemaps`](crate::ChaosBuilder::sitemaps).
    Sitemaps,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 13] = [
        Self::Bodies,
        Self::Headers,
        Self::Codings,
        Self::Time,
        Self::Retries,
        Self::Redirects,
        Self::Addresses,
        Self::Cookies,
        Self::Markup,
        Self::Traps,
        Self::Robots,
        Self::Protocol,
        Self::Sitemaps,
    ];

    /// Lower-case name; it is also the first segment of the family's paths.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bodies => "bodies",
            Self::Headers => "headers",
            Self::Codings => "codings",
            Self::Time => "time",
            Self::Retries => "retries",
            Self::Redirects => "redirects",
            Self::Addresses => "addresses",
            Self::Cookies => "cookies",
            Self::Markup => "markup",
            Self::Traps => "traps",
            Self::Robots => "robots",
            Self::Protocol => "protocol",
            Self::Sitemaps => "sitemaps",
        }
    }

    pub(super) fn own_host(self) -> &'static str {
        match self {
            Self::Bodies => "127.0.0.31",
            Self::Headers => "127.0.0.32",
            Self::Codings => "127.0.0.33",
            Self::Time => "127.0.0.34",
            Self::Retries => "127.0.0.35",
            Self::Redirects => "127.0.0.36",
            Self::Addresses => "127.0.0.37",
            Self::Cookies => "127.0.0.38",
            Self::Markup => "127.0.0.39",
            Self::Traps => "127.0.0.40",
            Self::Robots => "127.0.0.41",
            Self::Protocol => "127.0.0.42",
            Self::Sitemaps => "127.0.0.43",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The addresses and sizes that behaviours need to know.
#[derive(Debug)]
pub(super) struct Endpoints {
    pub(super) port: OnceLock<u16>,
    /// A port that no exception of the address guard lists.
    pub(super) other_port: OnceLock<u16>,
    pub(super) hold: Duration,
    pub(super) max_body: u64,
    pub(super) max_hops: usize,
    pub(super) crawl_delay: Duration,
    pub(super) one_host: bool,
}

impl Endpoints {
    pub(super) fn host_of(&self, family: Family) -> &'static str {
        if self.one_host { super::MAIN } else { family.own_host() }
    }

    pub(super) fn port(&self) -> u16 {
        *self.port.get().expect("the port is set before anyone knows it")
    }

    pub(super) fn other_port(&self) -> u16 {
        *self.other_port.get().expect("the port is set before anyone knows it")
    }

    pub(super) fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port())
    }
}

/// A request for a behaviour.
pub(super) struct Exchange<'a> {
    pub(super) request: &'a SiteRequest,
    pub(super) endpoints: &'a Endpoints,
    pub(super) behaviour: &'a Behaviour,
    /// The part of the path after that of the behaviour, without a slash; empty for the entry page.
    pub(super) rest: &'a str,
}

impl Exchange<'_> {
    /// The path of a resource of this behaviour; an empty name gives the entry page.
    pub(super) fn path(&self, rest: &str) -> String {
        self.behaviour.path(rest)
    }

    /// The absolute URL of a resource of this behaviour.
    pub(super) fn url(&self, rest: &str) -> String {
        self.endpoints.url(self.behaviour.host(self.endpoints), &self.path(rest))
    }

    /// A page about this behaviour with a link to [`KEPT`].
    pub(super) fn kept(&self) -> String {
        self.page(&[&self.path(KEPT)])
    }

    /// A page about this behaviour with a link to [`POISON`].
    pub(super) fn poison(&self) -> String {
        self.page(&[&self.path(POISON)])
    }

    /// A page with links, which are written unchanged.
    pub(super) fn page(&self, links: &[&str]) -> String {
        page(&self.request.target, links)
    }
}

/// The link that must be followed, because the page was fine, at least up to that link.
pub(super) const KEPT: &str = "kept";
/// The link that must not be followed, because the page was not fine or the rules forbid it.
pub(super) const POISON: &str = "poison";

/// A page with a text of its own and links.
pub(super) fn page(title: &str, links: &[&str]) -> String {
    let seed = title.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let text = prose(&mut Random::new(seed), 60);
    let links: String = links.iter().map(|link| format!("<a href=\"{link}\">more</a>\n")).collect();
    format!(
        "<!doctype html><html><head><title>{}</title></head><body>\n{links}<p>{text}</p></body></html>\n",
        escape(title)
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Where a behaviour is served.
#[derive(Clone, Copy, Debug)]
pub(super) enum Location {
    /// Under `/family/name` on the host of its family.
    Path,
    /// A host of its own, because the behaviour is about robots.txt or about the state of a host.
    Host(&'static str),
}

type Respond = Box<dyn Fn(&Exchange<'_>) -> Answer + Send + Sync>;
type Check = Box<dyn Fn(&Evidence<'_>, &mut Vec<String>) + Send + Sync>;

pub(super) struct Behaviour {
    pub(super) family: Family,
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) place: Location,
    pub(super) requests: RequestLimit,
    pub(super) bytes: ByteLimit,
    pub(super) has_kept: bool,
    pub(super) has_poison: bool,
    /// Whether only a client that recognises duplicate content can pass it.
    pub(super) needs_dedup: bool,
    /// Whether only a client that reads sitemaps can pass it.
    pub(super) needs_sitemaps: bool,
    pub(super) answer: Respond,
    pub(super) judge: Option<Check>,
}

/// How many requests a client may send.
#[derive(Clone, Copy, Debug)]
pub(super) enum RequestLimit {
    Requests(usize),
    /// One, plus one for each redirect that the client follows.
    Hops,
}

impl RequestLimit {
    pub(super) fn count(self, endpoints: &Endpoints) -> usize {
        match self {
            Self::Requests(requests) => requests,
            Self::Hops => endpoints.max_hops + 1,
        }
    }
}

/// How many bytes of one response a client may receive.
#[derive(Clone, Copy, Debug)]
pub(super) enum ByteLimit {
    /// The limit of bodies, plus the bytes in flight when the limit is reached.
    Body,
    /// The bytes in flight when the client closes the connection after the headers.
    Head,
}

impl ByteLimit {
    /// The socket buffers of both sides on loopback hold some MiB; the bytes "taken" include these.
    const UNDER_WAY: u64 = 8 << 20;

    pub(super) fn limit(self, endpoints: &Endpoints) -> u64 {
        match self {
            Self::Body => endpoints.max_body + (1 << 20) + Self::UNDER_WAY,
            Self::Head => Self::UNDER_WAY,
        }
    }
}

impl Behaviour {
    /// A behaviour under `/family/name`, with the attempts that a network failure allows.
    pub(super) fn new(
        family: Family,
        name: &'static str,
        about: &'static str,
        answer: impl Fn(&Exchange<'_>) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self {
            family,
            name,
            about,
            place: Location::Path,
            requests: RequestLimit::Requests(ATTEMPTS),
            bytes: ByteLimit::Body,
            has_kept: false,
            has_poison: false,
            needs_dedup: false,
            needs_sitemaps: false,
            answer: Box::new(answer),
            judge: None,
        }
    }

    /// Puts the behaviour on a host of its own. All paths there are plain pages unless `answer` decides otherwise.
    pub(super) fn at_host(mut self, host: &'static str) -> Self {
        self.place = Location::Host(host);
        self
    }

    /// Marks that there is a link that must be followed.
    pub(super) fn kept(mut self) -> Self {
        self.has_kept = true;
        self
    }

    /// Marks that there is a link that must not be followed.
    pub(super) fn poison(mut self) -> Self {
        self.has_poison = true;
        self
    }

    /// Sets how many requests are allowed under its path, without those for `kept`.
    pub(super) fn requests(mut self, requests: usize) -> Self {
        self.requests = RequestLimit::Requests(requests);
        self
    }

    /// Allows one request, and one for every redirect that the client follows.
    pub(super) fn hops(mut self) -> Self {
        self.requests = RequestLimit::Hops;
        self
    }

    /// Allows one attempt, because a retry cannot help.
    pub(super) fn once(self) -> Self {
        self.requests(1)
    }

    /// Marks that the client can know from the headers that it does not want the body.
    pub(super) fn head_only(mut self) -> Self {
        self.bytes = ByteLimit::Head;
        self
    }

    pub(super) fn needs_dedup(mut self) -> Self {
        self.needs_dedup = true;
        self
    }

    pub(super) fn needs_sitemaps(mut self) -> Self {
        self.needs_sitemaps = true;
        self
    }

    /// Adds a check of its own, which appends complaints to the verdict.
    pub(super) fn judge(
        mut self,
        judge: impl Fn(&Evidence<'_>, &mut Vec<String>) + Send + Sync + 'static,
    ) -> Self {
        self.judge = Some(Box::new(judge));
        self
    }

    pub(super) fn host(&self, endpoints: &Endpoints) -> &'static str {
        match self.place {
            Location::Path => endpoints.host_of(self.family),
            Location::Host(host) => host,
        }
    }

    pub(super) fn path(&self, rest: &str) -> String {
        match self.place {
            Location::Path if rest.is_empty() => format!("/{}/{}", self.family.name(), self.name),
            Location::Path => format!("/{}/{}/{rest}", self.family.name(), self.name),
            Location::Host(_) => format!("/{rest}"),
        }
    }

    /// The part of another path after the behaviour's path; `None` if it is not below that.
    pub(super) fn rest_of<'a>(&self, path: &'a str) -> Option<&'a str> {
        match self.place {
            Location::Host(_) => path.strip_prefix('/'),
            Location::Path => {
                let below = path.strip_prefix('/')?.strip_prefix(self.family.name())?;
                let rest = below.strip_prefix('/')?.strip_prefix(self.name)?;
                if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
            }
        }
    }

    /// The links on the family's index page. For a host of its own there may be no other link if its entry page is
    /// forbidden.
    pub(super) fn links(&self, endpoints: &Endpoints) -> Vec<String> {
        let url = |rest: &str| endpoints.url(self.host(endpoints), &self.path(rest));
        let mut links = vec![url("")];
        if matches!(self.place, Location::Host(_)) {
            links.extend(self.has_kept.then(|| url(KEPT)));
            links.extend(self.has_poison.then(|| url(POISON)));
        }
        links
    }
}
