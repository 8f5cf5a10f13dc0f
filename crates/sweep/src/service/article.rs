//! Articles of orders, read from wherever the order says.

use std::sync::Arc;

use huntsman_detect::copyvio::{Text, Wikitext};

use super::order::ArticleOrder;
use super::reader::{ArticleReader, FetchedArticle, ReadError};
use super::refusal::Refusal;
use super::wiki::{self, Wiki};
use crate::candidates::Subject;

/// A page by its title and its URL; both are empty for a text without a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedPage {
    /// The title; the URL if the page has none.
    pub title: String,
    /// The URL of the page for people.
    pub url: Option<String>,
}

/// The article of an order.
#[derive(Debug)]
pub struct Article {
    /// Its text, links and metadata.
    pub subject: Subject,
    /// The page that it was read from.
    pub page: NamedPage,
    /// The page that redirected to the article.
    pub original: Option<NamedPage>,
}

impl Article {
    /// Reads the article that the order names.
    ///
    /// # Errors
    /// `bad_title` and `bad_oldid` if the wiki has no such page, `timeout`, `bad_article`.
    pub(crate) async fn read(order: ArticleOrder, reader: &ArticleReader) -> Result<Self, Refusal> {
        match order {
            ArticleOrder::Text(text) => Ok(Self {
                subject: Subject::new(Text::new(text)),
                page: NamedPage::default(),
                original: None,
            }),
            ArticleOrder::Page(url) => {
                let name = url.to_string();
                let found = reader.page(url).await.map_err(|error| refusal(&name, &error))?;
                let FetchedArticle { text, title } = Arc::unwrap_or_clone(found);
                let subject = Subject::of_page(name.clone(), text.reading, text.links);
                let title = title.unwrap_or_else(|| name.clone());
                Ok(Self { subject, page: NamedPage { title, url: Some(name) }, original: None })
            }
            ArticleOrder::Wiki { wiki, oldid: Some(oldid), title, .. } => {
                let url = wiki
                    .source_of_revision(oldid)
                    .ok_or_else(|| Refusal::unhandled("the wiki has no address"))?;
                let source = reader.source(url).await;
                let name = title.clone().unwrap_or_else(|| format!("Special:PermanentLink/{oldid}"));
                let source = source.map_err(|error| match error.status {
                    Some(404) => Refusal::new("bad_oldid", format!("the wiki has no revision {oldid}")),
                    _ => refusal(&name, &error),
                })?;
                let page = NamedPage { title: name, url: Some(wiki.revision(oldid)) };
                let mirror_hints = title.map_or_else(Arc::default, |title| wiki.mirror_hints(&title));
                Self::of_source(source, page, None, mirror_hints).await
            }
            ArticleOrder::Wiki { wiki, oldid: None, title, follows } => {
                let title = title.unwrap_or_default();
                let source = source_of(&wiki, &title, reader).await?;
                let page = NamedPage { url: Some(wiki.page(&title)), title };
                match wiki::redirect(&source).filter(|_| follows) {
                    Some(target) => {
                        let source = source_of(&wiki, &target, reader).await?;
                        let hints = wiki.mirror_hints(&target);
                        let led_to = NamedPage { url: Some(wiki.page(&target)), title: target };
                        Self::of_source(source, led_to, Some(page), hints).await
                    }
                    None => {
                        let hints = wiki.mirror_hints(&page.title);
                        Self::of_source(source, page, None, hints).await
                    }
                }
            }
        }
    }

    async fn of_source(
        source: String,
        page: NamedPage,
        original: Option<NamedPage>,
        mirror_hints: Arc<[String]>,
    ) -> Result<Self, Refusal> {
        let read = move || {
            let links = Wikitext::new(&source).links().into_iter().map(str::to_owned).collect();
            (Text::wikitext(&source), links)
        };
        let (text, links) = tokio::task::spawn_blocking(read).await.map_err(Refusal::of_task)?;
        let subject = Subject { url: page.url.clone(), links, mirror_hints, ..Subject::new(text) };
        Ok(Self { subject, page, original })
    }
}

async fn source_of(wiki: &Wiki, title: &str, reader: &ArticleReader) -> Result<String, Refusal> {
    let url = wiki.source_of(title).ok_or_else(|| Refusal::unhandled("the wiki has no address"))?;
    reader.source(url).await.map_err(|error| match error.status {
        Some(404) => Refusal::new("bad_title", format!("the wiki has no page '{title}'")),
        _ => refusal(title, &error),
    })
}

fn refusal(name: &str, error: &ReadError) -> Refusal {
    let code = if error.is_late { "timeout" } else { "bad_article" };
    Refusal::new(code, format!("{name} could not be read: {}", error.why))
}
