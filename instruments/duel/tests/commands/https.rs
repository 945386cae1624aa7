//! Tests of `load` and `compare` over HTTPS, with a certificate authority of the tests' own.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use terminal::testing::{Ran, once_in_three};

/// The authority that signed [`LOCALHOST`] and [`OTHER_NAME`]: see the README beside it.
const AUTHORITY: &str = include_str!("../certificates/authority.pem");
const LOCALHOST: &[u8] = include_bytes!("../certificates/localhost.der");
const OTHER_NAME: &[u8] = include_bytes!("../certificates/shop.test.der");
/// Certificate for `localhost`, by another authority.
const OF_A_STRANGER: &[u8] = include_bytes!("../certificates/stranger.der");
/// Certificate of an authority, for `localhost`, as `openssl req -x509` makes it.
const SELF_SIGNED: &str = include_str!("../certificates/self-signed.pem");
/// Private key of all these certificates.
const KEY: &[u8] = include_bytes!("../certificates/key.der");

/// Services of a test, which end when the value is dropped.
struct Servers {
    runtime: Runtime,
    folder: TempDir,
}

impl Servers {
    fn new() -> Self {
        Self {
            runtime: Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn file(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Starts a service with this certificate, and returns its port.
    fn serve(&self, certificate: &'static [u8]) -> u16 {
        let key = PrivateKeyDer::try_from(KEY).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(certificate)], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = self.runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.unwrap();
        let port = listener.local_addr().unwrap().port();
        self.runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(stream).await.ok()?;
                    let mut request = Vec::new();
                    loop {
                        stream
                            .read_buf(&mut request)
                            .await
                            .ok()
                            .filter(|n| *n > 0)?;
                        if request.ends_with(b"\r\n\r\n") {
                            request.clear();
                            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret";
                            stream.write_all(answer).await.ok()?;
                            stream.flush().await.ok()?;
                        }
                    }
                    #[allow(unreachable_code)] // For the type of the task.
                    Some(())
                });
            }
        });
        port
    }

    fn run(&self, line: &str) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_duel"));
        command.args(line.split_whitespace());
        Ran::of(command.current_dir(self.folder.path()))
    }
}

#[test]
fn a_service_is_loaded_and_compared_over_https() {
    let servers = Servers::new();
    servers.file("ca.pem", AUTHORITY);
    let [base, change] =
        [(); 2].map(|()| format!("https://localhost:{}", servers.serve(LOCALHOST)));
    let short = "--cacert ca.pem --warm-up 0 --users 3 --get /";
    for keep_alive in ["", "--no-keep-alive"] {
        once_in_three(|| {
            let said = servers.run(&format!(
                "load {base} --seconds 1 {short} {keep_alive} --k6 load.js --locust load.py --format json"
            ));
            // If other programs leave the generator no CPU, the run is invalid.
            assert!(matches!(said.code, Some(0 | 3)), "{said:?}");
            let value: Value = serde_json::from_str(&said.out).unwrap();
            assert_eq!(value["wrong_answers"], 0);
            assert_eq!(value["errors"], Value::Object(serde_json::Map::new()));
            (value["completed"].as_u64().unwrap() > 0, said)
        });
    }
    // The scripts name the setting that their user has to make.
    for (script, word) in [
        ("load.js", "SSL_CERT_FILE=ca.pem"),
        ("load.py", "cafile=CACERT"),
    ] {
        let script = fs::read_to_string(servers.folder.path().join(script)).unwrap();
        assert!(script.contains(word) && script.contains(&base), "{script}");
    }
    let said = servers.run(&format!(
        "compare --running {base} {change} --rate 50 --seconds 1 --at-most 1 {short}"
    ));
    assert!(matches!(said.code, Some(0 | 1 | 3)), "{said:?}");
    assert!(
        said.out.contains("neither restarted nor pinned"),
        "{said:?}"
    );
}

#[test]
fn whom_nobody_trusts_is_told_before_the_load() {
    let servers = Servers::new();
    servers.file("ca.pem", AUTHORITY);
    servers.file("none.pem", "nothing\n");
    let localhost = servers.serve(LOCALHOST);
    let other_name = servers.serve(OTHER_NAME);
    let of_a_stranger = servers.serve(OF_A_STRANGER);
    for (code, scheme, port, cacert, sentence) in [
        (3, "https", other_name, "ca.pem", "for another name"),
        (3, "https", of_a_stranger, "ca.pem", "of another authority"),
        (2, "https", localhost, "none.pem", "no certificates in PEM"),
        (
            2,
            "https",
            localhost,
            "no.pem",
            "--cacert no.pem: No such file",
        ),
        (2, "http", localhost, "ca.pem", "a URL with https://"),
    ] {
        let said = servers.run(&format!(
            "load {scheme}://localhost:{port}/ --cacert {cacert}"
        ));
        assert_eq!(said.code, Some(code), "{said:?}");
        assert!(said.err.contains(sentence), "no `{sentence}` in {said:?}");
    }
}

#[test]
fn plain_http_to_a_port_that_speaks_tls_is_told() {
    let servers = Servers::new();
    let port = servers.serve(LOCALHOST);
    for command in ["load", "look"] {
        let said = servers.run(&format!("{command} http://localhost:{port}"));
        assert_eq!(said.code, Some(3), "{said:?}");
        assert!(said.err.contains("HTTPS is spoken there"), "{said:?}");
    }
    let login = format!("load http://localhost:{port} --login /login");
    let said = servers.run(&login).refused(3);
    assert!(said.contains("add --cacert FILE"), "{said}");
}

/// curl takes such a certificate, too.
#[test]
fn a_self_signed_certificate_is_taken_for_the_host_that_it_names() {
    let servers = Servers::new();
    servers.file("own.pem", SELF_SIGNED);
    servers.file("ca.pem", AUTHORITY);
    let certificate = CertificateDer::from_pem_slice(SELF_SIGNED.as_bytes()).unwrap();
    let port = servers.serve(certificate.to_vec().leak());
    let ask = |host: &str, cacert: &str| {
        servers.run(&format!(
            "load https://{host}:{port}/ --cacert {cacert} --users 1 --warm-up 0 --seconds 0.2"
        ))
    };
    let said = ask("localhost", "own.pem");
    // If other programs leave the generator no CPU, the run is invalid.
    assert!(matches!(said.code, Some(0 | 3)), "{said:?}");
    assert!(said.out.contains("right answers"), "{said:?}");
    let said = ask("127.0.0.1", "own.pem");
    assert!(said.err.contains("for another name"), "{said:?}");
    let said = ask("localhost", "ca.pem");
    assert!(
        said.err.contains("trust that very certificate by --cacert"),
        "{said:?}"
    );
}
