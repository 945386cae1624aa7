//! Encryption of connections, and the servers that a client trusts.

use std::fmt;
use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{
    Resumption, WantsClientCert, WebPkiServerVerifier, verify_server_name,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, Error,
    RootCertStore, SignatureScheme, WantsVerifier,
};

use super::failure::Failure;
use super::stream::Stream;

/// Configuration of a TLS client: the authorities that it trusts, if it checks any, and the name that a server's
/// certificate must be for. Every connection does a full handshake, as that of a new user does.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Error for certificates or a name that TLS has no use for.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// There is no certificate in PEM, or one that cannot be read.
    #[error("it has no certificates in PEM (`-----BEGIN CERTIFICATE-----`) that can be read: {0}")]
    Certificates(String),
    /// The name is neither a host's nor an address.
    #[error("no certificate can be for `{0}`")]
    Name(String),
    /// The TLS library refuses its own default versions of the protocol.
    #[error("TLS cannot be used: {0}")]
    Library(String),
}

impl Tls {
    /// Trusts the authorities whose certificates are in `pem`, servers that show one of these certificates themselves,
    /// and nobody else. `host` is a name or an address, and may have a port.
    ///
    /// # Errors
    ///
    /// Returns an error if `pem` has no readable certificate, or if `host` is neither a name nor an address.
    pub fn trusting(pem: &[u8], host: &str) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        let mut trusted = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|e| TlsError::Certificates(e.to_string()))?;
            trusted.push(certificate.clone());
            roots
                .add(certificate)
                .map_err(|e| TlsError::Certificates(e.to_string()))?;
        }
        if roots.is_empty() {
            return Err(TlsError::Certificates("there is none".to_owned()));
        }
        let provider = Arc::new(ring::default_provider());
        let by_authority = WebPkiServerVerifier::builder_with_provider(roots.into(), provider)
            .build()
            .map_err(|e| TlsError::Certificates(e.to_string()))?;
        let verifier = Arc::new(ByAuthorityOrItself {
            by_authority,
            trusted,
        });
        let builder = builder()?.dangerous();
        Self::of(builder.with_custom_certificate_verifier(verifier), host)
    }

    /// Trusts any server. It checks no certificate, so the answers may come from anybody on the way.
    ///
    /// # Errors
    ///
    /// Returns an error if `host` is neither a name nor an address.
    pub fn unchecked(host: &str) -> Result<Self, TlsError> {
        let verifier = Arc::new(Unchecked(ring::default_provider()));
        let builder = builder()?.dangerous();
        Self::of(builder.with_custom_certificate_verifier(verifier), host)
    }

    /// Returns the server's name as it stands in a URL.
    pub(super) fn host(&self) -> String {
        let name = self.name.to_str();
        if name.contains(':') {
            format!("[{name}]")
        } else {
            name.into_owned()
        }
    }

    /// Does the handshake over `stream`, and offers the one version of HTTP that is to be spoken.
    pub(super) async fn over(
        &self,
        http2: bool,
        stream: TcpStream,
    ) -> Result<Box<dyn Stream>, Failure> {
        let offered: &[u8] = if http2 { b"h2" } else { b"http/1.1" };
        let connected = TlsConnector::from(self.config.clone())
            .with_alpn(vec![offered.to_vec()])
            .connect(self.name.clone(), stream)
            .await
            .map_err(|error| of_handshake(&error))?;
        if http2 && connected.get_ref().1.alpn_protocol() != Some(offered) {
            return Err(Failure::NotHttp2("TLS: the server does not choose HTTP/2"));
        }
        Ok(Box::new(connected))
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

/// Checks certificates as any client does, with one exception: a server may show a trusted certificate itself, even if
/// it is an authority's. `openssl req -x509` makes such certificates, and curl takes them, too.
#[derive(Debug)]
struct ByAuthorityOrItself {
    by_authority: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for ByAuthorityOrItself {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let checked = self
            .by_authority
            .verify_server_cert(shown, intermediates, name, ocsp, now);
        match checked {
            // The library has checked its dates before, and the handshake checks its key.
            Err(error) if is_of_authority(&error) && self.trusted.contains(shown) => {
                verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}

/// Returns whether a server was refused for a certificate that is an authority's own.
fn is_of_authority(error: &Error) -> bool {
    match error {
        // The library has no other name for it.
        Error::InvalidCertificate(CertificateError::Other(other)) => {
            other.to_string().contains("CaUsedAsEndEntity")
        }
        _ => false,
    }
}

/// Accepts any certificate, from whoever has its key.
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

impl Stream for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// Returns the host without its port, and an IPv6 address without its brackets.
fn bare(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[')
        && let Some((address, _)) = rest.split_once(']')
    {
        return address;
    }
    match host.rsplit_once(':') {
        Some((name, _)) if !name.contains(':') => name,
        _ => host,
    }
}

/// Returns the failure for an error during the handshake.
fn of_handshake(error: &io::Error) -> Failure {
    let Some(cause) = error.get_ref() else {
        return Failure::from(io::Error::from(error.kind()));
    };
    Failure::Tls(match cause.downcast_ref() {
        Some(error) if is_of_authority(error) => {
            "the server shows an authority's own certificate; trust that very certificate by --cacert, or nobody's by \
             --insecure"
        }
        Some(Error::InvalidCertificate(wrong)) => certificate(wrong),
        Some(Error::InvalidMessage(_)) => "the server does not speak it",
        Some(Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => {
            "the server speaks another version of HTTP (2 is asked for by --http2, 1.1 without it)"
        }
        Some(_) => "client and server do not agree",
        None => return Failure::from(io::Error::from(error.kind())),
    })
}

fn certificate(wrong: &CertificateError) -> &'static str {
    match wrong {
        // Two authorities may have the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the server's certificate is of another authority than the one to trust"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the server's certificate is for another name"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired"
        }
        _ => "the server's certificate is not valid",
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
