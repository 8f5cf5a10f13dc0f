//! The authorities that a client trusts, and the recording of bad certificates: instead of a refusal, the error that
//! the system's verifier reports is stored by certificate.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hashbrown::HashMap;
use rustls::CertificateError as Judged;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, SupportedProtocolVersion};
use rustls_platform_verifier::Verifier;
use xxhash_rust::xxh3::Xxh3;

use super::attempt::ATTEMPT;
use crate::error::{Error, Result};
use crate::settings::Settings;

/// Number of names in each of two generations. A name is looked up with every response on its connection, and no
/// connection lives as long as it takes for that many bad certificates to arrive.
const GENERATION: usize = 16_384;

/// What is wrong with the certificate of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CertificateFault {
    /// Its time is over.
    Expired,
    /// Its time has not begun.
    NotYetValid,
    /// It is for other names than that of the server.
    WrongName,
    /// No authority that is trusted stands behind it; so it is with certificates that are signed by themselves.
    UnknownIssuer,
    /// Anything else, such as a signature by an algorithm that is not accepted.
    Other,
}

impl CertificateFault {
    fn of(error: &rustls::Error) -> Self {
        let rustls::Error::InvalidCertificate(judged) = error else { return Self::Other };
        match judged {
            Judged::Expired | Judged::ExpiredContext { .. } => Self::Expired,
            Judged::NotValidYet | Judged::NotValidYetContext { .. } => Self::NotYetValid,
            Judged::NotValidForName | Judged::NotValidForNameContext { .. } => Self::WrongName,
            Judged::UnknownIssuer => Self::UnknownIssuer,
            // An authority that presents itself as a server is signed by itself.
            Judged::Other(error) if error.to_string().contains("CaUsedAsEndEntity") => Self::UnknownIssuer,
            _ => Self::Other,
        }
    }
}

/// A certificate for which a connection was refused. An error of a fetch has it
/// ([`FetchError::certificate`](crate::FetchError::certificate)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCertificate {
    /// What is wrong with it.
    pub fault: CertificateFault,
    /// The certificate in DER.
    pub certificate: Bytes,
}

/// Why the certificate of a server is not valid. Stored in the extensions of a response that is accepted all the same
/// (`download_verify_certificates = "record"`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateError {
    /// The kind of error.
    pub fault: CertificateFault,
    /// The error in a sentence for people.
    pub message: Arc<str>,
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CertificateError {}

/// The recorded errors of certificates. The HTTP library gives a response the certificate of its connection but no
/// result of the handshake, so errors are looked up by name and certificate.
#[derive(Debug, Default)]
pub(crate) struct BadCertificates(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<u128, CertificateError, foldhash::fast::RandomState>,
    old: HashMap<u128, CertificateError, foldhash::fast::RandomState>,
}

impl BadCertificates {
    /// The error of the certificate that a host presented, if there is one.
    pub(crate) fn error(&self, host: &str, certificate: &[u8]) -> Option<CertificateError> {
        let key = key(host, certificate);
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.young.get(&key).or_else(|| known.old.get(&key)).cloned()
    }

    fn note(&self, host: &str, certificate: &[u8], error: Option<CertificateError>) {
        let key = key(host, certificate);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.old.remove(&key);
        match error {
            None => drop(known.young.remove(&key)),
            Some(error) => {
                if known.young.len() >= GENERATION {
                    known.old = std::mem::take(&mut known.young);
                }
                known.young.insert(key, error);
            }
        }
    }
}

/// A name as URLs and handshakes have it in common: without brackets around addresses, and without a dot at the end.
pub(crate) fn bare(host: &str) -> &str {
    host.trim_matches(['[', ']']).trim_end_matches('.')
}

/// The key of a name and a certificate.
fn key(host: &str, certificate: &[u8]) -> u128 {
    let mut hash = Xxh3::new();
    hash.update(bare(host).as_bytes());
    hash.update(b"\n");
    hash.update(certificate);
    hash.digest128()
}

/// Leaves all judgements to another verifier, and tells the attempt that connects which version of TLS was agreed on,
/// which certificate was refused, and which one a server behind a proxy presented: the HTTP library tells none of these.
/// With a store of bad certificates it notes the error of a certificate there and accepts it; a proxy gets credentials,
/// so it must have a good one, unless it has the name of the target and cannot be told apart. Signatures are judged in any case, so a server that presents a certificate has
/// its key.
#[derive(Debug)]
struct Witness {
    judge: Arc<dyn ServerCertVerifier>,
    bad: Option<Arc<BadCertificates>>,
}

impl Witness {
    fn tell<T>(
        certificate: &CertificateDer<'_>,
        judged: Result<T, rustls::Error>,
    ) -> Result<T, rustls::Error> {
        if let Err(error) = &judged {
            let refused = RefusedCertificate {
                fault: CertificateFault::of(error),
                certificate: Bytes::copy_from_slice(certificate),
            };
            // Outside of an attempt no caller wants to know.
            let _ = ATTEMPT.try_with(|attempt| attempt.refused_certificate(refused));
        }
        judged
    }
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let judged =
            self.judge.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        let presented = ATTEMPT.try_with(|attempt| {
            attempt.presented(server_name, end_entity);
            attempt.is_with(server_name)
        });
        let bad = self.bad.as_ref().filter(|_| presented.unwrap_or(true));
        let Some(bad) = bad else { return Self::tell(end_entity, judged) };
        let error = judged.err().map(|error| CertificateError {
            fault: CertificateFault::of(&error),
            message: error.to_string().into(),
        });
        bad.note(&server_name.to_str(), end_entity, error);
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let _ = ATTEMPT.try_with(|attempt| attempt.agreed_on("TLS 1.2", cert));
        Self::tell(cert, self.judge.verify_tls12_signature(message, cert, dss))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let _ = ATTEMPT.try_with(|attempt| attempt.agreed_on("TLS 1.3", cert));
        Self::tell(cert, self.judge.verify_tls13_signature(message, cert, dss))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.judge.supported_verify_schemes()
    }
}

