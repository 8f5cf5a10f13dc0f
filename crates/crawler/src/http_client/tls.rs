//! TLS configuration: the platform's certificate authorities, versions by setting, no process-wide state.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, SupportedProtocolVersion};

use crate::error::{Error, Result};
use crate::settings::Settings;

/// Makes the configuration on first use: reading the certificate store takes milliseconds, and many crawls never
/// meet https.
#[derive(Debug)]
pub(crate) struct Tls {
    versions: &'static [&'static SupportedProtocolVersion],
    verify: bool,
    http2: bool,
    site: OnceLock<Arc<ClientConfig>>,
    proxy: OnceLock<Arc<ClientConfig>>,
}

impl Tls {
    /// By the settings `tls_min_version`, `download_verify_certificates` and `http2`.
    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        static FROM_12: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];
        let versions: &'static [_] = match settings.tls_min_version.as_str() {
            "1.2" => &FROM_12,
            "1.3" => &FROM_12[..1],
            other => {
                let shown = other.escape_debug();
                return Err(Error::usage(format!("tls_min_version: \"{shown}\" is neither 1.2 nor 1.3")));
            }
        };
        Ok(Self {
            versions,
            verify: settings.download_verify_certificates,
            http2: settings.http2,
            site: OnceLock::new(),
            proxy: OnceLock::new(),
        })
    }

    /// For connections to a site: offers HTTP/2 if set.
    pub(crate) fn for_site(&self) -> Arc<ClientConfig> {
        let make = || {
            let mut config = self.config();
            config.alpn_protocols = match self.http2 {
                true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
                false => vec![b"http/1.1".to_vec()],
            };
            Arc::new(config)
        };
        Arc::clone(self.site.get_or_init(make))
    }

    /// For connections to an https proxy, which speaks HTTP/1.1.
    pub(crate) fn for_proxy(&self) -> Arc<ClientConfig> {
        Arc::clone(self.proxy.get_or_init(|| Arc::new(self.config())))
    }

    fn config(&self) -> ClientConfig {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(self.versions)
            .expect("the provider has suites for TLS 1.2 and 1.3");
        if !self.verify {
            let verifier = Arc::new(NoVerifier(provider));
            return builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        }
        match rustls_platform_verifier::Verifier::new(provider) {
            Ok(verifier) => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
            }
            Err(error) => {
                tracing::error!(%error, "no certificate authorities found: every https address will fail");
                builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
            }
        }
    }
}

/// Takes every certificate, but still makes the server prove that it has its key.
#[derive(Debug)]
struct NoVerifier(Arc<CryptoProvider>);

impl ServerCertVerifier for NoVerifier {
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
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
