//! Measures memory by counting allocations. This program is apart from `it`, because its allocator counts those of the
//! whole process.

use huntsman_testkit::load::CountingAllocator;
use tokio::sync::Mutex;

mod feed;
mod frontier;
mod sitemap;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Runs one test at a time: in one process each would count the other's bytes.
static TURN: Mutex<()> = Mutex::const_new(());
