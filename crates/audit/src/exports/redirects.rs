//! The map of redirects: where each one ends, for people and for the configuration of servers.

use std::io::Write;
use std::path::Path;

use huntsman_crawler::Result;
use percent_encoding::percent_decode_str;
use url::Url;

use crate::audit::Audit;
use crate::lists::{OF_REDIRECTS, redirect_row};
use crate::tables::{Table, written};

/// A redirect of the site that ends at a page.
struct Redirect {
    from: Url,
    to: String,
}

impl Audit {
    /// Writes `redirects.csv` with all redirects of the site, and of those that end at a page `redirects.nginx.conf` (a map for `$request_uri`) and
    /// `redirects.htaccess` (for Apache's mod_rewrite).
    pub(super) fn write_redirects(&self, directory: &Path) -> Result<()> {
        let mut table = Table::with_columns(&directory.join("redirects.csv"), &OF_REDIRECTS)?;
        let mut redirects: Vec<Redirect> = Vec::new();
        self.each_redirect(&mut |record, landing| {
            table.row(&redirect_row(record, &landing))?;
            if let (true, Some(to), Ok(from)) = (landing.is_well, landing.url, Url::parse(&record.url)) {
                redirects.push(Redirect { from, to });
            }
            Ok(())
        })?;
        table.finish()?;
        written(&directory.join("redirects.nginx.conf"), |file| {
            writeln!(file, "# map $request_uri $redirected {{ include redirects.nginx.conf; }}")?;
            writeln!(file, "# server {{ if ($redirected) {{ return 301 $redirected; }} ... }}")?;
            redirects.iter().try_for_each(|redirect| nginx(redirect, file))
        })?;
        written(&directory.join("redirects.htaccess"), |file| {
            writeln!(file, "RewriteEngine On")?;
            redirects.iter().try_for_each(|redirect| apache(redirect, file))
        })
    }
}

fn nginx(redirect: &Redirect, file: &mut impl Write) -> Result<()> {
    let from = &redirect.from[url::Position::BeforePath..url::Position::AfterQuery];
    // A `$` would begin a variable, and cannot be escaped.
    if from.contains('$') || redirect.to.contains('$') {
        return Ok(writeln!(file, "# left out, because nginx reads $ as a variable: {from}")?);
    }
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    Ok(writeln!(file, "\"{}\" \"{}\";", quoted(from), quoted(&redirect.to))?)
}

fn apache(redirect: &Redirect, file: &mut impl Write) -> Result<()> {
    // Apache compares paths after decoding, and without the slash before them.
    let path = percent_decode_str(redirect.from.path().trim_start_matches('/')).decode_utf8();
    let Some(path) = path.ok().filter(|path| !path.contains(char::is_control)) else {
        return Ok(writeln!(file, "# left out, because its path is no text: {}", redirect.from.path())?);
    };
    if let Some(query) = redirect.from.query() {
        writeln!(file, "RewriteCond %{{QUERY_STRING}} \"^{}$\"", pattern(query))?;
    } else {
        writeln!(file, "RewriteCond %{{QUERY_STRING}} \"^$\"")?;
    }
    let to = redirect.to.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$").replace('%', "\\%");
    // Without QSD the target would get the query of the source.
    Ok(writeln!(file, "RewriteRule \"^{}$\" \"{to}\" [R=301,L,NE,QSD]", pattern(&path))?)
}

/// A regular expression between double quotes that matches just this text.
fn pattern(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, '/' | '-' | '_' | '=' | '&') => {
                out.extend(['\\', c]);
            }
            c => out.push(c),
        }
    }
    out
}
