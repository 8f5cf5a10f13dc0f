//! The shell: a page, what was tried on it, and the commands.

use std::fmt;
use std::path::{Path, PathBuf};

use huntsman_crawler::robots::{Meaning, PathVerdict, Robots, product_token};
use huntsman_crawler::terminal::escape;
use huntsman_crawler::{CrawlClient, Error, Fingerprinter, Form, Page, Request, Result, human_bytes, meta};
use huntsman_middleware::{Exchange, Expectation, Fixture, RobotsSettings};
use regex::Regex;
use url::Url;

use crate::command::{Command, Complaint, completions, help};
use crate::derive;
use crate::tried::{Language, Tried, invalid, named};
use crate::view::view;

/// Number of values and links that are shown, unless the command `limit` says otherwise.
const SHOWN: usize = 50;

/// Length of a shown value in characters.
const LENGTH: usize = 500;

/// Number of queries that are kept for `derive`.
const KEPT: usize = 200;

/// Says what a setting has as its value and where that comes from, or lists all settings.
type TellSettings = Box<dyn Fn(Option<&str>) -> Result<String>>;

/// Says what the callback of a spider gives for a page.
type CallSpider = Box<dyn Fn(&Page) -> Result<Expectation>>;

/// Says what to do about a reason why a page was not fetched.
type Advise = fn(&str, &Url) -> String;

/// What the shell stands in: the crawl that fetches its pages, and what the program around it knows.
pub struct Surroundings {
    client: CrawlClient,
    fixtures: PathBuf,
    settings: Option<TellSettings>,
    names_of_settings: Vec<String>,
    spider: Option<CallSpider>,
    advise: Advise,
}

impl Surroundings {
    /// Pages are fetched by this client. For work on a page its settings should let every status and every kind of content pass
    /// (`httperror_allow_all`, `download_binary`). Fixtures go to the folder `fixtures`.
    pub fn new(client: CrawlClient) -> Self {
        let fixtures = PathBuf::from("fixtures");
        let advise = |_: &str, _: &Url| String::new();
        Self { client, fixtures, settings: None, names_of_settings: Vec::new(), spider: None, advise }
    }

    /// Saves fixtures in this folder, which is made when it is needed.
    pub fn fixtures(mut self, folder: impl Into<PathBuf>) -> Self {
        self.fixtures = folder.into();
        self
    }

    /// Answers the command `settings`: lists all settings for `None`, and explains one otherwise. The names are completed.
    pub fn settings(
        mut self,
        names: Vec<String>,
        tell: impl Fn(Option<&str>) -> Result<String> + 'static,
    ) -> Self {
        self.names_of_settings = names;
        self.settings = Some(Box::new(tell));
        self
    }

    /// Adds advice to the message about a page that was not fetched, by the reason and the URL.
    pub fn advice(mut self, advise: fn(&str, &Url) -> String) -> Self {
        self.advise = advise;
        self
    }

    /// Answers the command `parse`, and writes expectations of fixtures that are saved.
    pub fn spider(mut self, call: impl Fn(&Page) -> Result<Expectation> + 'static) -> Self {
        self.spider = Some(Box::new(call));
        self
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("fixtures", &self.fixtures).finish_non_exhaustive()
    }
}

/// What a command gives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// Lines for people.
    Text(String),
    /// The values that were found, all of them, as they stand on the page.
    Values(Vec<String>),
    /// The shell ends.
    End,
}

/// A page to try things on. Each line is a command; `help` lists them.
#[derive(Debug)]
pub struct Shell {
    surroundings: Surroundings,
    page: Option<Page>,
    tried: Vec<Tried>,
    /// The query whose values `re` reads.
    last: Option<Tried>,
    limit: usize,
}

impl Reply {
    /// The reply as lines for a terminal. Values have numbers, at most `limit` are shown, each in one line and cut to 500 characters; what is
    /// cut is told. Nothing in it can steer a terminal.
    pub fn lines(&self, limit: usize) -> String {
        match self {
            Self::Text(text) => huntsman_crawler::terminal::escape_document(text).into_owned(),
            Self::Values(values) => numbered(values, limit),
            Self::End => String::new(),
        }
    }
}

