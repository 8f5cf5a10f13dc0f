//! Interprets a server's error replies, and says what to do about them.

use huntsman_detect::near::{IndexError, IndexErrorKind};

/// The error for an error reply of the server, which is a code in capitals followed by text.
///
/// The server's text is repeated; a server never sends a password back.
pub(super) fn of(refusal: &str) -> IndexError {
    let code = refusal.split_ascii_whitespace().next().unwrap_or_default();
    let (kind, advice) = match code {
        "OOM" => (
            IndexErrorKind::Full,
            "the server's memory is full: raise its maxmemory (and keep maxmemory-policy noeviction), then run the same again",
        ),
        "MISCONF" => (
            IndexErrorKind::Full,
            "the server cannot save to its disk and takes no writes: make room there, then run the same again",
        ),
        "READONLY" => (
            IndexErrorKind::Refused,
            "this server is a read-only replica: give the address of the one that it replicates",
        ),
        "NOAUTH" => {
            (IndexErrorKind::Refused, "the server wants a password: set it, and the user if there is one")
        }
        "WRONGPASS" => (IndexErrorKind::Refused, "the user or the password is wrong"),
        "DENIED" => (
            IndexErrorKind::Refused,
            "the server takes connections of its own machine only: set a password there and give it here",
        ),
        "NOPERM" => (
            IndexErrorKind::Refused,
            "the user may not do this: it needs the keys sh:*, or simhashes* and those of its languages for the seed layout, and \
             the commands of sets, hashes and strings (ACL SETUSER NAME ~* +@read +@write +@connection)",
        ),
        "MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" | "TRYAGAIN" => (
            IndexErrorKind::Unavailable,
            "the cluster does not serve all its slots, or moves them without end: see CLUSTER INFO, then run the same again",
        ),
        "LOADING" | "MASTERDOWN" | "BUSY" => (
            IndexErrorKind::Unavailable,
            "the server is busy with itself: wait until it is ready, then run the same again",
        ),
        "WRONGTYPE" => (
            IndexErrorKind::Format,
            "a key that belongs to the index holds something else: use another database, or remove that key",
        ),
        "ERR" if refusal.contains("DB index") => {
            (IndexErrorKind::Input, "the server has fewer databases: take another number behind the /")
        }
        "ERR" if refusal.contains("cluster mode") => {
            (IndexErrorKind::Input, "a cluster has database 0 only: leave out the number behind the /")
        }
        "ERR" if refusal.contains("without any password configured") => (
            IndexErrorKind::Refused,
            "the server has no password: leave it out, or set the user it belongs to",
        ),
        "ERR" if refusal.contains("max number of clients") => (
            IndexErrorKind::Unavailable,
            "the server has no connection left: raise its maxclients, or wait, then run the same again",
        ),
        _ => (IndexErrorKind::Io, "see the server's log"),
    };
    IndexError::new(kind, format!("the server refuses: {refusal}; {advice}"))
}

/// Whether the server may accept the same command later.
pub(super) fn is_temporary(refusal: &str) -> bool {
    let code = refusal.split_ascii_whitespace().next().unwrap_or_default();
    matches!(code, "LOADING" | "MASTERDOWN" | "BUSY" | "CLUSTERDOWN" | "TRYAGAIN")
        || refusal.contains("max number of clients")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do() {
        for (refusal, kind, advice) in [
            ("OOM command not allowed when used memory > 'maxmemory'.", IndexErrorKind::Full, "maxmemory"),
            ("MISCONF Redis is configured to save RDB snapshots", IndexErrorKind::Full, "disk"),
            ("READONLY You can't write against a read only replica.", IndexErrorKind::Refused, "replicates"),
            ("NOAUTH Authentication required.", IndexErrorKind::Refused, "password"),
            (
                "WRONGPASS invalid username-password pair or user is disabled.",
                IndexErrorKind::Refused,
                "wrong",
            ),
            ("NOPERM User x has no permissions to run the 'sadd' command", IndexErrorKind::Refused, "ACL"),
            ("MOVED 1234 127.0.0.1:7000", IndexErrorKind::Unavailable, "cluster"),
            ("LOADING Redis is loading the dataset in memory", IndexErrorKind::Unavailable, "wait"),
            ("WRONGTYPE Operation against a key", IndexErrorKind::Format, "database"),
            ("ERR DB index is out of range", IndexErrorKind::Input, "number"),
            ("DENIED Redis is running in protected mode", IndexErrorKind::Refused, "password"),
            ("ERR SELECT is not allowed in cluster mode", IndexErrorKind::Input, "database 0"),
            ("ERR anything else", IndexErrorKind::Io, "log"),
            ("", IndexErrorKind::Io, "log"),
        ] {
            let error = of(refusal);
            assert_eq!(error.kind(), kind, "{refusal}");
            let message = error.to_string();
            assert!(message.contains(refusal) && message.contains(advice), "{message}");
        }
        assert!(is_temporary("LOADING x") && !is_temporary("OOM x") && !is_temporary("LOADINGS x"));
    }
}
