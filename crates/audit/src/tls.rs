//! What is known of the encryption of a host: the certificate that it presents, and the versions of TLS.

use huntsman_crawler::{CertificateError, CertificateFault, FetchError, Response, Timestamp};
use serde::{Deserialize, Serialize};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;

/// Characters of a name that are kept.
const MAX_NAME: usize = 200;
const DAY: i64 = 86_400;
/// Least number of bits of a key of RSA (NIST SP 800-131A).
const MIN_RSA_BITS: usize = 2_048;

/// Versions that RFC 8996 and RFC 7568 forbid.
const OLD_VERSIONS: [&str; 3] = ["TLS 1.1", "TLS 1.0", "SSL 3.0"];

/// The certificate of a host, as one connection showed it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TlsRecord {
    /// Why the certificate is not valid: `expired`, `not_yet_valid`, `wrong_name`, `self_signed`, `unknown_issuer` or `other`.
    pub fault: Option<String>,
    /// Whole days from the connection to the end of the certificate; negative if it was over.
    pub days_left: i64,
    /// The end of the certificate, such as `2027-03-31T10:00:00.000Z`.
    pub not_after: String,
    /// Whom it is for.
    pub subject: String,
    /// Who has signed it.
    pub issuer: String,
    /// Kind of the public key, such as `RSA` or `EC`.
    pub key: String,
    /// Bits of the public key; 0 if they are not known.
    pub key_bits: usize,
    /// Algorithm of the signature, such as `RSA with SHA-256`.
    pub signature: String,
    /// The version of TLS, such as `TLS 1.3`; `None` if the connection was refused.
    pub version: Option<String>,
    /// The version of HTTP that was agreed on, such as `h2` or `HTTP/1.1`; `None` if the connection was refused.
    pub http: Option<String>,
    /// The highest version of TLS below 1.2 that the host accepts, such as `TLS 1.1`; `None` if it accepts none, or was not asked: it is asked
    /// when its certificate was seen first, and not through a proxy.
    pub old_version: Option<String>,
}

impl TlsRecord {
    /// What an answer shows of its host; `None` without TLS.
    pub(crate) fn of_response(response: &Response) -> Option<Self> {
        let fault = response.extensions.get::<CertificateError>().map(|error| error.fault);
        let mut record = Self::of(response.certificate.as_ref()?, fault)?;
        record.version = response.tls_version.map(str::to_owned);
        record.http = Some(response.protocol().to_owned());
        Some(record)
    }

    /// What the answer to a question about old versions shows of its host; `None` if it accepts none.
    pub(crate) fn of_old_version(response: &Response) -> Option<Self> {
        // A downloader that does not know the question sends it as a request, by a version of its own.
        let version = response.tls_version.filter(|version| OLD_VERSIONS.contains(version))?;
        Some(Self { old_version: Some(version.to_owned()), ..Self::default() })
    }

    /// What a connection that was refused shows of the host.
    pub(crate) fn of_error(error: &FetchError) -> Option<Self> {
        let refused = error.certificate()?;
        Self::of(&refused.certificate, Some(refused.fault))
    }

    fn of(der: &[u8], fault: Option<CertificateFault>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let not_after = certificate.validity().not_after.timestamp();
        let now = i64::try_from(Timestamp::wall().0 / 1_000_000).unwrap_or(i64::MAX);
        let (key, key_bits) = key_of(&certificate);
        let name = |name: String| name.chars().take(MAX_NAME).collect::<String>();
        let is_self_signed = certificate.subject() == certificate.issuer();
        Some(Self {
            fault: fault.map(|fault| name_of(fault, is_self_signed).to_owned()),
            days_left: (not_after - now).div_euclid(DAY),
            not_after: Timestamp(u64::try_from(not_after).unwrap_or(0).saturating_mul(1_000_000))
                .to_rfc3339(),
            subject: name(certificate.subject().to_string()),
            issuer: name(certificate.issuer().to_string()),
            key: key.to_owned(),
            key_bits,
            signature: signature_name(&certificate.signature_algorithm.algorithm.to_id_string()),
            version: None,
            http: None,
            old_version: None,
        })
    }

