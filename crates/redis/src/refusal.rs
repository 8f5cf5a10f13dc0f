//! Interprets a server's error replies, and says what to do about them.

use crate::error::{Error, ErrorKind};

/// The error for an error reply of the server, which is a code in capitals followed by text.
///
/// The server's text is repeated; a server never sends a password back.
pub(crate) fn of(refusal: &str) -> Error {
    let code = refusal.split_ascii_whitespace().next().unwrap_or_default();
    let (kind, advice) = match code {
        "OOM" => (
            ErrorKind::Full,
            "the server's memory is full: raise its maxmemory (and keep maxmemory-policy noeviction), then run the same again",
        ),
        "MISCONF" => (
            ErrorKind::Full,
            "the server cannot save to its disk and takes no writes: make room there, then run the same again",
        ),
        "READONLY" => (
            ErrorKind::Refused,
            "this server is a read-only replica: give the address of the one that it replicates",
        ),
        "NOAUTH" => (ErrorKind::Refused, "the server wants a password: set it, and the user if there is one"),
        "WRONGPASS" => (ErrorKind::Refused, "the user or the password is wrong"),
        "DENIED" => (
            ErrorKind::Refused,
            "the server takes connections of its own machine only: set a password there and give it here",
        ),
        "NOPERM" => (
            ErrorKind::Refused,
            "the user may not do this: it needs the keys sh:* of an index, or simhashes* and those of its languages for the seed layout, \
             or hm:* of a crawl, and the commands for them (ACL SETUSER NAME ~* +@read +@write +@connection +@scripting)",
        ),
        "MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" | "TRYAGAIN" => (
            ErrorKind::Unavailable,
            "the cluster does not serve all its slots, or moves them without end: see CLUSTER INFO, then run the same again",
        ),
        "LOADING" | "MASTERDOWN" | "BUSY" => (
            ErrorKind::Unavailable,
            "the server is busy with itself: wait until it is ready, then run the same again",
        ),
        "WRONGTYPE" => (
            ErrorKind::Format,
            "a key that belongs to this program holds something else: use another database, or remove that key",
        ),
        "ERR" if refusal.contains("DB index") => {
            (ErrorKind::Input, "the server has fewer databases: take another number behind the /")
        }
        "ERR" if refusal.contains("cluster mode") => {
            (ErrorKind::Input, "a cluster has database 0 only: leave out the number behind the /")
        }
        "ERR" if refusal.contains("without any password configured") => {
            (ErrorKind::Refused, "the server has no password: leave it out, or set the user it belongs to")
        }
        "ERR" if refusal.contains("max number of clients") => (
            ErrorKind::Unavailable,
            "the server has no connection left: raise its maxclients, or wait, then run the same again",
        ),
        _ => (ErrorKind::Io, "see the server's log"),
    };
    Error::new(kind, format!("the server refuses: {refusal}; {advice}"))
}

/// Whether the server may accept the same command later.
pub(crate) fn is_temporary(refusal: &str) -> bool {
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
            ("OOM command not allowed when used memory > 'maxmemory'.", ErrorKind::Full, "maxmemory"),
            ("MISCONF Redis is configured to save RDB snapshots", ErrorKind::Full, "disk"),
            ("READONLY You can't write against a read only replica.", ErrorKind::Refused, "replicates"),
            ("NOAUTH Authentication required.", ErrorKind::Refused, "password"),
            ("WRONGPASS invalid username-password pair or user is disabled.", ErrorKind::Refused, "wrong"),
            ("NOPERM User x has no permissions to run the 'sadd' command", ErrorKind::Refused, "ACL"),
            ("MOVED 1234 127.0.0.1:7000", ErrorKind::Unavailable, "cluster"),
            ("LOADING Redis is loading the dataset in memory", ErrorKind::Unavailable, "wait"),
            ("WRONGTYPE Operation against a key", ErrorKind::Format, "database"),
            ("ERR DB index is out of range", ErrorKind::Input, "number"),
            ("DENIED Redis is running in protected mode", ErrorKind::Refused, "password"),
            ("ERR SELECT is not allowed in cluster mode", ErrorKind::Input, "database 0"),
            ("ERR anything else", ErrorKind::Io, "log"),
            ("", ErrorKind::Io, "log"),
        ] {
            let error = of(refusal);
            assert_eq!(error.kind(), kind, "{refusal}");
            let message = error.to_string();
            assert!(message.contains(refusal) && message.contains(advice), "{message}");
        }
        assert!(is_temporary("LOADING x") && !is_temporary("OOM x") && !is_temporary("LOADINGS x"));
    }
}
