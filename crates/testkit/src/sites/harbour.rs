//! The forum of `huntsman demo`: a few pages with many addresses each, as in real forums, and a mirror that copies
//! them.
//!
//! Every link carries the session id of its page; `start=0` shows the first page again; each topic has a print view,
//! which is linked with tracking parameters; and `post=` shows the page with a post. The mirror has copies of topics,
//! some lightly edited. Nothing is random: two runs serve the same bytes.

use std::fmt::Write as _;

use http::{StatusCode, Uri};

use super::boats::{sentences, title};
use super::page::{self, Page, query};
use super::random::Random;

const BOARDS: usize = 5;
const TOPICS: usize = 60;
const TOPICS_PER_PAGE: usize = 8;
const POSTS_PER_PAGE: usize = 4;
/// Session ids that the forum gives to visitors without one, in turn.
const SESSIONS: [&str; 3] = ["9f3c51d07a", "b26e88f314", "e07ad4c95b"];
const TRACKING: [&str; 2] = ["utm_source=newsletter&utm_medium=mail", "utm_source=feed"];
/// One of this many topics of the mirror is an edited copy; the others are exact copies.
const EDITED_EVERY: usize = 3;

/// The first posts of these topics, written by hand; all other posts are generated.
const WRITTEN: [(usize, &str); 2] = [
    (
        3,
        "We left before dawn because the tide would not wait, and by the time the sun stood over the breakwater I had already lost \
         my hat and most of my confidence. Grandfather steered with two fingers and told me that fear is only the sea asking \
         whether you are paying attention. Past the second buoy the wind went round without warning, the boom swept the thermos \
         overboard, and he laughed so hard that he forgot to be angry. I have crossed that bay a hundred times since, and it has \
         never again looked as wide.",
    ),
    (
        8,
        "If you buy an old wooden boat, do not believe the paint. Take a blunt knife and press it into every plank below the water \
         line, then into the stem, then into the places where somebody has screwed a neat brass plate over nothing in particular. \
         The surveyor who looked at ours found mushrooms behind the galley and a birthday card from 1971 inside the mast step. We \
         bought her all the same, spent two winters under a tarpaulin that smelled of cats, and launched her on the one day in May \
         when it snowed.",
    ),
];

/// The forum and its mirror.
#[derive(Debug)]
pub struct Harbour {
    topics: Vec<Topic>,
    /// `http://host:port` of the original, and (below) of the mirror, if there is one.
    origin: String,
    mirror: Option<String>,
}

#[derive(Debug)]
struct Topic {
    board: usize,
    title: String,
    posts: Vec<String>,
}

impl Topic {
    fn pages(&self) -> usize {
        self.posts.len().div_ceil(POSTS_PER_PAGE)
    }
}

impl Harbour {
    /// A forum that knows the addresses of its two hosts.
    pub fn new(origin: String, mirror: Option<String>) -> Self {
        let topic = |number: usize| {
            let mut random = Random::new(number as u64 * 7_919 + 1);
            let posts = 1 + random.below(2 * POSTS_PER_PAGE);
            let title = title(&mut random);
            let posts = (0..posts)
                .map(|_| {
                    let length = 5 + random.below(5);
                    sentences(&mut random, length)
                })
                .collect();
            Topic { board: number % BOARDS, title, posts }
        };
        let mut topics: Vec<Topic> = (0..TOPICS).map(topic).collect();
        for (number, text) in WRITTEN {
            topics[number].posts[0] = text.to_owned();
        }
        Self { topics, origin, mirror }
    }

    /// An article whose author copied two posts of the forum, replaced a few words, and wrote a sentence in between.
    pub fn essay(&self) -> String {
        let post = |at: usize| edited(&self.topics[WRITTEN[at].0].posts[0]);
        format!(
            "What I remember of my years on the coast. {} Nobody at home believed a word of that when I told it. {}",
            post(0),
            post(1)
        )
    }

    /// The response of the original.
    pub fn answer(&self, request: &Uri) -> Page {
        let session = query(request, "sid").filter(|sid| SESSIONS.contains(sid));
        let start = query(request, "start").and_then(|start| start.parse().ok()).unwrap_or(0);
        match request.path() {
            "/" => self.index(session),
            "/board" => match number(request, "b").filter(|board| *board < BOARDS) {
                Some(board) => self.board(board, start, session),
                None => missing(),
            },
            "/topic" => match number(request, "t").and_then(|topic| Some((topic, self.topics.get(topic)?))) {
                Some((number, topic)) if query(request, "view") == Some("print") => print_view(number, topic),
                Some((number, topic)) => self.topic(number, topic, start, session),
                None => missing(),
            },
            "/goto" => match number(request, "post").filter(|post| post / 100 < TOPICS) {
                Some(post) => {
                    page::redirect(&format!("/topic?t={}&start={}", post / 100, start_of(post % 100)))
                }
                None => missing(),
            },
            "/login" => login(session),
            "/robots.txt" => page::text(StatusCode::OK, "User-agent: *\nDisallow: /login\n"),
            _ => missing(),
        }
    }

