//! Parsers for values of flags that several commands have.

use std::net::SocketAddr;
use std::time::Duration;

/// A number from 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a number from 0 to 1, such as 0.05".to_owned()),
    }
}

/// Seconds, which may be 0.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("use a number of at least 0".to_owned()),
    }
}

/// Seconds above 0.
pub fn positive_seconds(text: &str) -> Result<f64, String> {
    match seconds(text) {
        Ok(value) if value > 0.0 => Ok(value),
        _ => Err("use a number greater than 0".to_owned()),
    }
}

/// A whole number above 0.
pub fn positive(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(value) if value > 0 => Ok(value),
        _ => Err("use a whole number of at least 1".to_owned()),
    }
}

/// A duration: a number with its unit, or seconds without one.
pub fn span(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let seconds = match unit {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        _ => f64::NAN,
    };
    let seconds = number.trim().parse::<f64>().unwrap_or(f64::NAN) * seconds;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| "use a number and s, m, h, d or w, such as 30d".to_owned())
}

/// An address to listen on: `9100` and `:9100` mean loopback; anything else must be an address with a port.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    let text = if port.parse::<u16>().is_ok() {
        format!("127.0.0.1:{port}")
    } else {
        text.replacen("localhost:", "127.0.0.1:", 1)
    };
    text.parse().map_err(|_| "use ADDRESS:PORT such as 127.0.0.1:9100, or a port alone".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_have_units() {
        let seconds = |text: &str| span(text).map(|span| span.as_secs_f64());
        for (text, expected) in
            [("90", 90.0), ("1.5m", 90.0), ("2h", 7_200.0), ("30d", 2_592_000.0), ("1w", 604_800.0)]
        {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
        for text in ["", "d", "-1s", "1y", "nan", "inf", "1e300w", "12 parsecs"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn metrics_without_a_host_listen_on_loopback() {
        for text in ["9100", ":9100", "localhost:9100", "127.0.0.1:9100"] {
            assert_eq!(listen_address(text).unwrap().to_string(), "127.0.0.1:9100");
        }
        assert!(listen_address("nonsense").is_err());
        assert!(listen_address("127.0.0.1:99999").is_err());
    }
}
