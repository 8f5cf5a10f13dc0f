//! Times of this node as times of the server: clocks of nodes differ.

use huntsman_crawler::{SavedPoliteness, Timestamp};

/// How much the clock of the server is ahead of this node's, within the time that it takes to ask: at least `low`, at most `high`
/// microseconds. Times are converted so that they become later rather than earlier, because a host may wait for longer but not for less.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerClock {
    low: i64,
    high: i64,
}

impl ServerClock {
    /// From the time of the server that was read between two times of this node.
    pub(crate) fn read(before: Timestamp, server: Timestamp, after: Timestamp) -> Self {
        let ahead = |own: Timestamp| server.0.cast_signed().saturating_sub(own.0.cast_signed());
        Self { low: ahead(after), high: ahead(before) }
    }

    /// What is stored in the server.
    pub(crate) fn to_server(self, pace: SavedPoliteness) -> SavedPoliteness {
        moved(pace, self.high)
    }

    /// What was stored there.
    pub(crate) fn to_own(self, pace: SavedPoliteness) -> SavedPoliteness {
        moved(pace, self.low.saturating_neg())
    }
}

fn moved(pace: SavedPoliteness, by: i64) -> SavedPoliteness {
    // Zero means that there is no such time.
    let at = |time: Timestamp| if time.0 == 0 { time } else { Timestamp(time.0.saturating_add_signed(by)) };
    SavedPoliteness { sleep_until: at(pace.sleep_until), last_start: at(pace.last_start), ..pace }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_two_nodes_convert_is_never_earlier() {
        // The first node is 10 s behind the server, the second one 5 s ahead of it.
        let first = ServerClock::read(Timestamp(100_000), Timestamp(10_100_500), Timestamp(101_000));
        let second = ServerClock::read(Timestamp(15_100_000), Timestamp(10_100_500), Timestamp(15_102_000));
        let told = SavedPoliteness { last_start: Timestamp(90_000), ..SavedPoliteness::default() };
        let heard = second.to_own(first.to_server(told));
        let exact = 90_000 + 10_000_000 + 5_000_000;
        assert!((exact..exact + 3_000).contains(&heard.last_start.0), "{heard:?}");
        assert_eq!(heard.sleep_until, Timestamp(0), "there is none");
    }
}