    /// The response of the mirror: plain pages with the texts of the original.
    pub fn mirror_answer(&self, request: &Uri) -> Page {
        if request.path() == "/" {
            let mut body = String::from("<h1>Sea stories</h1><p>A collection from all over the web.</p><ul>");
            for (number, topic) in self.topics.iter().enumerate() {
                let _ = write!(body, "<li><a href=\"/story/{number}.html\">{}</a>", topic.title);
            }
            body.push_str("</ul>");
            return page::html(document("Sea stories", &body));
        }
        let name = request.path().strip_prefix("/story/").and_then(|name| name.strip_suffix(".html"));
        let number = name.and_then(|name| name.parse::<usize>().ok());
        match number.and_then(|number| Some((number, self.topics.get(number)?))) {
            Some((number, topic)) => {
                let mut body = format!("<h1>{}</h1>", topic.title);
                for post in topic.posts.iter().take(POSTS_PER_PAGE) {
                    let text = if number % EDITED_EVERY == 0 { edited(post) } else { post.clone() };
                    let _ = write!(body, "<p>{text}</p>");
                }
                body.push_str("<p><a href=\"/\">All stories</a></p>");
                page::html(document(&topic.title, &body))
            }
            None => missing(),
        }
    }

    fn index(&self, session: Option<&str>) -> Page {
        let sid = Some(session.unwrap_or(SESSIONS[0]));
        let mut body = String::from("<h1>Harbour forum</h1><ul>");
        for board in 0..BOARDS {
            let _ =
                write!(body, "<li><a href=\"{}\">Board {board}</a>", link(&format!("/board?b={board}"), sid));
        }
        body.push_str("</ul>");
        if let Some(mirror) = &self.mirror {
            let _ = write!(body, "<p>Friends: <a href=\"{mirror}/\">Sea stories</a></p>");
        }
        page::html(self.page("Harbour forum", &body, sid))
    }

    fn board(&self, board: usize, start: usize, session: Option<&str>) -> Page {
        let topics: Vec<_> =
            self.topics.iter().enumerate().filter(|(_, topic)| topic.board == board).collect();
        let page = start / TOPICS_PER_PAGE;
        let mut body = format!("<h1>Board {board}</h1><table>");
        for (number, topic) in topics.iter().skip(page * TOPICS_PER_PAGE).take(TOPICS_PER_PAGE) {
            let last = topic.posts.len() - 1;
            let _ = write!(
                body,
                "<tr><td><a href=\"{}\">{}</a><td>{} posts<td><a href=\"/goto?post={}\">last post</a>",
                link(&format!("/topic?t={number}"), session),
                topic.title,
                topic.posts.len(),
                number * 100 + last
            );
        }
        body.push_str("</table>");
        pager(
            &mut body,
            &format!("/board?b={board}"),
            topics.len().div_ceil(TOPICS_PER_PAGE),
            TOPICS_PER_PAGE,
            session,
        );
        let _ = write!(body, "<p><a href=\"/attachment?id={board}\">Rules of this board</a></p>");
        page::html(self.page(&format!("Board {board}"), &body, session))
    }

    fn topic(&self, number: usize, topic: &Topic, start: usize, session: Option<&str>) -> Page {
        let page = start / POSTS_PER_PAGE;
        let address = format!("/topic?t={number}");
        let mut body = format!("<h1>{}</h1>", topic.title);
        for (post, text) in topic.posts.iter().enumerate().skip(page * POSTS_PER_PAGE).take(POSTS_PER_PAGE) {
            let _ = write!(body, "<article id=\"p{post}\"><h2>Post {}</h2><p>{text}</p></article>", post + 1);
        }
        pager(&mut body, &address, topic.pages(), POSTS_PER_PAGE, session);
        let _ =
            write!(body, "<p><a href=\"{}\">Print view</a>", link(&format!("{address}&view=print"), session));
        for tracking in TRACKING {
            let _ = write!(body, " <a href=\"{address}&amp;{}\">Share</a>", tracking.replace('&', "&amp;"));
        }
        body.push_str("</p>");
        page::html(self.page(&topic.title, &body, session))
    }

    /// The layout shared by all pages of the forum.
    fn page(&self, title: &str, body: &str, session: Option<&str>) -> String {
        let frame = format!(
            "<header><a href=\"{}\">Harbour forum</a> <a href=\"{}\">Log in</a></header><main>{body}</main>\
             <footer>All about boats. <a href=\"{}/\">Home</a></footer>",
            link("/", session),
            link("/login", session),
            self.origin
        );
        document(title, &frame)
    }
}

fn number(request: &Uri, name: &str) -> Option<usize> {
    query(request, name)?.parse().ok()
}

fn missing() -> Page {
    page::missing(document("Not found", "<h1>Not found</h1>"))
}

