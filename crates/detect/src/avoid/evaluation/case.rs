//! The generated sites by name, and their requests.

use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::synthetic;

/// A generated site.
///
/// Most are the cases on which MaybeDont 0.1.1 was measured, with about as many requests: on half of them it finds nothing, on
/// the others it loses pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Case {
    /// 700 topics, some of several pages, with session ids, `start=0`, highlighted words and print views, in random order.
    ForumRandom,
    /// The same, with copies side by side, as links to them are on real pages.
    ForumAdjacent,
    /// Two or three session ids for each of 700 pages, in the path.
    PathSessions,
    /// 700 articles, each also under `/print/`, on the host `www`, and with a slash at the end.
    Copies,
    /// 700 articles with four tracking parameters that change together.
    Tracking,
    /// `page` is ignored by 350 documents of `/doc/N`, and selects among the 600 pages of one `/list`.
    DecisivePath,
    /// `page` is ignored by 150 documents of one site; then follows another site, on which it selects among 240 pages.
    TwoHosts,
    /// The same on two hosts of one domain, which are learnt as one site.
    SisterHosts,
    /// `view` is ignored by 450 pages, and selects the content of the 450 that come later.
    SiteChange,
    /// The first 300 responses are one log-in page; then come 1,200 different pages.
    LoginWall,
    /// 1,500 different pages, with 300 responses of a wall in the middle.
    WallInTheMiddle,
    /// The first 300 pages are 15 topics in 20 sessions each, then come 1,200 different ones.
    WarmUpCopies,
    /// Eight pages, in a new session with each of 3,000 links.
    EndlessSessions,
    /// 1,500 different pages.
    AllDifferent,
    /// 600 pages, each with a link to one log-in page of ten words that carries the address to return to.
    LoginReturn,
    /// 300 authors whose books are listed in four orders, which are a segment of the path; only the lists of one book are the same in all.
    SortSegment,
    /// A manual of 150 pages in eight versions and two aliases of the last one; a twelfth of the pages is rewritten in each version.
    ManualVersions,
    /// A browser of data with three facets that select, and with a column and a direction of sorting that do not.
    Facets,
    /// Twelve filters over one list, none of which has an effect: 4,096 addresses.
    FiltersIdle,
    /// Twelve filters over one list, one of which has an effect: 4,096 addresses.
    FiltersOne,
    /// 700 articles under two spellings of their titles, in two places of the address.
    Spellings,
    /// 500 lists of ten words each, three in four of them with a session id of their own.
    ShortTexts,
    /// 30 files at 60 revisions each, which change at every twelfth.
    Revisions,
    /// 900 addresses that show one page up to a number, and each a page of its own beyond.
    OneEnd,
}

impl Case {
    /// All cases.
    pub const ALL: [Self; 24] = [
        Self::ForumRandom,
        Self::ForumAdjacent,
        Self::PathSessions,
        Self::Copies,
        Self::Tracking,
        Self::DecisivePath,
        Self::TwoHosts,
        Self::SisterHosts,
        Self::SiteChange,
        Self::LoginWall,
        Self::WallInTheMiddle,
        Self::WarmUpCopies,
        Self::EndlessSessions,
        Self::AllDifferent,
        Self::LoginReturn,
        Self::SortSegment,
        Self::ManualVersions,
        Self::Facets,
        Self::FiltersIdle,
        Self::FiltersOne,
        Self::Spellings,
        Self::ShortTexts,
        Self::Revisions,
        Self::OneEnd,
    ];