    /// What makes the certificate weak, if it is.
    pub fn weakness(&self) -> Option<String> {
        if self.key == "RSA" && (1..MIN_RSA_BITS).contains(&self.key_bits) {
            return Some(format!("RSA key of {} bits", self.key_bits));
        }
        let is_old = ["SHA-1", "MD5"].iter().any(|hash| self.signature.ends_with(hash));
        is_old.then(|| format!("signed by {}", self.signature))
    }
}

fn name_of(fault: CertificateFault, is_self_signed: bool) -> &'static str {
    match fault {
        CertificateFault::Expired => "expired",
        CertificateFault::NotYetValid => "not_yet_valid",
        CertificateFault::WrongName => "wrong_name",
        CertificateFault::UnknownIssuer if is_self_signed => "self_signed",
        CertificateFault::UnknownIssuer => "unknown_issuer",
        _ => "other",
    }
}

/// Kind and bits of the public key.
fn key_of(certificate: &X509Certificate<'_>) -> (&'static str, usize) {
    match certificate.public_key().parsed() {
        Ok(PublicKey::RSA(key)) => {
            let digits: Vec<u8> = key.modulus.iter().copied().skip_while(|byte| *byte == 0).collect();
            let unused = digits.first().map_or(0, |byte| byte.leading_zeros() as usize);
            ("RSA", digits.len() * 8 - unused)
        }
        Ok(PublicKey::EC(point)) => ("EC", point.key_size()),
        Ok(PublicKey::DSA(_)) => ("DSA", 0),
        _ => ("other", 0),
    }
}

/// The name of an algorithm of signatures (RFC 3279, RFC 4055, RFC 5758, RFC 8410).
fn signature_name(identifier: &str) -> String {
    let name = match identifier {
        "1.2.840.113549.1.1.4" => "RSA with MD5",
        "1.2.840.113549.1.1.5" => "RSA with SHA-1",
        "1.2.840.113549.1.1.10" => "RSA-PSS",
        "1.2.840.113549.1.1.11" => "RSA with SHA-256",
        "1.2.840.113549.1.1.12" => "RSA with SHA-384",
        "1.2.840.113549.1.1.13" => "RSA with SHA-512",
        "1.2.840.10040.4.3" => "DSA with SHA-1",
        "1.2.840.10045.4.1" => "ECDSA with SHA-1",
        "1.2.840.10045.4.3.2" => "ECDSA with SHA-256",
        "1.2.840.10045.4.3.3" => "ECDSA with SHA-384",
        "1.2.840.10045.4.3.4" => "ECDSA with SHA-512",
        "1.3.101.112" => "Ed25519",
        other => other,
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_hashes_and_short_keys_are_weak_and_others_are_not() {
        let of = |key: &str, key_bits, signature: &str| {
            let signature = signature_name(signature);
            TlsRecord { key: key.to_owned(), key_bits, signature, ..TlsRecord::default() }.weakness()
        };
        assert_eq!(of("RSA", 2_048, "1.2.840.113549.1.1.5").as_deref(), Some("signed by RSA with SHA-1"));
        assert_eq!(of("RSA", 1_024, "1.2.840.113549.1.1.11").as_deref(), Some("RSA key of 1024 bits"));
        assert_eq!(of("RSA", 2_048, "1.2.840.113549.1.1.11"), None);
        assert_eq!(of("EC", 256, "1.2.840.10045.4.3.2"), None);
        assert_eq!(of("other", 0, "1.2.3"), None, "what is not known is no fault");
    }

    #[test]
    fn bytes_that_are_no_certificate_tell_nothing() {
        for bytes in [&b""[..], b"\x30\x80", b"\x30\x03\x02\x01\x01", &[0xff; 300]] {
            assert_eq!(TlsRecord::of(bytes, None), None);
        }
    }
}
