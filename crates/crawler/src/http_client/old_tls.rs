//! Asks a server whether it accepts versions of TLS below 1.2 (RFC 8996 forbids them).
//!
//! The HTTP client cannot ask: its library of TLS has no code for these versions, and one that has would bring all of OpenSSL along. Nothing has
//! to be encrypted for the answer, though. A ClientHello (RFC 4346, 7.4.1.2) that offers TLS 1.1 at most is answered by a ServerHello, which
//! names the version that the server takes, or by an alert. The connection ends there.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;

use super::guard::literal;
use crate::fetch::{FetchError, FetchErrorKind};

/// Cipher suites of TLS 1.0 and 1.1 that servers have (IANA TLS Cipher Suites): with ECDSA and RSA keys, with and without forward secrecy, by AES
/// and Triple DES; and the signal that a client knows secure renegotiation (RFC 5746).
const CIPHER_SUITES: [u16; 13] =
    [0xc009, 0xc00a, 0xc013, 0xc014, 0x0033, 0x0039, 0x002f, 0x0035, 0xc008, 0xc012, 0x0016, 0x000a, 0x00ff];
/// secp256r1, secp384r1, secp521r1, x25519 (RFC 8422).
const CURVES: [u16; 4] = [23, 24, 25, 29];

const TLS_1_0: [u8; 2] = [3, 1];
const TLS_1_1: [u8; 2] = [3, 2];
const RECORD_HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
/// Type, version and length of a record; type, length and version of the message in it.
const ANSWER: usize = 5 + 6;

/// The highest version below TLS 1.2 that the server accepts, at the first of these addresses that can be connected to; `None` if it accepts none.
///
/// # Errors
/// No connection is made within the limit, or the server is silent for that long. A server that closes the connection accepts none.
pub(super) async fn accepted(
    host: &str,
    addresses: &[SocketAddr],
    local: Option<IpAddr>,
    limit: Duration,
) -> Result<(Option<&'static str>, SocketAddr), FetchError> {
    let until = Instant::now() + limit;
    let late = |kind, what| move |_| FetchError::new(kind, format!("{what} within {limit:?}"));
    let connected = tokio::time::timeout_at(until, connect(addresses, local)).await;
    let (mut connection, address) = connected
        .map_err(late(FetchErrorKind::ConnectTimeout, "no connection"))?
        .map_err(|error| FetchError::new(FetchErrorKind::Connect, error.to_string()).with_source(error))?;
    let answer = tokio::time::timeout(limit, ask(&mut connection, &client_hello(host))).await;
    let version = answer.map_err(late(FetchErrorKind::FirstByteTimeout, "no ServerHello"))?;
    Ok((version, address))
}

async fn connect(addresses: &[SocketAddr], local: Option<IpAddr>) -> io::Result<(TcpStream, SocketAddr)> {
    let mut last = io::Error::other("there is no address to connect to");
    for address in addresses {
        match connect_to(*address, local).await {
            Ok(connection) => return Ok((connection, *address)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn connect_to(address: SocketAddr, local: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if let Some(local) = local {
        socket.bind(SocketAddr::new(local, 0))?;
    }
    socket.connect(address).await
}

/// Sends the message and reads the version that the server takes. An answer that breaks off is a refusal.
async fn ask(connection: &mut TcpStream, hello: &[u8]) -> Option<&'static str> {
    let mut answer = [0; ANSWER];
    connection.write_all(hello).await.ok()?;
    connection.read_exact(&mut answer).await.ok()?;
    taken(&answer)
}

/// The version in a ServerHello.
fn taken(answer: &[u8; ANSWER]) -> Option<&'static str> {
    let [record, _, _, _, _, message, _, _, _, major, minor] = *answer;
    match (record, message, [major, minor]) {
        (RECORD_HANDSHAKE, SERVER_HELLO, TLS_1_1) => Some("TLS 1.1"),
        (RECORD_HANDSHAKE, SERVER_HELLO, TLS_1_0) => Some("TLS 1.0"),
        (RECORD_HANDSHAKE, SERVER_HELLO, [3, 0]) => Some("SSL 3.0"),
        _ => None,
    }
}

/// A ClientHello that offers TLS 1.1 at most, as one record.
fn client_hello(host: &str) -> Vec<u8> {
    let mut hello = TLS_1_1.to_vec();
    hello.extend(rand::random::<[u8; 32]>());
    hello.push(0); // No session is resumed.
    with_length(&mut hello, 2, |out| out.extend(CIPHER_SUITES.iter().flat_map(|suite| suite.to_be_bytes())));
    hello.extend([1, 0]); // No compression.
    with_length(&mut hello, 2, |out| extensions(host, out));

    let mut record = vec![RECORD_HANDSHAKE];
    record.extend(TLS_1_0); // As all clients write it, because some servers read nothing else (RFC 5246, E.1).
    with_length(&mut record, 2, |out| {
        out.push(CLIENT_HELLO);
        with_length(out, 3, |out| out.extend(&hello));
    });
    record
}

fn extensions(host: &str, out: &mut Vec<u8>) {
    // A name of more than 255 bytes is none of the DNS, and addresses are not sent (RFC 6066, 3).
    if literal(host).is_none() && host.len() <= 255 {
        extension(out, 0, |out| {
            with_length(out, 2, |out| {
                out.push(0);
                with_length(out, 2, |out| out.extend(host.trim_end_matches('.').as_bytes()));
            });
        });
    }
    extension(out, 10, |out| {
        with_length(out, 2, |out| out.extend(CURVES.iter().flat_map(|curve| curve.to_be_bytes())));
    });
    extension(out, 11, |out| out.extend([1, 0])); // Points are not compressed.
}

fn extension(out: &mut Vec<u8>, kind: u16, content: impl FnOnce(&mut Vec<u8>)) {
    out.extend(kind.to_be_bytes());
    with_length(out, 2, content);
}

/// Appends a content with its length before it, in this many bytes.
fn with_length(out: &mut Vec<u8>, bytes: usize, content: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.resize(at + bytes, 0);
    content(out);
    let length = (out.len() - at - bytes).to_be_bytes();
    out[at..at + bytes].copy_from_slice(&length[length.len() - bytes..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_stand_before_what_they_count() {
        let mut out = vec![9];
        with_length(&mut out, 3, |out| with_length(out, 1, |out| out.extend([7, 8])));
        assert_eq!(out, [9, 0, 0, 3, 2, 7, 8]);
        let hello = client_hello("a.example");
        let of = |at: usize| usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
        assert_eq!(of(3), hello.len() - 5);
        assert_eq!(of(7), hello.len() - 9, "the message fills the record");
        assert!(hello.windows(9).any(|part| part == b"a.example"));
        assert!(client_hello("[::1]").len() < client_hello("a.example").len() - 9, "addresses are no names");
    }

    #[test]
    fn only_a_server_hello_of_an_old_version_is_an_acceptance() {
        let of = |record, message, minor| taken(&[record, 3, 1, 0, 80, message, 0, 0, 76, 3, minor]);
        assert_eq!(of(22, 2, 2), Some("TLS 1.1"));
        assert_eq!(of(22, 2, 1), Some("TLS 1.0"));
        assert_eq!(of(22, 2, 0), Some("SSL 3.0"));
        assert_eq!(of(22, 2, 3), None, "TLS 1.2 was not offered");
        assert_eq!(of(21, 2, 2), None, "an alert");
        assert_eq!(of(22, 1, 2), None, "another message");
        assert_eq!(taken(b"HTTP/1.1 40"), None);
    }
}
