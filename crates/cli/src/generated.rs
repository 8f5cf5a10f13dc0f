//! Pages of generated sites, as the server of this program sends them.

use huntsman_testkit::sites::Page;

use crate::server::Answer;

/// The answer that sends a page.
pub(crate) fn answer(page: Page) -> Answer {
    let (head, body) = page.into_parts();
    let headers = head.headers.into_iter().filter_map(|(name, value)| Some((name?, value))).collect();
    Answer { status: head.status.as_u16(), headers, body: body.into_bytes() }
}
