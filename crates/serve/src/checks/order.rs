//! Reads orders from the parameters of a request.

use huntsman_detect::copyvio::Degree;
use huntsman_sweep::service::{ArticleOrder, CompareOrder, Refusal, SearchOrder, SourceOrder, Wiki, Wikis};
use url::Url;

use super::params::Params;

/// Maximum size of a text in a request, in bytes.
pub(crate) const MOST_TEXT: usize = 2 << 20;
/// Maximum number of sources that a request may name.
const MOST_SOURCES: usize = 200;

/// Reads `article` (the text), `article_url`, or `project`, `lang` and `title` or `oldid`.
///
/// # Errors
/// `missing_params`, `bad_site`, `bad_title`, `bad_oldid`, `bad_uri`, `bad_text`.
fn article(params: &Params, wikis: &Wikis) -> Result<ArticleOrder, Refusal> {
    if let Some(text) = params.get("article") {
        return text_of(text, "article").map(ArticleOrder::Text);
    }
    if let Some(url) = params.get("article_url") {
        let url = web_address(url)?;
        let url = Url::parse(&url).map_err(|error| Refusal::new("bad_uri", format!("'{url}': {error}")))?;
        return Ok(ArticleOrder::Page(url));
    }
    let (Some(project), Some(lang)) = (params.get("project"), params.get("lang")) else {
        return Err(missing());
    };
    let oldid = params.get("oldid");
    let title = params.get("title");
    if oldid.is_none() && title.is_none() {
        return Err(missing());
    }
    let wiki = wikis.find(project, lang).ok_or_else(|| {
        Refusal::new(
            "bad_site",
            format!("there is no wiki of the project '{project}' in the language '{lang}'; see action=sites"),
        )
    })?;
    let oldid = match oldid.map(|oldid| oldid.trim().parse::<u64>()) {
        None => None,
        Some(Ok(oldid)) if oldid > 0 => Some(oldid),
        Some(_) => return Err(Refusal::new("bad_oldid", "'oldid' is the number of a revision")),
    };
    let title = match title.map(|text| (text, Wiki::title(text))) {
        None => None,
        Some((_, Some(title))) => Some(title),
        // The revision id identifies the page.
        Some((_, None)) if oldid.is_some() => None,
        Some((text, None)) => {
            return Err(Refusal::new("bad_title", format!("'{text}' is no title of a page")));
        }
    };
    Ok(ArticleOrder::Wiki { wiki, title, oldid, follows: !params.flag("noredirect", false) })
}

/// Reads the article, and `url` or `text`.
///
/// # Errors
/// Those of the article; `no_url`, `bad_uri`, `bad_text`, `bad_degree`.
pub(crate) fn compare(params: &Params, wikis: &Wikis) -> Result<CompareOrder, Refusal> {
    let article = article(params, wikis)?;
    let source = match (params.get("text"), params.get("url")) {
        (Some(text), _) => SourceOrder::Text(text_of(text, "text")?),
        (None, Some(url)) => SourceOrder::Page(web_address(url)?),
        (None, None) => {
            return Err(Refusal::new("no_url", "'url' (or 'text') is what the article is compared with"));
        }
    };
    let wrong = || Refusal::new("bad_degree", "'degree' is a whole number from 1 to 16, or 0 for 5");
    let degree = match params.get("degree").map(|degree| degree.trim().parse::<usize>()) {
        None | Some(Ok(0)) => Degree::default(),
        Some(Ok(words)) => Degree::new(words).map_err(|_| wrong())?,
        Some(Err(_)) => return Err(wrong()),
    };
    Ok(CompareOrder { article, source, degree })
}

/// Reads the article, `use_engine`, `use_links`, `source` (our own, repeatable), `nocache` and `noskip`.
///
/// # Errors
/// Those of the article, and `bad_uri`.
pub(crate) fn search(params: &Params, wikis: &Wikis) -> Result<SearchOrder, Refusal> {
    let article = article(params, wikis)?;
    let named = params.all("source").flat_map(str::split_whitespace).take(MOST_SOURCES);
    let sources = named.map(web_address).collect::<Result<Vec<_>, _>>()?;
    Ok(SearchOrder {
        article,
        use_engine: params.flag("use_engine", true),
        use_links: params.flag("use_links", true),
        sources,
        nocache: params.flag("nocache", false),
        noskip: params.flag("noskip", false),
    })
}

fn missing() -> Refusal {
    Refusal::new(
        "missing_params",
        "the article is named by 'project', 'lang', and 'title' or 'oldid'; or by 'article_url'; or it is 'article'",
    )
}