    /// The name in commands and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::ForumRandom => "forum-random",
            Self::ForumAdjacent => "forum-adjacent",
            Self::PathSessions => "path-sessions",
            Self::Copies => "copies",
            Self::Tracking => "tracking",
            Self::DecisivePath => "decisive-path",
            Self::TwoHosts => "two-hosts",
            Self::SisterHosts => "sister-hosts",
            Self::SiteChange => "site-change",
            Self::LoginWall => "login-wall",
            Self::WallInTheMiddle => "wall-in-the-middle",
            Self::WarmUpCopies => "warm-up-copies",
            Self::EndlessSessions => "endless-sessions",
            Self::AllDifferent => "all-different",
            Self::LoginReturn => "login-return",
            Self::SortSegment => "sort-segment",
            Self::ManualVersions => "manual-versions",
            Self::Facets => "facets",
            Self::FiltersIdle => "filters-idle",
            Self::FiltersOne => "filters-one",
            Self::Spellings => "spellings",
            Self::ShortTexts => "short-texts",
            Self::Revisions => "revisions",
            Self::OneEnd => "one-end",
        }
    }

    /// A description in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::ForumRandom => "forum, random order",
            Self::ForumAdjacent => "forum, copies side by side",
            Self::PathSessions => "session id in the path",
            Self::Copies => "print views, www, trailing slash",
            Self::Tracking => "four tracking parameters that change together",
            Self::DecisivePath => "`page` ignored on 350 paths, decisive on one",
            Self::TwoHosts => "`page` ignored on one site, decisive on the next",
            Self::SisterHosts => "`page` ignored on one host, decisive on the next of its domain",
            Self::SiteChange => "`view` ignored, then decisive",
            Self::LoginWall => "300 answers of a log-in wall, then 1,200 pages",
            Self::WallInTheMiddle => "a wall in the middle of 1,500 pages",
            Self::WarmUpCopies => "300 copies first, then 1,200 pages",
            Self::EndlessSessions => "8 pages behind endless session ids, 3,000 links",
            Self::AllDifferent => "1,500 different pages",
            Self::LoginReturn => "600 log-in addresses before a page of ten words",
            Self::SortSegment => "sort order in the path, lists reordered",
            Self::ManualVersions => "a manual in eight versions and two aliases",
            Self::Facets => "facets that select, sorting that does not",
            Self::FiltersIdle => "twelve filters over one list, none of effect",
            Self::FiltersOne => "twelve filters over one list, one of effect",
            Self::Spellings => "two spellings of each title",
            Self::ShortTexts => "lists of ten words, with session ids",
            Self::Revisions => "30 files at 60 revisions",
            Self::OneEnd => "a number that matters at one end only",
        }
    }

    /// The case with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|case| case.name() == name)
    }

    /// The requests in the order of their discovery; the same for the same seed, in every version.
    pub fn requests(self, seed: u64) -> Vec<CaseRequest> {
        match self {
            Self::ForumRandom => synthetic::forum(seed, false),
            Self::ForumAdjacent => synthetic::forum(seed, true),
            Self::PathSessions => synthetic::path_sessions(seed),
            Self::Copies => synthetic::copies(seed),
            Self::Tracking => synthetic::tracking(seed),
            Self::DecisivePath => synthetic::decisive_path(seed),
            Self::TwoHosts => synthetic::two_hosts(seed, "one.example", "two.example"),
            Self::SisterHosts => synthetic::two_hosts(seed, "one.h.example", "two.h.example"),
            Self::SiteChange => synthetic::site_change(seed),
            Self::LoginWall => synthetic::login_wall(),
            Self::WallInTheMiddle => synthetic::wall_in_the_middle(),
            Self::WarmUpCopies => synthetic::warm_up_copies(seed),
            Self::EndlessSessions => synthetic::endless_sessions(seed),
            Self::AllDifferent => synthetic::all_different(seed),
            Self::LoginReturn => synthetic::login_return(seed),
            Self::SortSegment => synthetic::sort_segment(seed),
            Self::ManualVersions => synthetic::manual_versions(seed),
            Self::Facets => synthetic::facets(seed),
            Self::FiltersIdle => synthetic::filters(seed, false),
            Self::FiltersOne => synthetic::filters(seed, true),
            Self::Spellings => synthetic::spellings(seed),
            Self::ShortTexts => synthetic::short_texts(seed),
            Self::Revisions => synthetic::revisions(seed),
            Self::OneEnd => synthetic::one_end(),
        }
    }
}

/// A request to a generated site, and the content of its response.
#[derive(Clone, Debug)]
pub struct CaseRequest {
    /// The URL of the request.
    pub url: Url,
    /// The number of the content in the response.
    pub content: u64,
    /// Whether the response is a wall instead of the page. A wall counts neither as a content that may be lost nor as a copy.
    pub is_wall: bool,
    /// Whether the page has ten words of its own and not twelve lines of twelve.
    pub is_short: bool,
}

impl CaseRequest {
    /// A request whose response is a content of the site.
    ///
    /// # Panics
    /// If the text is not a URL.
    pub fn new(url: &str, content: u64) -> Self {
        Self { url: Url::parse(url).expect("an absolute URL"), content, is_wall: false, is_short: false }
    }

    /// The same with a page of ten words.
    #[must_use]
    pub fn short(self) -> Self {
        Self { is_short: true, ..self }
    }

    /// The site whose pages it is compared with: the last two labels of its host.
    pub fn site(&self) -> &str {
        let host = self.url.host_str().unwrap_or_default();
        let labels = host.rmatch_indices('.').nth(1);
        labels.map_or(host, |(dot, _)| &host[dot + 1..])
    }

