//! An audit of a site, with a rule of one's own.
//!
//! Starts its own site: `cargo run --example audit`.

use huntsman::audit::{AuditedPage, Code, Finding, Findings, Rule, Severity};
use huntsman::prelude::*;
use huntsman_testkit::Site;

/// Every page has to name its author.
struct Author;

const CODES: &[Code] = &[Code::new("house", "author-missing").severity(Severity::Notice)];

impl Rule for Author {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        if !page.metas().any(|meta| meta.name == Some("author")) {
            findings.add(Finding::of("author-missing"));
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let site = Site::builder()
        .page("/", "<title>Moths</title><meta name=author content=Ada><a href=/hawk>Hawk moths</a>")
        .page("/hawk", "<title>Moths</title><img src=/hawk.jpg><a href=/gone>All moths</a>")
        .start()
        .await;

    let audit = huntsman::audit([site.url("/")])
        .rule(Author)
        .set("allow_addresses", vec![format!("127.0.0.1:{}", site.port())])
        // Only these families and codes are judged.
        .options(|options| {
            options.only(["status", "images", "title-duplicate", "house"].map(String::from).to_vec())
        })
        .run()
        .await?;

    for issue in audit.issues.iter() {
        let issue = issue?;
        println!("{:<8} {:<22} {}", issue.severity.name(), issue.code, issue.url);
        for place in &issue.at {
            println!(
                "         line {}, column {} of {}",
                place.line,
                place.column,
                place.page.as_deref().unwrap_or("the page")
            );
        }
    }
    assert_eq!(audit.of("author-missing")?.len(), 1);
    assert_eq!(audit.of("broken-internal-link")?.len(), 1);
    Ok(())
}
