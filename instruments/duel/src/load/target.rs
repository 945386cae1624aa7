//! Where a load goes, and whether it is encrypted on the way.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use thiserror::Error;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A server, over HTTP or HTTPS.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where it listens.
    pub address: SocketAddr,
    /// Whom to trust, for HTTPS.
    pub tls: Option<Tls>,
    /// What every request to it carries beside its own headers: who has logged in there.
    pub headers: Arc<[(String, String)]>,
}

impl Target {
    /// What URLs of it begin with: `https://localhost:8443`.
    pub fn origin(&self) -> String {
        match &self.tls {
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
    /// Over HTTP.
    fn from(address: SocketAddr) -> Self {
        Self {
            address,
            tls: None,
            headers: Arc::default(),
        }
    }
}

/// What a TLS client has to know: the authorities that it trusts, and the name that a server's certificate
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
#[derive(Debug, Error)]
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
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| TlsError::Library(e.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.resumption = Resumption::disabled();
        let bare = bare(host);
        let name = ServerName::try_from(bare.to_owned());
        Ok(Self {
            config: Arc::new(config),
            name: name.map_err(|_| TlsError::Name(bare.to_owned()))?,
        })
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