fn numbered(values: &[String], limit: usize) -> String {
    let shown =
        values.iter().take(limit).enumerate().map(|(at, value)| format!("{at:>4}  {}", in_line(value)));
    let mut lines: Vec<String> = shown.collect();
    if values.len() > limit {
        lines.push(format!("      {} more; `limit {}` shows them", values.len() - limit, values.len()));
    }
    lines.join("\n")
}

/// A value in one line, cut to a length.
fn in_line(value: &str) -> String {
    match value.char_indices().nth(LENGTH) {
        None => escape(value).into_owned(),
        Some((at, _)) => format!("{}… ({} characters)", escape(&value[..at]), value.chars().count()),
    }
}

impl Shell {
    /// A shell without a page.
    pub fn new(surroundings: Surroundings) -> Self {
        Self { surroundings, page: None, tried: Vec::new(), last: None, limit: SHOWN }
    }

    /// Runs a command. An empty line does nothing.
    ///
    /// # Errors
    /// A [`Complaint`]: the line is wrong, nothing was found, or the page could not be fetched. The shell goes on.
    pub async fn run(&mut self, line: &str) -> Result<Reply, Complaint> {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            return Ok(Reply::Text(String::new()));
        }
        let (command, argument) = Command::of(line)?;
        match command {
            Command::Css => self.query(Language::Css, argument),
            Command::XPath => self.query(Language::XPath, argument),
            Command::Json if argument.is_empty() => self.body_as_json(),
            Command::Json => self.query(Language::Json, argument),
            Command::Re => self.re(argument),
            Command::Fetch => self.open(argument).await,
            Command::Follow => self.follow(argument).await,
            Command::Robots => self.robots(argument).await,
            Command::Links => self.links(argument),
            Command::Form => self.form(argument),
            Command::Headers => self.page().map(|page| Reply::Text(headers(page))),
            Command::Page => self.page().map(|page| Reply::Text(summary(page))),
            Command::Text => self.page().map(|page| Reply::Text(page.text().to_owned())),
            Command::View => self.view(),
            Command::Settings => self.settings(argument),
            Command::Parse => self.parse(argument),
            Command::Save => self.save(argument).await,
            Command::Derive => self.derive(argument),
            Command::Forget => self.forget(argument),
            Command::Limit => self.set_limit(argument),
            Command::Help => Ok(Reply::Text(help())),
            Command::Exit => Ok(Reply::End),
        }
    }

    /// Number of values that are shown.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// What may stand at the end of a line in place of its last words: where these begin, in bytes, and the candidates.
    pub fn completions(&self, line: &str) -> (usize, Vec<String>) {
        completions(line, &self.surroundings.names_of_settings)
    }

    pub(crate) fn names_of_settings(&self) -> &[String] {
        &self.surroundings.names_of_settings
    }

    fn page(&self) -> Result<&Page, Complaint> {
        self.page.as_ref().ok_or_else(|| Complaint::usage("there is no page yet: fetch URL|FILE"))
    }

    /// Fetches a page, or reads a file of this machine.
    async fn open(&mut self, what: &str) -> Result<Reply, Complaint> {
        if !what.contains("://") && Path::new(what).is_file() {
            let page = Fixture::file(what).map_err(Complaint::of)?.page();
            return Ok(self.show(page));
        }
        let url = huntsman_crawler::parse_web_url(what).map_err(|error| match what.contains("://") {
            true => Complaint::usage(error.to_string()),
            false => Complaint::usage(format!("{}: neither a file nor a URL", escape(what))),
        })?;
        self.fetch(Request::get(url)).await
    }

    async fn fetch(&mut self, request: Request) -> Result<Reply, Complaint> {
        // The person at the shell chose the address; it need not be among the domains of a spider.
        let request = request.with_meta(meta::ALLOW_OFFSITE, true);
        let url = request.url.clone();
        let fetched = self.surroundings.client.fetch_page(request).await;
        let page = fetched.map_err(|error| {
            let reason = error.dropped().map_or(String::new(), |dropped| dropped.why());
            Complaint::of(format!("{error}{}", (self.surroundings.advise)(&reason, &url)))
        })?;
        Ok(self.show(page))
    }

    fn show(&mut self, page: Page) -> Reply {
        let reply = Reply::Text(summary(&page));
        self.page = Some(page);
        self.last = None;
        reply
    }

    fn query(&mut self, language: Language, argument: &str) -> Result<Reply, Complaint> {
        let (query, name) = named(argument);
        let page = self.page()?;
        let found = language.values(page, query).map_err(|error| invalid(query, &error))?;
        let is_address = |value: &String| page.join(value.trim()).is_some();
        let are_urls = reads_addresses(language, query) && !found.is_empty() && found.iter().all(is_address);
        let tried = Tried {
            language,
            query: query.to_owned(),
            name: name.map(str::to_owned),
            re: None,
            found: found.clone(),
            are_urls,
        };
        self.keep(tried.clone());
        self.last = Some(tried);
        found_values(found, query)
    }

    /// Keeps a query, in the place of an equal one.
    fn keep(&mut self, tried: Tried) {
        let is_same = |other: &Tried| {
            (other.language, &other.query) == (tried.language, &tried.query)
                || (tried.name.is_some() && other.name == tried.name)
        };
        if let Some(at) = self.tried.iter().position(is_same) {
            let name = tried.name.clone().or(self.tried[at].name.take());
            self.tried[at] = Tried { name, ..tried };
            return;
        }
        if self.tried.len() == KEPT {
            self.tried.remove(0);
        }
        self.tried.push(tried);
    }

    /// As the key `re` of an item: of each match its first group, or all of it if there is none.
    fn re(&mut self, pattern: &str) -> Result<Reply, Complaint> {
        let regex = Regex::new(pattern).map_err(|error| Complaint::usage(error.to_string()))?;
        let page = self.page()?;
        let group = usize::from(regex.captures_len() > 1);
        let matches = |text: &str| -> Vec<String> {
            let captures = regex.captures_iter(text);
            captures.filter_map(|captures| Some(captures.get(group)?.as_str().to_owned())).collect()
        };
        let found: Vec<String> = match &self.last {
            None => matches(page.body_text()),
            Some(last) => last.found.iter().flat_map(|value| matches(value)).collect(),
        };
        if let Some(last) = self.last.clone() {
            // The values stay those of the query, so that another expression can be tried on them.
            self.keep(Tried { re: Some(pattern.to_owned()), found: found.clone(), are_urls: false, ..last });
        }
        found_values(found, pattern)
    }

    fn body_as_json(&self) -> Result<Reply, Complaint> {
        let body = self.page()?.json_body().map_err(Complaint::of)?;
        Ok(Reply::Text(format!("{:#}", body.value())))
    }

    /// The links of the page with their anchors.
    fn all_links(page: &Page) -> Vec<(Url, String)> {
        let links =
            page.anchors().filter_map(|link| Some((page.join(link.href)?, link.text.replace('\n', " "))));
        links.collect()
    }

    fn links(&self, part: &str) -> Result<Reply, Complaint> {
        let links = Self::all_links(self.page()?);
        let has = |(url, text): &(Url, String)| url.as_str().contains(part) || text.contains(part);
        let found: Vec<String> = links
            .iter()
            .enumerate()
            .filter(|(_, link)| has(link))
            .map(|(at, (url, text))| format!("{at:>4}  {url}  {}", in_line(text)))
            .collect();
        if found.is_empty() {
            return Err(Complaint::of("there is no such link"));
        }
        let more = found.len().saturating_sub(self.limit);
        let mut lines = found;
        lines.truncate(self.limit);
        if more > 0 {
            lines.push(format!("      {more} more; `limit {}` shows them", more + self.limit));
        }
        Ok(Reply::Text(lines.join("\n")))
    }

    async fn follow(&mut self, argument: &str) -> Result<Reply, Complaint> {
        let links = Self::all_links(self.page()?);
        let number: Option<usize> = argument.parse().ok();
        let Some((url, _)) = number.and_then(|number| links.get(number)) else {
            return Err(Complaint::usage(format!(
                "follow {}: the page has {} links, with numbers from 0; `links` lists them",
                escape(argument),
                links.len()
            )));
        };
        self.fetch(Request::get(url.clone())).await
    }

    fn form(&self, css: &str) -> Result<Reply, Complaint> {
        let page = self.page()?;
        let css = if css.is_empty() { "form" } else { css };
        let matching = page.select(css).map_err(|error| invalid(css, &error))?.len();
        let form = Form::of(page, css).map_err(Complaint::of)?;
        let request = form.request().map_err(Complaint::of)?;
        let mut lines = vec![format!("{} {}", request.method, request.url)];
        lines.extend(form.fields().map(|(name, value)| format!("  {} = {}", in_line(name), in_line(value))));
        if matching > 1 {
            lines.push(format!("{matching} elements match; a selector names another form: form #search"));
        }
        Ok(Reply::Text(lines.join("\n")))
    }

    async fn robots(&mut self, path: &str) -> Result<Reply, Complaint> {
        let page = self.page()?;
        let path = if path.is_empty() { page.url().to_string() } else { path.to_owned() };
        let address = page.url().join("/robots.txt").map_err(Complaint::of)?;
        let settings = self.surroundings.client.handle().context().settings();
        let own = settings.of::<RobotsSettings>().ok().and_then(|own| own.robotstxt_user_agent);
        let agent = own.unwrap_or_else(|| product_token(&settings.user_agent).to_owned());
        let request = Request::get(address.clone())
            .with_meta(meta::DONT_OBEY_ROBOTSTXT, true)
            .with_meta(meta::ALLOW_OFFSITE, true);
        let file = self.surroundings.client.fetch(request).await.map_err(Complaint::of)?;
        let meaning = Meaning::of_status(file.status);
        let robots = Robots::parse(if meaning == Meaning::Parsed { &file.body } else { b"" });
        let verdict = PathVerdict::of(&path, &meaning.rules(&robots, &agent));
        let why = match (&verdict.line, meaning) {
            (Some((number, rule)), _) => format!("line {number}: {rule}"),
            (None, Meaning::Parsed) => "no rule matches".to_owned(),
            (None, _) => format!("{address} answered {}", file.status.as_u16()),
        };
        let said = if verdict.is_allowed { "allowed" } else { "forbidden" };
        Ok(Reply::Text(format!("{said} for {agent}: {} ({why})", escape(&path))))
    }

    fn settings(&self, name: &str) -> Result<Reply, Complaint> {
        let Some(tell) = &self.surroundings.settings else {
            return Err(Complaint::usage("this shell knows no settings"));
        };
        let told = tell(Some(name).filter(|name| !name.is_empty()));
        told.map(|text| Reply::Text(text.trim_end().to_owned()))
            .map_err(|error| Complaint::usage(error.to_string()))
    }

    fn view(&self) -> Result<Reply, Complaint> {
        let opened = view(self.page()?).map_err(Complaint::of)?;
        let path = opened.path.to_string_lossy();
        Ok(Reply::Text(match opened.in_browser {
            true => format!("opened {path}"),
            false => path.into_owned(),
        }))
    }

    fn parse(&self, callback: &str) -> Result<Reply, Complaint> {
        let page = &self.page_for(callback)?;
        let Some(call) = &self.surroundings.spider else {
            return Err(Complaint::usage("there is no spider here: start the shell of a project"));
        };
        let given = call(page).map_err(Complaint::of)?;
        let mut lines = vec![format!("{} items", given.items.len())];
        lines.extend(given.items.iter().take(self.limit).map(|item| format!("  {item}")));
        lines.push(format!("{} requests", given.requests.len()));
        let shown = given.requests.iter().take(self.limit);
        lines.extend(shown.map(|to| format!("  {} {} -> {}", to.method, to.url, escape(&to.callback))));
        if given.items.len().max(given.requests.len()) > self.limit {
            lines.push(format!("only {} of each are shown; `limit NUMBER` changes it", self.limit));
        }
        lines.extend(given.error.map(|error| format!("error: {error}")));
        Ok(Reply::Text(lines.join("\n")))
    }

    /// The page as this callback gets it; with an empty name that of its request.
    fn page_for(&self, callback: &str) -> Result<Page, Complaint> {
        let page = self.page()?;
        let mut request = page.request().clone();
        if !callback.is_empty() {
            request = request.callback(callback);
        }
        Ok(Page::new(request, page.response().clone()))
    }

    async fn save(&self, argument: &str) -> Result<Reply, Complaint> {
        let (name, callback) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
        let is_name = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if !is_name || name.starts_with('.') {
            return Err(Complaint::usage(format!(
                "save fixture {}: a name has letters, digits, - and _ only",
                escape(name)
            )));
        }
        let page = &self.page_for(callback.trim())?;
        let settings = self.surroundings.client.handle().context().settings();
        let saved = || -> Result<Vec<String>> {
            let fingerprinter = Fingerprinter::from_settings(settings)?;
            let exchange = Exchange::new(page.request(), &fingerprinter, page.response());
            let folder = &self.surroundings.fixtures;
            huntsman_files::create_dir_all(folder)
                .map_err(|error| Error::from(error).context(folder.to_string_lossy()))?;
            let path = exchange.write(folder, name)?;
            let mut told = vec![format!("saved {}", path.to_string_lossy())];
            if let Some(call) = &self.surroundings.spider {
                let expectation = call(page)?;
                let (items, requests) = (expectation.items.len(), expectation.requests.len());
                let path = Expectation::path_of(&path);
                expectation.write(&path)?;
                let path = path.to_string_lossy();
                told.push(format!("saved {path}: {items} items and {requests} requests are expected"));
            }
            if !exchange.left_out.is_empty() {
                told.push(format!("left out: {}", exchange.left_out.join(", ")));
            }
            Ok(told)
        };
        saved().map(|told| Reply::Text(told.join("\n"))).map_err(Complaint::of)
    }

    fn derive(&self, name: &str) -> Result<Reply, Complaint> {
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_uppercase())
                && name.chars().all(|c| c.is_ascii_alphanumeric())
        };
        let name = match name {
            "" => "PageItem",
            name if is_name(name) => name,
            name => {
                return Err(Complaint::usage(format!(
                    "derive {}: use the name of a struct, such as Book",
                    escape(name)
                )));
            }
        };
        match self.tried.is_empty() {
            true => Err(Complaint::usage("nothing was tried yet: css h1::text as title")),
            false => Ok(Reply::Text(derive::item(name, &self.tried))),
        }
    }

    fn forget(&mut self, name: &str) -> Result<Reply, Complaint> {
        let before = self.tried.len();
        let is_meant =
            |tried: &Tried| name.is_empty() || tried.name.as_deref() == Some(name) || tried.query == name;
        self.tried.retain(|tried| !is_meant(tried));
        match before - self.tried.len() {
            0 => {
                Err(Complaint::usage(format!("{}: no field has this name, and no query is it", escape(name))))
            }
            forgotten => Ok(Reply::Text(format!("{forgotten} left out of derive"))),
        }
    }

    fn set_limit(&mut self, number: &str) -> Result<Reply, Complaint> {
        match number.parse() {
            Ok(number) if number > 0 => self.limit = number,
            _ => return Err(Complaint::usage(format!("limit {}: use a number above 0", escape(number)))),
        }
        Ok(Reply::Text(String::new()))
    }
}

