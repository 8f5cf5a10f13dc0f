//! What a failure of the network is called in evidence.

/// What is wrong, as people look for it, and then what the client says: `connection refused: connecting to ...`. `kind` is the name of a
/// [kind](huntsman_crawler::FetchErrorKind) of error.
pub(crate) fn told(kind: &str, message: &str) -> String {
    let what = match kind {
        "dns" => "the name does not resolve",
        "connect" if message.to_ascii_lowercase().contains("refused") => "connection refused",
        "connect" => "no connection",
        "tls" => "TLS failed",
        "connection_reset" => "the connection was reset",
        kind if kind.ends_with("_timeout") => "no answer in time",
        _ => return message.to_owned(),
    };
    format!("{what}: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_look_for_comes_first() {
        for (kind, message, expected) in [
            (
                "connect",
                "Connection refused (os error 111)",
                "connection refused: Connection refused (os error 111)",
            ),
            ("connect", "no route to host", "no connection: no route to host"),
            ("dns", "no address for gone.example", "the name does not resolve: no address for gone.example"),
            ("first_byte_timeout", "no byte in 30 s", "no answer in time: no byte in 30 s"),
            ("too_large", "the body is larger", "the body is larger"),
        ] {
            assert_eq!(told(kind, message), expected);
        }
    }
}
