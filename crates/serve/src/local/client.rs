//! The client of a [`LocalServer`](super::LocalServer), which finds address and token in its file.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use axum::http::{Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::Contact;

/// Time limit for a whole request.
const TIME: Duration = Duration::from_secs(30);
/// Most bytes of a response.
const MAX_RESPONSE: usize = 64 << 20;
/// Most bytes of the file with address and token.
const MAX_CONTACT: u64 = 4 << 10;

/// Asks a server of this machine.
#[derive(Debug)]
pub struct LocalClient {
    path: PathBuf,
    contact: Contact,
}

/// Why a server of this machine does not answer, or refuses.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// There is no file with address and token: nothing runs, or it runs without control.
    NoContact(PathBuf),
    /// The file with address and token cannot be read or understood.
    BadContact(PathBuf, io::Error),
    /// The file is there, but the process that wrote it does not answer: it has ended without removing the file, or it hangs.
    NoAnswer(PathBuf, io::Error),
    /// The server refuses the request.
    Refused(u16, String),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoContact(path) => {
                write!(f, "there is no {}: nothing that can be controlled runs there", path.display())
            }
            Self::BadContact(path, error) => write!(f, "reading {}: {error}", path.display()),
            Self::NoAnswer(path, error) => {
                write!(
                    f,
                    "the process that wrote {} does not answer, it was probably killed: {error}",
                    path.display()
                )
            }
            Self::Refused(_, message) => f.write_str(message),
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::BadContact(_, error) | Self::NoAnswer(_, error) => Some(error),
            Self::NoContact(_) | Self::Refused(..) => None,
        }
    }
}

impl LocalClient {
    /// Reads the file with address and token.
    ///
    /// # Errors
    /// It is missing, cannot be read, or is not such a file.
    pub fn of(path: &Path) -> Result<Self, ClientError> {
        let bad = |error| ClientError::BadContact(path.to_owned(), error);
        let found = match std::fs::metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ClientError::NoContact(path.to_owned()));
            }
            Err(error) => return Err(bad(error)),
        };
        if found.len() > MAX_CONTACT || !found.is_file() {
            return Err(bad(io::Error::other("it is not a file with an address and a token")));
        }
        let bytes = std::fs::read(path).map_err(bad)?;
        let contact: Contact = serde_json::from_slice(&bytes).map_err(|error| bad(error.into()))?;
        if !contact.address.ip().is_loopback() {
            return Err(bad(io::Error::other("its address is not of this machine")));
        }
        Ok(Self { path: path.to_owned(), contact })
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.contact.address
    }

    /// Asks for what stands at a path below `/api`.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn get(&self, path: &str) -> Result<Value, ClientError> {
        self.send(Method::GET, path, Vec::new()).await
    }

    /// Sends an object of JSON to a path below `/api`.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.send(Method::POST, path, body.to_string().into_bytes()).await
    }

    async fn send(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Value, ClientError> {
        let exchanged = tokio::time::timeout(TIME, self.exchange(method, path, body)).await;
        let exchanged = exchanged.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let (status, bytes) = exchanged.map_err(|error| ClientError::NoAnswer(self.path.clone(), error))?;
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_else(|_| {
            Value::String(String::from_utf8_lossy(&bytes[..bytes.len().min(1_000)]).trim().to_owned())
        });
        if (200..300).contains(&status) {
            return Ok(value);
        }
        let message = value.get("error").or(Some(&value)).and_then(Value::as_str).unwrap_or_default();
        Err(ClientError::Refused(status, message.to_owned()))
    }

    async fn exchange(&self, method: Method, path: &str, body: Vec<u8>) -> io::Result<(u16, Bytes)> {
        let stream = TcpStream::connect(self.contact.address).await?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // It ends with the sender.
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(format!("/api{path}"))
            .header(HOST, self.contact.address.to_string())
            .header(AUTHORIZATION, format!("Bearer {}", self.contact.token))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(io::Error::other)?;
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let status = response.status().as_u16();
        let body =
            Limited::new(response.into_body(), MAX_RESPONSE).collect().await.map_err(io::Error::other)?;
        Ok((status, body.to_bytes()))
    }
}
