//! One connection to one server.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::error::{Error, ErrorKind};
use crate::refusal;
use crate::resp::{Reader, Reply, Shape, encode};
use crate::settings::{Settings, authority};

/// The address of a server: a host name or IP address, and a port.
pub(crate) type Node = (String, u16);

/// A connection after the handshake.
#[derive(Debug)]
pub(crate) struct Link {
    reader: Reader<Stream>,
    /// The server's id of this connection, by which another connection can end it.
    pub(crate) id: Option<i64>,
}

#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Secure(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// The reason why there is no connection.
#[derive(Debug)]
pub(crate) enum Unconnected {
    /// Another attempt may succeed.
    Lost(io::Error),
    /// Another attempt will not succeed.
    Never(Error),
}

impl Link {
    /// Connects, authenticates, and selects the database.
    pub(crate) fn connect(
        settings: &Settings,
        tls: Option<&Arc<ClientConfig>>,
        node: &Node,
        cluster: bool,
    ) -> Result<Self, Unconnected> {
        let stream = Stream::connect(settings, tls, node)?;
        let mut link = Self { reader: Reader::new(stream), id: None };
        let mut hello = Vec::new();
        let mut count = 0;
        if let Some(password) = &settings.password {
            match &settings.user {
                Some(user) => encode(&mut hello, &[b"AUTH", user.as_bytes(), password.as_bytes()]),
                None => encode(&mut hello, &[b"AUTH", password.as_bytes()]),
            }
            count += 1;
        }
        // A cluster has no other databases than 0.
        if settings.database != 0 && !cluster {
            encode(&mut hello, &[b"SELECT", settings.database.to_string().as_bytes()]);
            count += 1;
        }
        encode(&mut hello, &[b"CLIENT", b"ID"]);
        link.send(&hello).map_err(|error| unconnected(settings, error))?;
        for _ in 0..count {
            match link.reply(Shape::Any).map_err(|error| unconnected(settings, error))? {
                Reply::Error(error) if refusal::is_temporary(&error) => {
                    return Err(Unconnected::Lost(io::Error::other(error)));
                }
                Reply::Error(error) => {
                    return Err(Unconnected::Never(refusal::of(&error).at(settings.address())));
                }
                _ => {}
            }
        }
        match link.reply(Shape::Any).map_err(|error| unconnected(settings, error))? {
            // Servers before 5.0 do not have this command, and users may lack the right to it. It is only a convenience.
            Reply::Error(error) if refusal::is_temporary(&error) => {
                Err(Unconnected::Lost(io::Error::other(error)))
            }
            Reply::Error(error) if !error.starts_with("ERR") && !error.starts_with("NOPERM") => {
                Err(Unconnected::Never(refusal::of(&error).at(settings.address())))
            }
            reply => {
                link.id = reply.number();
                Ok(link)
            }
        }
    }

    /// Sends whole commands. Their replies come in order.
    pub(crate) fn send(&mut self, commands: &[u8]) -> io::Result<()> {
        let stream = self.reader.stream();
        stream.write_all(commands)?;
        stream.flush()
    }

    /// Reads the next reply.
    pub(crate) fn reply(&mut self, shape: Shape) -> io::Result<Reply> {
        self.reader.reply(shape)
    }
}

/// Whether this failure of a stream would recur with every attempt: the other side is not a Redis server, or not one to be trusted.
pub(crate) fn is_permanent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
}

/// The error for a failure that would recur.
pub(crate) fn permanent(settings: &Settings, error: io::Error) -> Error {
    let is_tls = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
    let message = if is_tls {
        format!(
            "{error}; if the server's certificate is of an authority of your own, name its file with ca=FILE; if the server speaks \
             no TLS, begin with redis://"
        )
    } else {
        format!("{error}; see whether a Redis server listens there, and whether it wants rediss://")
    };
    Error::new(ErrorKind::Refused, message).at(settings.address()).with_source(error)
}

fn unconnected(settings: &Settings, error: io::Error) -> Unconnected {
    if is_permanent(&error) {
        Unconnected::Never(permanent(settings, error))
    } else {
        Unconnected::Lost(error)
    }
}

impl Stream {
    fn connect(
        settings: &Settings,
        tls: Option<&Arc<ClientConfig>>,
        node: &Node,
    ) -> Result<Self, Unconnected> {
        let (host, port) = node;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in (host.as_str(), *port).to_socket_addrs().map_err(Unconnected::Lost)? {
            let connected = TcpStream::connect_timeout(&address, settings.timeout).and_then(|stream| {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(settings.timeout))?;
                stream.set_write_timeout(Some(settings.timeout))?;
                Ok(stream)
            });
            match (connected, tls) {
                (Ok(stream), None) => return Ok(Stream::Plain(stream)),
                (Ok(stream), Some(config)) => {
                    let failed = |why: String| {
                        let message = format!("{}: {why}", authority(host, *port));
                        Unconnected::Never(Error::new(ErrorKind::Refused, message))
                    };
                    let name =
                        ServerName::try_from(host.clone()).map_err(|error| failed(error.to_string()))?;
                    let session = ClientConnection::new(config.clone(), name)
                        .map_err(|error| failed(error.to_string()))?;
                    return Ok(Stream::Secure(Box::new(StreamOwned::new(session, stream))));
                }
                (Err(error), _) => last = error,
            }
        }
        Err(Unconnected::Lost(last))
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.read(buffer),
            Stream::Secure(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.write(bytes),
            Stream::Secure(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(stream) => stream.flush(),
            Stream::Secure(stream) => stream.flush(),
        }
    }
}

/// The TLS settings by which the server is verified; `None` without TLS.
pub(crate) fn tls(settings: &Settings) -> Result<Option<Arc<ClientConfig>>, Error> {
    if !settings.tls {
        return Ok(None);
    }
    // The provider is named here, because a library should neither need nor set that of the process.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let failed = |error: rustls::Error| {
        let message = format!("setting up TLS: {error}");
        Error::new(ErrorKind::Io, message).with_source(error)
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    let config = match &settings.ca {
        None => builder.with_platform_verifier().map_err(failed)?.with_no_client_auth(),
        Some(file) => {
            let wrong = |why: String| {
                let message = format!("{why}; ca names a file of certificates in PEM");
                Error::new(ErrorKind::Input, message).at(file.to_string_lossy())
            };
            let pem = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("there is no certificate in it".to_owned()));
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    };
    Ok(Some(Arc::new(config)))
}
