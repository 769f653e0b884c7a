//! TLS, with a certificate and a key from files, which are read again when they change.

use axum_server::tls_rustls::RustlsConfig;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// How often the files are looked at: whoever renews certificates does so days before they expire.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// A chain and a key are a few pages; a larger file is another one.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Files with what TLS needs, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those between it and what clients know, in this order.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// TLS cannot be had with these files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// One cannot be read.
    #[error("{}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// One is not what it is for.
    #[error("{}: {what}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// They do not belong together.
    #[error("certificate {} and key {}", certificate.display(), key.display())]
    Pair {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// What the library says.
        #[source]
        source: rustls::Error,
    },
}

/// What files had in them.
#[derive(PartialEq, Eq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    let named = |source| TlsError::Read { file: file.to_owned(), source };
    if fs::metadata(file).map_err(named)?.len() > FILE_BYTES_MAX {
        return Err(TlsError::Content { file: file.to_owned(), what: "too large for PEM" });
    }
    fs::read(file).map_err(named)
}

impl TlsFiles {
    fn contents(&self) -> Result<Contents, TlsError> {
        Ok(Contents { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }

    fn config(&self, of: &Contents) -> Result<Arc<ServerConfig>, TlsError> {
        let wrong = |file: &Path, what| TlsError::Content { file: file.to_owned(), what };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&of.certificate).collect();
        let chain = chain.ok().filter(|chain: &Vec<_>| !chain.is_empty());
        let chain = chain.ok_or_else(|| wrong(&self.certificate, "no certificates in PEM"))?;
        // What the library says of a key is not passed on: it may have some of it in it.
        let key = PrivateKeyDer::from_pem_slice(&of.key).ok();
        let key = key.ok_or_else(|| wrong(&self.key, "no private key in PEM"))?;
        let pair = |source| TlsError::Pair {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            source,
        };
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(pair)?;
        let mut config =
            builder.with_no_client_auth().with_single_cert(chain, key).map_err(pair)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Reads the files.
    pub(crate) fn load(&self) -> Result<Tls, TlsError> {
        let contents = self.contents()?;
        let config = RustlsConfig::from_config(self.config(&contents)?);
        Ok(Tls { files: self.clone(), contents, config })
    }
}

/// What is served with.
pub(crate) struct Tls {
    files: TlsFiles,
    contents: Contents,
    config: RustlsConfig,
}

impl Tls {
    /// For the listener.
    pub(crate) fn config(&self) -> RustlsConfig {
        self.config.clone()
    }

    /// Takes files that changed, for whoever connects from then on. What cannot be used is said, and
    /// what there was is kept.
    pub(crate) async fn renew(mut self) -> ! {
        loop {
            sleep(LOOK_EVERY).await;
            self.look();
        }
    }

    fn look(&mut self) {
        let renewed = self.files.contents().and_then(|contents| {
            if contents == self.contents {
                return Ok(None);
            }
            self.files.config(&contents).map(|config| Some((contents, config)))
        });
        match renewed {
            Ok(Some((contents, config))) => {
                self.config.reload_from_config(config);
                self.contents = contents;
                tracing::info!(certificate = %self.files.certificate.display(), "renewed");
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(?error, "the certificate is not renewed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TlsFiles;
    use std::fs;
    use std::path::PathBuf;
    use std::sync::Arc;

    fn file(name: &str) -> PathBuf {
        [env!("CARGO_MANIFEST_DIR"), "tests/http/tls", name].iter().collect()
    }

    #[test]
    fn what_is_renewed_is_served_and_what_is_broken_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (certificate, key) = (folder.path().join("cert"), folder.path().join("key"));
        let copy = |name: &str| {
            fs::copy(file(&format!("{name}.cert.pem")), &certificate).expect("copied");
            fs::copy(file(&format!("{name}.key.pem")), &key).expect("copied");
        };
        copy("one");
        let files = TlsFiles { certificate: certificate.clone(), key: key.clone() };
        let mut tls = files.load().expect("it will do");
        let first = tls.config.get_inner();
        tls.look();
        assert!(Arc::ptr_eq(&first, &tls.config.get_inner()), "nothing changed");
        // Half of it is there: a key that is not the certificate's.
        fs::copy(file("two.key.pem"), &key).expect("copied");
        tls.look();
        assert!(Arc::ptr_eq(&first, &tls.config.get_inner()), "what there was is kept");
        copy("two");
        tls.look();
        assert!(!Arc::ptr_eq(&first, &tls.config.get_inner()));
    }

    #[test]
    fn what_is_wrong_is_said_by_file_and_never_by_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let (certificate, key) = (file("one.cert.pem"), file("one.key.pem"));
        let empty = folder.path().join("empty.pem");
        fs::write(&empty, "secret").expect("written");
        for (certificate, key, named) in [
            (empty.clone(), key.clone(), "empty.pem"),
            (certificate.clone(), empty.clone(), "empty.pem"),
            (certificate.clone(), folder.path().join("nowhere"), "nowhere"),
            (certificate, file("two.key.pem"), "two.key.pem"),
        ] {
            let error = TlsFiles { certificate, key }.load().err().expect("refused");
            let said = error.to_string();
            assert!(said.contains(named) && !said.contains("secret"), "{said}");
        }
    }
}