/// Whether a query asks for attributes that are addresses.
fn reads_addresses(language: Language, query: &str) -> bool {
    match language {
        Language::Css => query.ends_with("::attr(href)") || query.ends_with("::attr(src)"),
        Language::XPath => query.ends_with("/@href") || query.ends_with("/@src"),
        Language::Json => false,
    }
}

fn found_values(found: Vec<String>, query: &str) -> Result<Reply, Complaint> {
    match found.is_empty() {
        true => Err(Complaint::of(format!("nothing on the page matches {}", escape(query)))),
        false => Ok(Reply::Values(found)),
    }
}

/// URL, status, kind, size and title of a page.
fn summary(page: &Page) -> String {
    let response = page.response();
    let kind = response.content_type().unwrap_or_else(|| format!("{:?}", page.kind()).to_lowercase());
    let size = human_bytes(response.body.len() as u64);
    let title = page.title().map_or(String::new(), |title| format!("\n  {}", in_line(title)));
    format!("{}\n  {}, {}, {size}{title}", page.url(), response.status, escape(&kind))
}

fn headers(page: &Page) -> String {
    let response = page.response();
    let line = |(name, value): (&dyn fmt::Display, &[u8])| {
        format!("{name}: {}", escape(&String::from_utf8_lossy(value)))
    };
    let mut lines = vec![format!("{} {}", response.protocol(), response.status)];
    lines.extend(response.headers.iter().map(|(name, value)| line((name, value.as_bytes()))));
    lines.join("\n")
}
