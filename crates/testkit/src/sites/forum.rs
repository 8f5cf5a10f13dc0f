//! A small forum whose pages have many addresses: technical duplicates for which the right answer is known.

use url::Url;

use super::random::Random;
use super::words::{prose, word};
use crate::answer::Answer;
use crate::record::SiteRequest;
use crate::site::{Site, SiteBuilder};

const BOARDS: usize = 3;
const POSTS_PER_PAGE: usize = 5;
const TOPICS_PER_PAGE: usize = 8;

/// The shape of a forum: which addresses exist and which of them are one page.
#[derive(Clone, Copy, Debug)]
pub struct Forum {
    topics: usize,
}

/// A forum with this number of topics in 3 boards.
///
/// | page | address | same content under |
/// |---|---|---|
/// | list of boards | `/` | `/index.php`, any `sid` |
/// | board | `/viewforum.php?f=1&start=0` | without `start=0`, any `sid` |
/// | topic | `/viewtopic.php?t=4&start=5` | with `f=`, without `start=0`, any `sid`; `p=` of one of its posts |
/// | topic for print | `/viewtopic.php?t=4&view=print` | not the same: a page of its own |
/// | user | `/memberlist.php?u=2` | any `sid` |
///
/// A page that is requested without a `sid` has links with a fresh one, and a page requested with one keeps it in its
/// links, as forums do for visitors without cookies. [`Forum::content`] tells which addresses show one page.
pub fn forum(topics: usize) -> SiteBuilder {
    let forum = Forum { topics };
    let sids = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(1));
    let page = move |request: &SiteRequest| {
        let Some(shown) = forum.shown(request.path(), |name| request.param(name)) else {
            return Answer::status(404);
        };
        let sid = request.param("sid").unwrap_or_else(|| {
            let fresh = sids.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            format!("{:016x}", Random::new(fresh).next())
        });
        Answer::html(forum.html(&shown, &sid))
    };
    Site::builder().robots("User-agent: *\nDisallow: /posting.php\n").route("/*", page)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Shown {
    Index,
    Board { board: usize, start: usize },
    Topic { topic: usize, start: usize },
    Print { topic: usize },
    User { user: usize },
}

impl Forum {
    /// The forum that [`forum`] serves with this number of topics.
    pub fn new(topics: usize) -> Self {
        Self { topics }
    }

    /// A name for the content at a URL: two URLs with equal names show the same page. `None` if there is no such
    /// page.
    pub fn content(&self, url: &Url) -> Option<String> {
        let param =
            |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        self.shown(url.path(), param).map(|shown| format!("{shown:?}"))
    }

    /// Number of different pages.
    pub fn pages(&self) -> usize {
        let lists = (0..BOARDS).map(|board| self.topics_of(board).len().div_ceil(TOPICS_PER_PAGE).max(1));
        let topics = (0..self.topics).map(|topic| posts(topic).div_ceil(POSTS_PER_PAGE) + 1);
        1 + lists.sum::<usize>() + topics.sum::<usize>() + self.users()
    }

    fn users(&self) -> usize {
        self.topics.min(6)
    }

    fn topics_of(&self, board: usize) -> Vec<usize> {
        (0..self.topics).filter(|topic| topic % BOARDS == board).collect()
    }

    fn shown(&self, path: &str, param: impl Fn(&str) -> Option<String>) -> Option<Shown> {
        let number = |name: &str| param(name).and_then(|value| value.parse::<usize>().ok());
        let start = number("start").unwrap_or(0);
        match path {
            "/" | "/index.php" => Some(Shown::Index),
            "/viewforum.php" => {
                let board = number("f").filter(|board| *board < BOARDS)?;
                let fits =
                    start == 0 || (start % TOPICS_PER_PAGE == 0 && start < self.topics_of(board).len());
                fits.then_some(Shown::Board { board, start })
            }
            "/viewtopic.php" => {
                let (topic, start) = match number("p") {
                    Some(post) => (post / 100, (post % 100) / POSTS_PER_PAGE * POSTS_PER_PAGE),
                    None => (number("t")?, start),
                };
                if topic >= self.topics {
                    None
                } else if param("view").as_deref() == Some("print") {
                    Some(Shown::Print { topic })
                } else {
                    let fits = start % POSTS_PER_PAGE == 0 && start < posts(topic);
                    fits.then_some(Shown::Topic { topic, start })
                }
            }
            "/memberlist.php" => {
                number("u").filter(|user| *user < self.users()).map(|user| Shown::User { user })
            }
            _ => None,
        }
    }

