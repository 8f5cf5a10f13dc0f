//! The files of a new project and of a new spider. Each is a program text that compiles as it stands (the tests compile and run them); a copy has
//! other names in the places of those here.

/// A file of a new project: its path in the project, and its text.
pub(crate) const PROJECT: [(&str, &str); 11] = [
    ("Cargo.toml", include_str!("../templates/project/Cargo.toml.txt")),
    ("README.md", include_str!("../templates/project/README.md")),
    ("huntsman.toml", include_str!("../templates/project/huntsman.toml")),
    (".gitignore", include_str!("../templates/project/gitignore")),
    (".github/workflows/ci.yml", include_str!("../templates/project/ci.yml")),
    ("src/main.rs", include_str!("../templates/project/src/main.rs")),
    ("src/spiders/mod.rs", include_str!("../templates/project/src/spiders/mod.rs")),
    ("src/spiders/quotes.rs", include_str!("../templates/project/src/spiders/quotes.rs")),
    (
        "fixtures/quotes/first.fixture.json",
        include_str!("../templates/project/fixtures/quotes/first.fixture.json"),
    ),
    ("fixtures/quotes/first.body.html", include_str!("../templates/project/fixtures/quotes/first.body.html")),
    (
        "fixtures/quotes/first.expected.json",
        include_str!("../templates/project/fixtures/quotes/first.expected.json"),
    ),
];

/// The name of a project in its templates.
pub(crate) const PROJECT_NAME: &str = "project-name";
/// What stands for the version or the path of Huntsman.
pub(crate) const HUNTSMAN: &str = "HUNTSMAN-SOURCE";

/// The kinds of spiders that `genspider` makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Template {
    /// Reads every page that links lead to.
    #[default]
    Basic,
    /// Follows links by rules.
    Rules,
    /// Reads the pages that sitemaps name.
    Sitemap,
    /// Reads an XML feed.
    Xmlfeed,
    /// Reads a CSV feed.
    Csvfeed,
    /// Reads JSON, page by page.
    Api,
    /// A spider without code: a file of TOML.
    Toml,
}

impl Template {
    fn text(self) -> &'static str {
        match self {
            Self::Basic => include_str!("../templates/spiders/basic.rs"),
            Self::Rules => include_str!("../templates/spiders/rules.rs"),
            Self::Sitemap => include_str!("../templates/spiders/sitemap.rs"),
            Self::Xmlfeed => include_str!("../templates/spiders/xmlfeed.rs"),
            Self::Csvfeed => include_str!("../templates/spiders/csvfeed.rs"),
            Self::Api => include_str!("../templates/spiders/api.rs"),
            Self::Toml => include_str!("../templates/spiders/spider.toml"),
        }
    }

    /// The text of a spider with this name, type and start URL.
    pub(crate) fn of_spider(self, name: &str, url: &url::Url) -> String {
        let address = url.as_str();
        let host = url.host_str().unwrap_or("");
        self.text()
            .replace("https://example.org/", address)
            .replace("\"example.org\"", &format!("\"{host}\""))
            .replace("\"template\"", &format!("\"{name}\""))
            .replace("Template", &type_name(name))
    }
}

/// The name of a type for a spider: `my-shop` is `MyShop`.
fn type_name(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    };
    name.split(['-', '_']).map(word).collect()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn nothing_of_a_template_is_left_in_a_spider() {
        let url = url::Url::parse("http://127.0.0.1:8000/list?page=1").unwrap();
        for template in Template::value_variants() {
            let text = template.of_spider("my-shop", &url);
            assert!(text.contains("http://127.0.0.1:8000/list?page=1"), "{template:?}: {text}");
            let code = text.split("#[cfg(test)]").next().unwrap();
            assert!(
                !code.contains("emplate") && !code.contains("https://example.org"),
                "{template:?}: {code}"
            );
        }
        let text = Template::Basic.of_spider("my-shop", &url);
        assert!(text.contains("pub struct MyShop {") && text.contains("MyShopItem"), "{text}");
    }
}
