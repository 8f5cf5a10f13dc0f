//! The page of the daemon, over the same API.

use maud::{Markup, html};

pub(crate) const SCRIPT: &str = include_str!("page.js");

/// What stands on the page before the script runs.
pub(crate) fn content() -> Markup {
    let tiles =
        [("running", "running"), ("pending", "waiting"), ("finished", "finished"), ("max_proc", "at once")];
    let head = |names: &[&str]| html! { thead { tr { @for name in names { th { (name) } } } } tbody {} };
    html! {
        div.bar { h1 { "Jobs" } span #state .state {} span #time {} }
        div.tiles { @for (id, name) in tiles { div { b #(id) {} span { (name) } } } }
        div.bar {
            select #project aria-label="project" {} select #spider aria-label="spider" {}
            input #args .wide type="text" placeholder="name=value name=value" aria-label="arguments of the spider";
            input #settings .wide type="text" placeholder="download_delay=2" aria-label="settings";
            input #priority .short type="number" step="1" placeholder="priority" aria-label="priority";
            button #schedule type="button" { "Schedule" }
        }
        h2 { "Running" }
        table #running-jobs { (head(&["job", "project", "spider", "since", "pages", "items", "queued", ""])) }
        h2 { "Waiting" }
        table #pending-jobs { (head(&["job", "project", "spider", "since", "priority", "deaths", ""])) }
        h2 { "Next" }
        table #schedules { (head(&["schedule", "project", "spider", "cron", "next run", "left out"])) }
        h2 { "Finished" }
        table #finished-jobs { (head(&["job", "project", "spider", "ended", "result", "exit code", "pages", "items", ""])) }
        h2 #text-title {}
        pre #text {}
    }
}
