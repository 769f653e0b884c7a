//! TLS, from the settings' files.

use crate::place::{Place, tokens};
use capacity_portal::{Authority, PortalSettings, TlsFiles};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

fn file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/http/tls", name].iter().collect()
}

/// Asks over TLS, knowing this certificate alone.
fn ask(address: &str, known: &str) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file(known)).expect("a certificate")).expect("added");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().expect("versions");
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut stream = StreamOwned::new(client, TcpStream::connect(address)?);
    stream.write_all(b"GET /sign-in HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    Ok(said)
}

#[tokio::test]
async fn tls_serves_the_certificate_of_the_settings() {
    let tls = TlsFiles { certificate: file("one.cert.pem"), key: file("one.key.pem") };
    let authority = Authority::new(tokens(), false).expect("tokens");
    let settings = PortalSettings { authority, tls: Some(tls), ..PortalSettings::default() };
    let place = Place::set(settings).await;
    let address = place.base.strip_prefix("http://").expect("a base").to_owned();
    let ask = async |known: &'static str| {
        let address = address.clone();
        tokio::task::spawn_blocking(move || ask(&address, known)).await.expect("it ran")
    };
    let said = ask("one.cert.pem").await.expect("an answer");
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    assert!(said.to_lowercase().contains("strict-transport-security: max-age="), "{said}");
    ask("two.cert.pem").await.expect_err("another certificate");
    // A client without TLS gets no response.
    assert!(place.client.get(format!("{}/live", place.base)).send().await.is_err());
}