    fn html(&self, shown: &Shown, sid: &str) -> String {
        let mut out = String::from(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Forum</title>",
        );
        out.push_str(&format!("</head><body><p><a href=\"/index.php?sid={sid}\">Index</a></p>\n"));
        match shown {
            Shown::Index => {
                for board in 0..BOARDS {
                    let about = prose(&mut Random::new(board as u64 + 900), 30);
                    out.push_str(&format!(
                        "<p><a href=\"/viewforum.php?f={board}&amp;sid={sid}\">Board {board}</a> {about}</p>\n"
                    ));
                }
            }
            Shown::Board { board, start } => {
                let topics = self.topics_of(*board);
                out.push_str(&format!("<h1>Board {board}, from {start}</h1>\n"));
                for topic in topics.iter().skip(*start).take(TOPICS_PER_PAGE) {
                    let last = topic * 100 + posts(*topic) - 1;
                    out.push_str(&format!(
                        "<p><a href=\"/viewtopic.php?f={board}&amp;t={topic}&amp;sid={sid}\">{}</a> {} \
                         <a href=\"/viewtopic.php?p={last}&amp;sid={sid}#p{last}\">last post</a></p>\n",
                        title(*topic),
                        prose(&mut Random::new(*topic as u64 + 70), 12)
                    ));
                }
                for at in (0..topics.len()).step_by(TOPICS_PER_PAGE) {
                    out.push_str(&format!(
                        "<a href=\"/viewforum.php?f={board}&amp;start={at}&amp;sid={sid}\">{}</a> ",
                        at / TOPICS_PER_PAGE + 1
                    ));
                }
            }
            Shown::Topic { topic, start } => {
                out.push_str(&format!(
                    "<h1>{}</h1><a href=\"/viewtopic.php?t={topic}&amp;view=print&amp;sid={sid}\">Print</a>\n",
                    title(*topic)
                ));
                for post in *start..posts(*topic).min(start + POSTS_PER_PAGE) {
                    out.push_str(&self.post(*topic, post, Some(sid)));
                }
                for at in (0..posts(*topic)).step_by(POSTS_PER_PAGE) {
                    out.push_str(&format!(
                        "<a href=\"/viewtopic.php?t={topic}&amp;start={at}&amp;sid={sid}\">{}</a> ",
                        at / POSTS_PER_PAGE + 1
                    ));
                }
            }
            Shown::Print { topic } => {
                out.push_str(&format!("<h1>{} (print)</h1>\n", title(*topic)));
                (0..posts(*topic)).for_each(|post| out.push_str(&self.post(*topic, post, None)));
            }
            Shown::User { user } => {
                let about = prose(&mut Random::new(*user as u64 + 4_000), 80);
                out.push_str(&format!("<h1>User {user}</h1><p>{about}</p>\n"));
            }
        }
        out.push_str("</body></html>\n");
        out
    }

    fn post(&self, topic: usize, post: usize, sid: Option<&str>) -> String {
        let text = prose(&mut Random::new((topic * 100 + post) as u64 + 50_000), 60);
        let user = (topic + post) % self.users().max(1);
        match sid {
            Some(sid) => format!(
                "<div class=\"post\" id=\"p{0}\"><a href=\"/memberlist.php?u={user}&amp;sid={sid}\">User {user}</a> \
                 <a href=\"/viewtopic.php?p={0}&amp;sid={sid}#p{0}\">#{post}</a><p>{text}</p></div>\n",
                topic * 100 + post
            ),
            None => format!("<p>User {user}: {text}</p>\n"),
        }
    }
}

/// Number of posts in a topic, at most 17: the id of a post is `topic * 100 + post`.
fn posts(topic: usize) -> usize {
    1 + (topic * 7) % 17
}

fn title(topic: usize) -> String {
    let mut random = Random::new(topic as u64 + 300);
    format!("Topic {topic}: {} {}", word(&mut random), word(&mut random))
}