/// Accepts every certificate without reading it.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        // Servers choose among these schemes. The list is longer than what the provider can verify, because nothing
        // is verified.
        let more = [
            SignatureScheme::ECDSA_NISTP521_SHA512,
            SignatureScheme::ED448,
            SignatureScheme::RSA_PKCS1_SHA1,
            SignatureScheme::ECDSA_SHA1_Legacy,
        ];
        self.0.signature_verification_algorithms.supported_schemes().into_iter().chain(more).collect()
    }
}

/// Authorities that are trusted besides those of the system.
#[derive(Clone, Debug, Default)]
pub(crate) struct Authorities(Vec<CertificateDer<'static>>);

impl Authorities {
    /// Reads the file that the setting `tls_ca_file` names.
    ///
    /// # Errors
    /// The file cannot be read, has no certificate, or one that is none of an authority; the error names it.
    pub(crate) fn of(settings: &Settings) -> Result<Self> {
        let Some(file) = &settings.tls_ca_file else { return Ok(Self::default()) };
        let wrong = |why: String| {
            Error::usage(format!("setting tls_ca_file: {file}: {why}; name a file of certificates in PEM"))
        };
        let pem = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
        let mut roots = RootCertStore::empty();
        let mut authorities = Vec::new();
        for (number, certificate) in CertificateDer::pem_slice_iter(&pem).enumerate() {
            let failed = |error: &dyn fmt::Display| {
                wrong(format!("certificate {} cannot be read: {error}", number + 1))
            };
            let certificate = certificate.map_err(|error| failed(&error))?;
            roots.add(certificate.clone()).map_err(|error| failed(&error))?;
            authorities.push(certificate);
        }
        if authorities.is_empty() {
            return Err(wrong("there is no certificate in it".to_owned()));
        }
        Ok(Self(authorities))
    }

    /// The verifier of the system, which trusts these authorities, too.
    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Verifier> {
        let provider = Arc::clone(provider);
        let verifier = match self.0.is_empty() {
            true => Verifier::new(provider),
            false => Verifier::new_with_extra_roots(self.0.iter().cloned(), provider),
        };
        verifier.map_err(Error::from)
    }
}

/// Which certificates a client accepts.
#[derive(Clone, Debug)]
pub(crate) enum Trust {
    /// The certificates that the system accepts.
    System,
    /// All certificates; the errors that the system finds are recorded.
    Recorded(Arc<BadCertificates>),
    /// All certificates, without recording errors.
    All,
    /// None: the client is only for connections without TLS. Reading the certificates of the system would take
    /// milliseconds.
    None,
}

impl Trust {
    /// A TLS configuration with the provider `ring`. The provider is named here and not taken from the process,
    /// because a library should neither depend on a process-wide provider nor set one.
    ///
    /// # Errors
    /// The system's certificates cannot be read.
    pub(crate) fn config(
        self,
        authorities: &Authorities,
        versions: &[&'static SupportedProtocolVersion],
        http2: bool,
    ) -> Result<ClientConfig> {
        let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::ring::default_provider());
        let system = || authorities.verifier(&provider);
        let builder =
            ClientConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(versions)?;
        let judged = |judge: Arc<dyn ServerCertVerifier>, bad| {
            builder.clone().dangerous().with_custom_certificate_verifier(Arc::new(Witness { judge, bad }))
        };
        let builder = match self {
            Self::System => judged(Arc::new(system()?), None),
            Self::Recorded(bad) => judged(Arc::new(system()?), Some(bad)),
            Self::All => judged(Arc::new(Unverified(Arc::clone(&provider))), None),
            Self::None => builder.with_root_certificates(RootCertStore::empty()),
        };
        let mut config = builder.with_no_client_auth();
        config.alpn_protocols = match http2 {
            true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            false => vec![b"http/1.1".to_vec()],
        };
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_found_by_name_and_certificate_and_bounded() {
        let bad = BadCertificates::default();
        let error = |message: &str| {
            Some(CertificateError { fault: CertificateFault::Expired, message: message.into() })
        };
        bad.note("::1", b"one", error("expired"));
        assert_eq!(bad.error("[::1]", b"one").unwrap().to_string(), "expired");
        assert!(bad.error("[::1]", b"two").is_none() && bad.error("a.test", b"one").is_none());
        bad.note("::1", b"one", None);
        assert!(bad.error("[::1]", b"one").is_none(), "it is valid by now");
        for n in 0..3 * GENERATION {
            bad.note(&format!("h{n}"), b"x", error(""));
        }
        let known = bad.0.lock().unwrap();
        assert!(known.young.len() + known.old.len() <= 2 * GENERATION);
    }
}
