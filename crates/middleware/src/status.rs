//! Which statuses a request handles itself (`handle_httpstatus_list` and `handle_httpstatus_all` of its meta), and
//! which responses are complete.

use http::StatusCode;
use huntsman_crawler::{Request, Response, meta};
use serde_json::Value;

/// Whether the callback handles this status, so that no middleware may act on it.
pub(crate) fn is_handled(request: &Request, status: StatusCode) -> bool {
    if request.meta.is_empty() {
        return false;
    }
    let wanted = u64::from(status.as_u16());
    request.meta_flag(meta::HANDLE_HTTPSTATUS_ALL)
        || matches!(request.meta.get(meta::HANDLE_HTTPSTATUS_LIST.name()), Some(Value::Array(list))
            if list.iter().any(|code| code.as_u64() == Some(wanted)))
}

/// Whether the body was received completely.
pub(crate) fn is_whole(response: &Response) -> bool {
    const CUT: [&str; 5] = ["dataloss", "download_stopped", "partial", "truncated", "unread"];
    !CUT.iter().any(|flag| response.has_flag(flag))
}