    /// The blocks of the page with their positions: its chrome, and twelve lines of twelve words, or ten words, that are
    /// unique to its content.
    pub fn blocks(&self) -> Vec<(u64, String)> {
        let word = |n: u64| {
            let hash = xxh3_64(&[self.content.to_le_bytes(), n.to_le_bytes()].concat());
            format!("w{:x}", hash % 50_000)
        };
        let line = |line: u64| (0..12).map(|n| word(line * 100 + n)).collect::<Vec<_>>().join(" ");
        let mut blocks = vec![
            (1, "The site of examples with a long name".to_owned()),
            (2, "Home About Contact Search Register Login Members Help".to_owned()),
        ];
        if self.is_short {
            blocks.push((3, (0..10).map(word).collect::<Vec<_>>().join(" ")));
        } else {
            blocks.extend((0..12).map(|n| (3, line(n))));
        }
        blocks.push((4, "Copyright by the owner all rights reserved powered by software".to_owned()));
        blocks
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn cases_have_as_many_requests_and_contents_as_those_of_maybedont() {
        for (case, requests, contents) in [
            (Case::ForumRandom, 3_000..=3_700, 1_260..=1_260),
            (Case::ForumAdjacent, 3_000..=3_700, 1_260..=1_260),
            (Case::PathSessions, 1_650..=1_850, 700..=700),
            (Case::Copies, 2_800..=2_800, 700..=700),
            (Case::Tracking, 2_000..=2_200, 700..=700),
            (Case::DecisivePath, 1_900..=2_200, 950..=950),
            (Case::TwoHosts, 1_140..=1_140, 390..=390),
            (Case::SisterHosts, 1_140..=1_140, 390..=390),
            (Case::SiteChange, 2_700..=2_700, 1_800..=1_800),
            (Case::LoginWall, 1_500..=1_500, 1_200..=1_200),
            (Case::WallInTheMiddle, 1_800..=1_800, 1_500..=1_500),
            (Case::WarmUpCopies, 1_500..=1_500, 1_215..=1_215),
            (Case::EndlessSessions, 3_000..=3_000, 8..=8),
            (Case::AllDifferent, 1_500..=1_500, 1_500..=1_500),
            (Case::LoginReturn, 1_200..=1_200, 601..=601),
            (Case::SortSegment, 1_200..=1_200, 650..=950),
            (Case::ManualVersions, 1_500..=1_500, 200..=290),
            (Case::Facets, 2_800..=2_800, 350..=350),
            (Case::FiltersIdle, 4_096..=4_096, 1..=1),
            (Case::FiltersOne, 4_096..=4_096, 2..=2),
            (Case::Spellings, 1_400..=1_400, 700..=700),
            (Case::ShortTexts, 1_200..=1_700, 500..=500),
            (Case::Revisions, 1_800..=1_800, 150..=150),
            (Case::OneEnd, 900..=900, 301..=301),
        ] {
            for seed in [1, 2] {
                let made = case.requests(seed);
                let urls: HashSet<&str> = made.iter().map(|request| request.url.as_str()).collect();
                assert_eq!(urls.len(), made.len(), "{case:?}: each URL once");
                let of_site = made.iter().filter(|request| !request.is_wall);
                let different: HashSet<u64> = of_site.map(|request| request.content).collect();
                assert!(requests.contains(&made.len()), "{case:?}: {} requests", made.len());
                assert!(contents.contains(&different.len()), "{case:?}: {} contents", different.len());
            }
        }
    }

    #[test]
    fn a_seed_gives_the_same_requests_and_another_one_others() {
        let urls = |case: Case, seed| -> Vec<String> {
            case.requests(seed).into_iter().map(|request| request.url.into()).collect()
        };
        for case in Case::ALL {
            assert_eq!(urls(case, 5), urls(case, 5));
            let is_random = !matches!(case, Case::LoginWall | Case::WallInTheMiddle | Case::OneEnd);
            assert_eq!(urls(case, 5) != urls(case, 6), is_random, "{case:?}");
            assert_eq!(Case::of_name(case.name()), Some(case));
        }
    }

    #[test]
    fn hosts_of_a_domain_are_one_site() {
        for (url, site) in [
            ("http://www.p.example/", "p.example"),
            ("http://p.example/", "p.example"),
            ("http://two.h.example/", "h.example"),
            ("http://localhost/", "localhost"),
        ] {
            assert_eq!(CaseRequest::new(url, 0).site(), site);
        }
    }
}