fn text_of(text: &str, name: &str) -> Result<String, Refusal> {
    if text.len() > MOST_TEXT {
        return Err(Refusal::new("bad_text", format!("'{name}' has more than {MOST_TEXT} bytes")));
    }
    Ok(text.to_owned())
}

/// Checks a web address, and puts `http://` in front if it has no scheme.
///
/// # Errors
/// `bad_uri`: the address has another scheme, or begins with `:` or `/`.
fn web_address(text: &str) -> Result<String, Refusal> {
    let text = text.trim();
    let bad = |why: &str| {
        Refusal::new("bad_uri", format!("'{}': {why}", text.chars().take(200).collect::<String>()))
    };
    if text.starts_with([':', '/']) {
        return Err(bad("it has no scheme"));
    }
    // A host with a port looks like a scheme with a path.
    let has_scheme = text.contains("://")
        || text.split_once(':').is_some_and(|(scheme, rest)| {
            scheme.bytes().all(|byte| byte.is_ascii_alphabetic())
                && !rest.starts_with(|c: char| c.is_ascii_digit())
        });
    let address = if has_scheme { text.to_owned() } else { format!("http://{text}") };
    match Url::parse(&address) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(address),
        Ok(url) => Err(bad(&format!("{}: is not fetched, http and https are", url.scheme()))),
        Err(error) => Err(bad(&error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(query: &str) -> Result<CompareOrder, &'static str> {
        let params = Params::read(query, None, b"").unwrap();
        compare(&params, &Wikis::default()).map_err(|refusal| refusal.code)
    }

    #[test]
    fn what_is_wrong_with_parameters_has_the_codes_of_the_reference() {
        for (query, code) in [
            ("url=a.example", "missing_params"),
            ("project=wikipedia&lang=en&url=a.example", "missing_params"),
            ("project=nothing&lang=en&title=x&url=a.example", "bad_site"),
            ("project=wikipedia&lang=e/n&title=x&url=a.example", "bad_site"),
            ("project=wikipedia&lang=en&title=%5B%5B&url=a.example", "bad_title"),
            ("project=wikipedia&lang=en&oldid=12x&url=a.example", "bad_oldid"),
            ("project=wikipedia&lang=en&oldid=0&url=a.example", "bad_oldid"),
            ("project=wikipedia&lang=en&title=x", "no_url"),
            ("article=x&url=ftp://a.example/", "bad_uri"),
            ("article=x&url=mailto:a@b.example", "bad_uri"),
            ("article=x&url=//a.example/", "bad_uri"),
            ("article=x&url=http://", "bad_uri"),
            ("article_url=javascript:alert(1)&url=a.example", "bad_uri"),
            ("article=x&url=a.example&degree=17", "bad_degree"),
            ("article=x&url=a.example&degree=five", "bad_degree"),
        ] {
            assert_eq!(compared(query).unwrap_err(), code, "{query}");
        }
    }

    #[test]
    fn an_address_without_a_scheme_is_one_of_the_web() {
        for (url, address) in [
            ("a.example/x", "http://a.example/x"),
            ("localhost:8000/x", "http://localhost:8000/x"),
            (" HTTPS://a.example", "HTTPS://a.example"),
        ] {
            let params = Params::read(
                "article=x",
                Some("application/json"),
                format!("{{\"url\": \"{url}\"}}").as_bytes(),
            )
            .unwrap();
            let order = compare(&params, &Wikis::default()).unwrap();
            assert_eq!(order.source, SourceOrder::Page(address.to_owned()));
        }
        assert_eq!(compared("article=x&text=y&degree=0").unwrap().degree, Degree::default());
    }

    #[test]
    fn the_number_of_a_revision_wins_over_a_title() {
        let order =
            compared("project=wikipedia&lang=en&oldid=5&title=%5B&url=a.example&noredirect=1").unwrap();
        let ArticleOrder::Wiki { title, oldid, follows, .. } = order.article else { panic!("{order:?}") };
        assert_eq!((title, oldid, follows), (None, Some(5), false));
    }

    #[test]
    fn texts_have_a_limit() {
        let body = serde_json::json!({"article": "x".repeat(MOST_TEXT + 1), "text": "y"}).to_string();
        let params = Params::read("", Some("application/json"), body.as_bytes()).unwrap();
        assert_eq!(compare(&params, &Wikis::default()).unwrap_err().code, "bad_text");
    }
}