/// The address with the session id, escaped for an attribute.
fn link(address: &str, session: Option<&str>) -> String {
    let joint = if address.contains('?') { '&' } else { '?' };
    let with_session = session.map_or_else(|| address.to_owned(), |sid| format!("{address}{joint}sid={sid}"));
    with_session.replace('&', "&amp;")
}

fn start_of(post: usize) -> usize {
    post / POSTS_PER_PAGE * POSTS_PER_PAGE
}

fn pager(body: &mut String, address: &str, pages: usize, per_page: usize, session: Option<&str>) {
    body.push_str("<nav>");
    for page in 0..pages {
        // The first page has such an address, too: a duplicate that nearly every forum has.
        let target = link(&format!("{address}&start={}", page * per_page), session);
        let _ = write!(body, "<a href=\"{target}\">{}</a> ", page + 1);
    }
    body.push_str("</nav>");
}

fn print_view(number: usize, topic: &Topic) -> Page {
    let mut body = format!("<h1>{}</h1>", topic.title);
    for text in &topic.posts {
        let _ = write!(body, "<p>{text}</p>");
    }
    let _ = write!(body, "<p><a href=\"/topic?t={number}\">Back</a></p>");
    page::html(document(&topic.title, &body))
}

/// Gives the next session id, as forums do at a login.
fn login(session: Option<&str>) -> Page {
    let next = match session.and_then(|sid| SESSIONS.iter().position(|known| *known == sid)) {
        Some(at) => SESSIONS[(at + 1) % SESSIONS.len()],
        None => SESSIONS[0],
    };
    let body = format!(
        "<h1>Log in</h1><p>The forum is read-only today.</p><p><a href=\"{}\">Back to the boards</a></p>",
        link("/", Some(next))
    );
    page::html(document("Log in", &body))
}

/// The text with a few words replaced, as by a copier who wants to hide the source.
fn edited(text: &str) -> String {
    let words = text.split(' ').enumerate();
    words.map(|(index, word)| if index % 40 == 17 { "indeed" } else { word }).collect::<Vec<_>>().join(" ")
}

fn document(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head><body>{body}</body></html>\n"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet, VecDeque};

    use super::*;

    fn forum() -> Harbour {
        Harbour::new("http://127.0.0.1:1".into(), Some("http://127.0.0.2:1".into()))
    }

    /// All addresses that links lead to, with their answers.
    fn walk(forum: &Harbour) -> BTreeMap<String, Page> {
        let mut found = BTreeMap::new();
        let mut seen = BTreeSet::from(["/".to_owned()]);
        let mut queue = VecDeque::from(["/".to_owned()]);
        while let Some(target) = queue.pop_front() {
            let answer = forum.answer(&target.parse().unwrap());
            let text = answer.body().clone();
            let hrefs = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
            let to = answer.headers().get(http::header::LOCATION).map(|to| to.to_str().unwrap().to_owned());
            let next: Vec<_> = hrefs.map(|href| href.replace("&amp;", "&")).chain(to).collect();
            queue.extend(next.into_iter().filter(|href| href.starts_with('/') && seen.insert(href.clone())));
            found.insert(target, answer);
        }
        found
    }

    #[test]
    fn few_contents_hide_behind_many_addresses_and_the_site_is_finite() {
        let found = walk(&forum());
        let is_topic = |(target, _): &(&String, &Page)| target.starts_with("/topic");
        let topics: Vec<_> = found.iter().filter(is_topic).collect();
        // Two views of one page differ only in addresses.
        let plain = |answer: &Page| {
            answer
                .body()
                .split('<')
                .map(|part| part.split_once('>').map_or(part, |(_, text)| text))
                .collect::<String>()
        };
        let contents: BTreeSet<_> = topics.iter().map(|(_, answer)| plain(answer)).collect();
        assert!(contents.len() >= 120, "{}", contents.len());
        assert!(topics.len() > 4 * contents.len(), "{} addresses, {} contents", topics.len(), contents.len());
        assert!(found.len() < 2_500, "{}", found.len());
        assert!(found.values().any(|answer| answer.status() == 404));
        assert!(found.values().any(|answer| answer.status() == 301));
    }

    #[test]
    fn the_mirror_copies_some_topics_exactly_and_edits_others() {
        let forum = forum();
        let story = |number: usize| {
            forum.mirror_answer(&format!("/story/{number}.html").parse().unwrap()).into_body()
        };
        assert!(story(1).contains(&forum.topics[1].posts[0]));
        assert!(!story(0).contains(&forum.topics[0].posts[0]));
        assert!(story(0).contains("indeed"));
    }

    #[test]
    fn two_forums_serve_the_same_bytes() {
        let bytes = |forum: &Harbour| {
            let answers = walk(forum).into_iter();
            let parts = answers.map(|(target, answer)| (target, answer.into_parts()));
            parts.map(|(target, (head, body))| (target, head.status, head.headers, body)).collect::<Vec<_>>()
        };
        assert_eq!(bytes(&forum()), bytes(&forum()));
    }
}
