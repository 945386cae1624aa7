//! Where a load goes, and whether it is encrypted on the way.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{Resumption, WantsClientCert};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    WantsVerifier,
};

/// A server, and how it is spoken to.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where it listens.
    pub address: SocketAddr,
    /// What it speaks.
    pub protocol: Protocol,
    /// What every request to it carries beside its own headers: who has logged in there.
    pub headers: Arc<[(String, String)]>,
}

/// What a server speaks; HTTP/1.1 in plain unless told otherwise.
#[derive(Debug, Clone, Default)]
pub struct Protocol {
    /// Whom to trust, for HTTPS.
    pub tls: Option<Tls>,
    /// HTTP/2 and nothing else: chosen by ALPN in HTTPS, known beforehand in plain HTTP.
    pub http2: bool,
}

impl Target {
    /// What URLs of it begin with: `https://localhost:8443`.
    pub fn origin(&self) -> String {
        match &self.protocol.tls {
            None => format!("http://{}", self.address),
            Some(tls) => {
                let (name, port) = (tls.name.to_str(), self.address.port());
                if name.contains(':') {
                    format!("https://[{name}]:{port}")
                } else {
                    format!("https://{name}:{port}")
                }
            }
        }
    }
}

impl From<SocketAddr> for Target {
    /// Over HTTP/1.1.
    fn from(address: SocketAddr) -> Self {
        Self {
            address,
            protocol: Protocol::default(),
            headers: Arc::default(),
        }
    }
}

/// What a TLS client has to know: the authorities that it trusts, if it asks for any, and the name that a server's certificate
/// must be for. Every connection shakes hands in full, as that of a new user does.
#[derive(Clone)]
pub struct Tls {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Certificates or a name that TLS has no use for.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// No certificate in PEM is there, or one that cannot be read.
    #[error("it has no certificates in PEM (`-----BEGIN CERTIFICATE-----`) that can be read: {0}")]
    Certificates(String),
    /// The name is neither a host's nor an address.
    #[error("no certificate can be for `{0}`")]
    Name(String),
    /// The TLS library has no protocol in common with itself.
    #[error("TLS cannot be used: {0}")]
    Library(String),
}

impl Tls {
    /// Trusts the authorities whose certificates are in `pem`, and nobody else. `host` is a name or an
    /// address, and may have a port.
    ///
    /// # Errors
    ///
    /// When `pem` has no certificate, or `host` is no name.
    pub fn trusting(pem: &[u8], host: &str) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|e| TlsError::Certificates(e.to_string()))?;
            roots
                .add(certificate)
                .map_err(|e| TlsError::Certificates(e.to_string()))?;
        }
        if roots.is_empty() {
            return Err(TlsError::Certificates("there is none".to_owned()));
        }
        Self::of(builder()?.with_root_certificates(roots), host)
    }

    /// Trusts whoever answers: the certificate is not checked, and so may be of anybody on the way.
    ///
    /// # Errors
    ///
    /// When `host` is no name.
    pub fn unchecked(host: &str) -> Result<Self, TlsError> {
        let verifier = Arc::new(Unchecked(ring::default_provider()));
        let builder = builder()?.dangerous();
        Self::of(builder.with_custom_certificate_verifier(verifier), host)
    }

    fn of(
        builder: ConfigBuilder<ClientConfig, WantsClientCert>,
        host: &str,
    ) -> Result<Self, TlsError> {
        let mut config = builder.with_no_client_auth();
        config.resumption = Resumption::disabled();
        let bare = bare(host);
        let name = ServerName::try_from(bare.to_owned());
        Ok(Self {
            config: Arc::new(config),
            name: name.map_err(|_| TlsError::Name(bare.to_owned()))?,
        })
    }
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, TlsError> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| TlsError::Library(e.to_string()))
}

/// Takes any certificate, from whoever has its key.
#[derive(Debug)]
struct Unchecked(CryptoProvider);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Without the port, and an IPv6 address without its brackets.
fn bare(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    match host.rsplit_once(':') {
        Some((name, _)) if !name.contains(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_known_without_its_port() {
        for (host, expected) in [
            ("localhost:8443", "localhost"),
            ("shop.test", "shop.test"),
            ("127.0.0.1:1", "127.0.0.1"),
            ("[::1]:8443", "::1"),
            ("::1", "::1"),
        ] {
            assert_eq!(bare(host), expected);
        }
    }

    #[test]
    fn a_file_without_certificates_is_told() {
        let said = Tls::trusting(b"no PEM", "localhost").unwrap_err();
        assert!(said.to_string().contains("there is none"), "{said}");
    }
}
