//! Digests of blocks and payloads, as `sha1:` and Base32.

use data_encoding::{BASE32, BASE32_NOPAD, HEXLOWER_PERMISSIVE};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// The algorithm of a digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DigestKind {
    /// SHA-1, which all tools read.
    #[default]
    Sha1,
    /// SHA-256.
    Sha256,
}

impl DigestKind {
    fn label(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }

    /// The digest of some bytes.
    pub fn of(self, bytes: &[u8]) -> Digest {
        let mut hasher = Hasher::new(self);
        hasher.update(bytes);
        hasher.finish()
    }
}

/// A digest: its algorithm and its bytes. It is shown as in records: `sha1:` and Base32.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Digest {
    kind: DigestKind,
    bytes: Vec<u8>,
}

impl Digest {
    /// Reads the value of a field; `None` if the algorithm is not known or the value is not one of it. Hexadecimal values are read, too,
    /// because some programs write them.
    pub fn parse(value: &str) -> Option<Self> {
        let (label, value) = value.trim().split_once(':')?;
        let (kind, length) = match label.to_ascii_lowercase().as_str() {
            "sha1" | "sha-1" => (DigestKind::Sha1, 20),
            "sha256" | "sha-256" => (DigestKind::Sha256, 32),
            _ => return None,
        };
        let value = value.as_bytes();
        let bytes = if value.len() == 2 * length {
            HEXLOWER_PERMISSIVE.decode(value).ok()?
        } else {
            let upper = value.to_ascii_uppercase();
            BASE32.decode(&upper).or_else(|_| BASE32_NOPAD.decode(&upper)).ok()?
        };
        (bytes.len() == length).then_some(Self { kind, bytes })
    }

    /// The algorithm.
    pub fn kind(&self) -> DigestKind {
        self.kind
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.kind.label(), BASE32.encode(&self.bytes))
    }
}

/// Makes a digest of bytes that come in parts.
#[derive(Clone, Debug)]
pub struct Hasher(State);

#[derive(Clone, Debug)]
enum State {
    Sha1(Sha1),
    Sha256(Box<Sha256>),
}

impl Hasher {
    /// A digest of nothing yet.
    pub fn new(kind: DigestKind) -> Self {
        Self(match kind {
            DigestKind::Sha1 => State::Sha1(Sha1::new()),
            DigestKind::Sha256 => State::Sha256(Box::default()),
        })
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Sha1(state) => state.update(bytes),
            State::Sha256(state) => state.update(bytes),
        }
    }

    /// The digest of all bytes that were added.
    pub fn finish(self) -> Digest {
        match self.0 {
            State::Sha1(state) => Digest { kind: DigestKind::Sha1, bytes: state.finalize().to_vec() },
            State::Sha256(state) => Digest { kind: DigestKind::Sha256, bytes: state.finalize().to_vec() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_nothing_is_the_one_that_archives_are_full_of() {
        let digest = DigestKind::Sha1.of(b"");
        assert_eq!(digest.to_string(), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        for same in [
            "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
            "SHA-1:3i42h3s6nnfq2msvx7xzkyayscx5qbyj",
            "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709",
        ] {
            assert_eq!(Digest::parse(same).as_ref(), Some(&digest), "{same}");
        }
        for other in ["", "sha1", "sha1:", "md5:1B2M2Y8AsgTpgAmY7PhCfg==", "sha1:3I42", "sha256:3I42H3S6"] {
            assert_eq!(Digest::parse(other), None, "{other}");
        }
    }

    #[test]
    fn sha256_is_written_in_base32_and_read_again() {
        let digest = DigestKind::Sha256.of(b"abc");
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
    }
}
