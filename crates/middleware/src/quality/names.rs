//! The names of stats that rules may use.

use huntsman_crawler::nearest;
use huntsman_crawler::terminal::escape;

/// Number of items: those that passed all pipelines, or those of a spider file that were written.
pub(super) const ITEMS: &str = "items";
/// Share of the requests that failed, of those that failed or gave a page.
pub(super) const ERROR_RATE: &str = "error_rate";
/// Shares of items in which a field is not empty.
pub(super) const COVERAGE: &str = "coverage/";

/// Stats with fixed names. A test compares this list with the sources.
const NAMES: &[&str] = &[
    ITEMS,
    ERROR_RATE,
    "avoid_dup/delayed",
    "avoid_dup/explored",
    "avoid_dup/fetched_again",
    "avoid_dup/held",
    "avoid_dup/learnt",
    "avoid_dup/not_handed_over",
    "avoid_dup/not_waited_for",
    "avoid_dup/reopened",
    "avoid_dup/skipped",
    "cluster/beat_lag_seconds",
    "cluster/borrowed_total",
    "cluster/fenced_total",
    "cluster/outbox_len",
    "cluster/partitions_owned",
    "cluster/refetched_total",
    "cluster/script_seconds",
    "cluster/takeovers_total",
    "cluster/void_settles_total",
    "declared/items",
    "delta/skipped",
    "depth/request_ignored_count",
    "downloader/exception_count",
    "downloader/request_bytes",
    "downloader/request_count",
    "downloader/response_bytes",
    "downloader/response_count",
    "drops/failed",
    "drops/skipped",
    "dupefilter/filtered",
    "elapsed_time_seconds",
    "feed/damaged",
    "feed/entries",
    "feed/entries_failed",
    "feed/failed",
    "feed/files",
    "file_count",
    "finish_reason",
    "from_warc/answered",
    "from_warc/damaged",
    "from_warc/missing",
    "from_warc/revisit_unresolved",
    "httpcompression/response_bytes",
    "httpcompression/response_count",
    "httperror/response_ignored_count",
    "item_coverage_count",
    "item_coverage_cut_count",
    "item_dropped_count",
    "item_error_count",
    "item_invalid_count",
    "item_scraped_count",
    "items/unread",
    "items/written",
    "items_per_minute",
    "memusage/max",
    "memusage/spilled",
    "meta_copies",
    "middleware_errors",
    "near_dup/empty",
    "near_dup/flagged",
    "near_dup/indexed",
    "near_dup/short",
    "nofollow/filtered",
    "observer_panics",
    "offsite/domains",
    "offsite/filtered",
    "only/filtered",
    "pages/delivered",
    "record/exchanges",
    "record/failed",
    "record/failures",
    "record/left_out",
    "record/with_secrets",
    "recording/responses",
    "redirect/bad_location",
    "redirect/count",
    "render/cpu_milliseconds",
    "render/crashed",
    "render/failed",
    "render/incomplete",
    "render/memory_max",
    "render/milliseconds",
    "render/pages",
    "render/refused_direct",
    "render/restarts",
    "render/static",
    "render/wrong_guesses",
    "replay/answered",
    "replay/missing",
    "request_depth_max",
    "response_received_count",
    "responses_per_minute",
    "retry/count",
    "retry/max_reached",
    "retry/retry_after_too_long",
    "robotstxt/forbidden",
    "robotstxt/over_cap",
    "robotstxt/request_count",
    "robotstxt/response_count",
    "robotstxt/unreachable",
    "spider_exceptions/count",
    "start_errors",
    "url_frontier/bad_urls_total",
    "urllength/request_ignored_count",
    "warc/bytes",
    "warc/failed",
    "warc/failed_downloads",
    "warc/noarchive",
    "warc/rendered",
    "warc/responses",
    "warc/revisits",
];

/// Stats whose names end with something that is known only in the crawl: a status, a reason, a host, a field.
const FAMILIES: &[&str] = &[
    COVERAGE,
    "copyvio/",
    "downloader/exception_type_count/",
    "downloader/request_method_count/",
    "downloader/response_status_count/",
    "drops/failed/",
    "drops/skipped/",
    "engine/",
    "feedexport/",
    "file_status_count/",
    "httpcache/",
    "httperror/response_ignored_status_count/",
    "incremental/",
    "index/",
    "item_dropped_reasons_count/",
    "item_faults_count/",
    "item_field_count/",
    "links/",
    "log_count/",
    "near_dup/flagged/",
    "near_dup/indexed/",
    "proxy/",
    "redirect/",
    "refused/",
    "render/refused/",
    "render/requests/",
    "render/source/",
    "request_depth_count/",
    "retry/reason_count/",
    "robotstxt/exception_count/",
    "robotstxt/response_status_count/",
    "scheduler/",
    "session/",
    "sitemap/",
    "spider_exceptions/",
    "traps/",
    "url_guard/",
];

/// Whether there is a stat of this name, or may be one.
fn is_known(name: &str) -> bool {
    NAMES.contains(&name)
        || FAMILIES.iter().any(|family| name.strip_prefix(family).is_some_and(|rest| !rest.is_empty()))
}

/// The stat that a rule means: `coverage.price` is that of the field.
pub(super) fn resolve(name: &str) -> Result<String, String> {
    if name.is_empty() {
        return Err("the name of a stat is expected".to_owned());
    }
    if let Some(field) = name.strip_prefix("coverage.") {
        return match field {
            "" => Err("the name of a field is expected after coverage.".to_owned()),
            field => Ok(format!("{COVERAGE}{field}")),
        };
    }
    if is_known(name) {
        return Ok(name.to_owned());
    }
    let hint =
        nearest(name, NAMES.iter().copied()).map_or(String::new(), |near| format!("; did you mean {near}?"));
    Err(format!(
        "unknown stat {}{hint}; one that the program counts itself stands in quotation marks",
        escape(name)
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The names that the sources of a folder count, as texts in their calls.
    fn counted(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                counted(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            // Code in tests and in documentation counts what it likes.
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            for call in [
                "stats().inc(\"",
                "stats().add(\"",
                "stats().counter(\"",
                "stats.inc(\"",
                "stats.add(\"",
                "stats.counter(\"",
            ] {
                let names = lines.clone().filter_map(|line| line.split_once(call)?.1.split('"').next());
                found.extend(names.map(str::to_owned));
            }
        }
    }

    #[test]
    fn every_stat_that_the_library_counts_may_stand_in_a_rule() {
        let mut found = Vec::new();
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for name in ["crawler", "middleware", "sweep"] {
            counted(&crates.join(name).join("src"), &mut found);
        }
        assert!(found.len() > 60, "the search finds no calls any more: {found:?}");
        found.retain(|name| !is_known(name));
        assert_eq!(found, [""; 0], "add them to NAMES or FAMILIES");
        assert!(NAMES.iter().all(|name| is_known(name)) && !is_known("coverage/") && !is_known("nonsense"));
    }
}
