//! What scripts change of pages; these cases need a browser, and are a site of their own.

use huntsman_crawler::FetchErrorKind;

use super::{Builder, Draft};
use crate::Reply;

pub(super) fn add(site: &mut Builder) {
    site.answer("/robots.txt", Reply::text("User-agent: *\nDisallow: /forbidden/\n"));
    site.answer(
        "/moth.png",
        Reply::status(200).header("content-type", "image/png").header("content-length", "900"),
    );
    titles(site);
    canonicals(site);
    noindex(site);
    links(site);
    console(site);
}

/// A page with a script. The policy of these pages forbids scripts within them.
fn page(site: &mut Builder, path: &str, script: &str, change: impl FnOnce(Draft) -> Draft) {
    let source = format!("/scripts{path}.js");
    site.page(path, |page| change(page).body(&format!("<script src={source} defer></script>")));
    let reply = Reply::status(200).header("content-type", "text/javascript");
    site.answer(&source, reply.header("cache-control", "max-age=31536000").body(script.to_owned()));
}

/// A page whose script makes the fault, and pages whose scripts nearly do.
fn cases<const N: usize>(site: &mut Builder, code: &str, planted: &str, near: [&str; N]) {
    // Drafts name a page by the first 30 letters of its path, so that a longer one would be like its neighbours.
    let folder = code.trim_start_matches("render-");
    let path = format!("/{folder}/planted");
    page(site, &path, planted, |page| page);
    site.expect(code, &path);
    for (number, script) in near.into_iter().enumerate() {
        page(site, &format!("/{folder}/miss-{}", number + 1), script, |page| page);
    }
    site.misses(code, N);
}

fn titles(site: &mut Builder) {
    cases(
        site,
        "render-title-differs",
        "document.title = 'A title that only browsers show'",
        [
            // White space is none of a title; the title of an image is another thing; what is changed back has not changed.
            "document.querySelector('title').textContent = '\\n ' + document.title + '  '",
            "document.querySelector('main').insertAdjacentHTML('beforeend', '<svg><title>A moth</title></svg>')",
            "const before = document.title; document.title = 'Loading, please wait a moment'; setTimeout(() => { document.title = before })",
        ],
    );
}

fn canonicals(site: &mut Builder) {
    cases(
        site,
        "render-canonical-differs",
        "document.querySelector('link[rel=canonical]').href = 'https://audit.example/list-0'",
        [
            // The same element again; a link of another kind; an address that is written in another way.
            "const link = document.querySelector('link[rel=canonical]'); link.remove(); document.head.append(link)",
            "document.head.insertAdjacentHTML('beforeend', '<link rel=shortlink href=/s/1>')",
            "const link = document.querySelector('link[rel=canonical]'); link.href = link.href.replace('audit.example/', 'AUDIT.example:443/')",
        ],
    );
    // A script adds what the source lacks.
    page(
        site,
        "/canonical-differs/added",
        "document.head.insertAdjacentHTML('beforeend', `<link rel=canonical href=\"${location.href}\">`)",
        |page| page.canonical(""),
    );
    site.expect("render-canonical-differs", "/canonical-differs/added");
}

fn noindex(site: &mut Builder) {
    let add = |meta: &str| format!("document.head.insertAdjacentHTML('beforeend', '{meta}')");
    let template = format!(
        "const t = document.createElement('template'); t.innerHTML = '{}'; document.head.append(t)",
        "<meta name=robots content=noindex>"
    );
    cases(
        site,
        "render-noindex-differs",
        &add("<meta name=robots content=noindex>"),
        [
            &add("<meta name=robots content=max-image-preview:large>"),
            &add("<meta name=otherbot content=noindex>"),
            &template,
        ],
    );
    site.expect("noindex", "/noindex-differs/planted");
    // Said in both forms: that is no difference.
    page(site, "/noindex-differs/miss-4", &add("<meta name=robots content=noindex>"), |page| {
        page.head("<meta name=robots content=noindex>")
    });
    site.expect("noindex", "/noindex-differs/miss-4");
    site.misses("render-noindex-differs", 1);
    page(site, "/noindex-differs/removed", "document.querySelector('meta[name=robots]').remove()", |page| {
        page.head("<meta name=robots content=noindex>")
    });
    site.expect("render-noindex-differs", "/noindex-differs/removed");
}

fn links(site: &mut Builder) {
    let add =
        |link: &str| format!("document.querySelector('main').insertAdjacentHTML('beforeend', '{link}')");
    site.hidden("/links-only/target", |page| page);
    let link = add("<a href=/links-only/target>Hawk moths</a>");
    cases(
        site,
        "render-links-only",
        &link,
        [
            // The menu has it; a place of the page itself; another site.
            &add("<a href=/>To the front page</a>"),
            &add("<p id=place></p><a href=#place>A place below</a>"),
            &add("<a href=\"https://other.example/page?moths\">Moths elsewhere</a>"),
        ],
    );
    // Robots without scripts find it in the source.
    page(site, "/links-only/miss-4", &link, |page| {
        page.body("<noscript><a href=/links-only/target>Hawk moths</a></noscript>")
    });
    site.misses("render-links-only", 1);
}

fn console(site: &mut Builder) {
    cases(
        site,
        "console-error",
        "menu.open()",
        [
            // A warning; an error that is caught; one that our own obedience to robots.txt causes; data that is there, and some that is not for all.
            "console.warn('menu is old'); console.log('error')",
            "try { menu.open() } catch {}",
            "fetch('/forbidden/data').catch(() => console.error('no data'))",
            "fetch('/data/moths'); fetch('/data/members')",
        ],
    );
    let json = |status: u16| Reply::status(status).header("content-type", "application/json").body("[1, 2]");
    site.answer("/data/moths", json(200));
    site.answer("/data/members", json(403));
    // What a script asks for and does not get is an error, also if the script says nothing of it.
    site.answer("/data/broken", json(500));
    site.answer("/data/reset", Reply::error(FetchErrorKind::Reset));
    for data in ["missing", "broken", "reset"] {
        let path = format!("/console-error/{data}");
        page(site, &path, &format!("fetch('/data/{data}').catch(() => 0)"), |page| page);
        site.expect("console-error", &path);
    }
    page(site, "/console-error/written", "console.error('the menu is missing')", |page| page);
    site.expect("console-error", "/console-error/written");
}
