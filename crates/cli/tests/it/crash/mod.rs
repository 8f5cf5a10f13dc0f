//! Crashes, power cuts and failing disks, for every command that writes files: running the same command again must
//! complete everything.
//!
//! Four judges test each scenario. By default they test a sample; for nightly runs, these variables set how much they
//! do:
//!
//! | variable | what it sets |
//! |---|---|
//! | `HUNTSMAN_CRASH_POINTS` | simulated crashes of each scenario, from a recording |
//! | `HUNTSMAN_CRASH_FAULTS` | failing calls of each scenario, each in a run of its own |
//! | `HUNTSMAN_CRASH_KILLS` | kills of each scenario: this many at random moments, and as many at system calls |
//! | `HUNTSMAN_CRASH_SEED` | the seed, which every test prints |
#![cfg(target_os = "linux")]

mod crawls;
mod dedup;
mod feeds;
mod judges;
mod records;
mod scenario;

/// Runs the judges over a scenario.
macro_rules! judged {
    ($name:ident, $scenario:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn goes_on_after_every_crash_and_is_on_the_disk_when_it_is_done() {
                judges::crashes(concat!(stringify!($name), ": crashes"), &$scenario);
            }

            #[test]
            fn tells_of_every_failing_call_and_goes_on_without_it() {
                judges::faults(concat!(stringify!($name), ": faults"), &$scenario);
            }

            #[test]
            fn goes_on_after_every_kill() {
                judges::kills(concat!(stringify!($name), ": kills"), &$scenario);
            }
        }
    };
}

judged!(a_crawl_on_redb, crawls::crawl("redb", "full"));
judged!(a_crawl_on_sled, crawls::crawl("sled", "full"));
judged!(a_crawl_on_redb_synced_at_its_end, crawls::crawl("redb", "process"));
judged!(a_crawl_on_sled_synced_at_its_end, crawls::crawl("sled", "process"));
judged!(a_fresh_crawl, crawls::fresh());
judged!(a_crawl_into_an_index, crawls::indexed());
judged!(a_crawl_with_a_cache, crawls::cached());
judged!(a_recorded_crawl, crawls::recorded());
judged!(a_sweep, crawls::sweep());
judged!(an_export_of_a_cache, crawls::export());
judged!(a_build_of_near_duplicates, dedup::build());
judged!(a_day_of_near_duplicates, dedup::add());
judged!(a_join_of_near_duplicates, dedup::join());
judged!(feeds_of_a_library_crawl, feeds::feeds());
#[cfg(all(feature = "parquet", feature = "sqlite"))]
judged!(tables_of_a_library_crawl, feeds::tables());
