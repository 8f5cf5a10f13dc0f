//! The settings of an audit (`[audit]` in a settings file).
//!
//! They are declared here and not beside the rules, because all commands read one settings file, and a name that `audit` knows must not be
//! an unknown one to `crawl`. The rules are in a crate above this one.

use std::collections::BTreeMap;

use huntsman_crawler::settings;
use serde::{Deserialize, Serialize};

settings! {
    /// Limits and choices of an audit. In a settings file they stand in the table `[audit]`, there without `audit_`.
    pub struct AuditSettings {
        /// Least number of characters of a title; wide ones count twice.
        audit_title_min: usize = 20;
        /// Largest number of characters of a title; wide ones count twice.
        audit_title_max: usize = 60;
        /// Least number of characters of a description; wide ones count twice.
        audit_description_min: usize = 80;
        /// Largest number of characters of a description; wide ones count twice.
        audit_description_max: usize = 160;
        /// Largest number of characters of a main heading; wide ones count twice.
        audit_h1_max: usize = 70;
        /// Bits in which the fingerprints of two texts may differ that are told as near-duplicates, at most 7. Up to 7 bits they are also told if
        /// 90 % of their runs of five words are the same.
        audit_near_duplicate_bits: u32 = 3;
        /// Least number of words of a page's own text.
        audit_words_min: usize = 200;
        /// Largest number of characters of a URL.
        audit_url_max: usize = 115;
        /// Largest number of parameters of a URL.
        audit_url_parameters_max: usize = 3;
        /// Largest number of different URLs that a page links to.
        audit_links_max: usize = 100;
        /// Largest number of characters of an alternative text.
        audit_alt_max: usize = 100;
        /// Largest number of bytes of an image, as transferred.
        audit_img_bytes_max: u64 = 500_000;
        /// Largest number of bytes of the HTML of a page, decoded.
        audit_page_bytes_max: u64 = 2_000_000;
        /// Largest number of milliseconds from a request to the first byte of a page.
        audit_ttfb_max_ms: f64 = 800.0;
        /// Least number of seconds for which scripts, styles and images may be kept.
        audit_asset_ttl_min: u64 = 86_400;
        /// Largest number of elements of a page.
        audit_dom_max: usize = 1_500;
        /// Largest number of different files that a page loads.
        audit_requests_max: usize = 100;
        /// Largest number of clicks from a start URL to a page.
        audit_depth_max: u16 = 4;
        /// Largest number of redirects that a link may pass.
        audit_redirect_hops_max: usize = 1;
        /// Largest number of query strings of one path, beyond which its URLs are suspected to have no end.
        audit_query_variants_max: usize = 1_000;
        /// Largest number of URLs of one template, which differ in numbers, dates and the like, beyond which they are suspected to have no end.
        audit_template_urls_max: usize = 20_000;
        /// Largest number of pages with parameters whose texts are compared to find parameters that change nothing; each takes some fifty bytes a
        /// parameter while an audit is judged.
        audit_compared_pages: usize = 100_000;
        /// Number of requests, one after the other, that a host of another site refuses by 429 or 503 or does not answer in time before it is left
        /// alone; 0 for any number.
        audit_host_refusals_in_a_row: u32 = 3;
        /// Largest number of such refusals of a host in all, with other answers between them, before it is left alone; 0 for any number.
        audit_host_refusals: u32 = 12;
        /// Least number of days for which the certificate of a host must still be valid.
        audit_certificate_days: u32 = 30;
        /// Bytes that are sorted in memory at once while an audit is judged; what is more is sorted on disk. Three sorts may be under way. As many
        /// bytes keep the first answers of a site, about 15,000 pages; others are read from disk each time that they are needed.
        audit_sorted_bytes: usize = 64 << 20;
        /// Severity of codes in place of their own: error, warning, notice or off.
        audit_severity: BTreeMap<String, String> = BTreeMap::new();
        /// Issues that are listed as ignored.
        audit_ignore: Vec<AuditIgnore> = Vec::new();
        /// What makes the command fail: a severity, a family or a code; `new:` before it counts only issues that the baseline does not have,
        /// and `>N` behind it allows N of them.
        audit_fail_on: Vec<String> = Vec::new();
        /// Numbers that must keep within limits (`[audit.budget]`): pages, status_4xx, status_5xx, errors, warnings, ttfb_p95_ms, page_kb_p95,
        /// depth_max, score and score_drop, with a number or a text such as "<= 10".
        audit_budget: BTreeMap<String, serde_json::Value> = BTreeMap::new();
        /// Title of the report in place of "Audit of" and the host.
        audit_title: Option<String> = None;
        /// File of an image that stands above the title of the report: PNG, JPEG, GIF or SVG, at most 200 kB.
        audit_logo: Option<String> = None;
        /// Largest number of pages that the report shows, and of issues of one code: those of the pages with the worst issues. The tables have all.
        audit_report_pages: usize = 200_000;
        /// File of TOML with fields that are read from each page, and texts that are looked for in it (`[fields]`, `[searches]`).
        audit_custom: Option<String> = None;
        /// Largest number of characters of a value of such a field; what is longer is cut.
        audit_custom_length: usize = 1_000;
        /// Largest number of URLs of server logs that are requested although no page links to them; those that were asked for most often.
        audit_log_urls: usize = 10_000;
    }
}

/// A rule for issues that are known and accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditIgnore {
    /// The code.
    pub code: String,
    /// Pattern of the URL of the issue: a glob, or a regular expression after `re:`; without one, every URL.
    #[serde(default)]
    pub url: Option<String>,
    /// Pattern of the other URL that the issue is about, such as the target of a redirect; without one, every issue.
    #[serde(default)]
    pub target: Option<String>,
    /// The last day on which they are accepted, in UTC: `2027-03-31`.
    #[serde(default)]
    pub until: Option<String>,
    /// Why they are accepted; it stands in the report.
    #[serde(default)]
    pub reason: Option<String>,
}
