//! TLS with a certificate and a key from files, which are reloaded when they change.

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

/// How often the files are checked: certificates are renewed days before they expire.
const CHECK_EVERY: Duration = Duration::from_secs(60);

/// Size limit: a chain or a key has a few pages, so a larger file is a wrong one.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Certificate and key, in PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, then its intermediate certificates.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The files cannot be used for TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// A file has the wrong content.
    #[error("{}: {what}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// The defect.
        what: &'static str,
    },
    /// Certificate and key do not match.
    #[error("certificate {} and key {}", certificate.display(), key.display())]
    Pair {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// Error of the TLS library.
        #[source]
        source: rustls::Error,
    },
}

/// Contents of the files.
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
        // The library's error is dropped: it may contain parts of the key.
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

/// TLS configuration of the listener.
pub(crate) struct Tls {
    files: TlsFiles,
    contents: Contents,
    config: RustlsConfig,
}

impl Tls {
    /// Configuration of the listener.
    pub(crate) fn config(&self) -> RustlsConfig {
        self.config.clone()
    }

    /// Reloads changed files, for new connections. If a file is invalid, logs it and keeps the loaded
    /// configuration.
    pub(crate) async fn reload(mut self) -> ! {
        loop {
            sleep(CHECK_EVERY).await;
            self.check();
        }
    }

    fn check(&mut self) {
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
                tracing::info!(certificate = %self.files.certificate.display(), "certificate reloaded");
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(?error, "certificate not reloaded"),
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
    fn changed_files_are_reloaded_unless_invalid() {
        let folder = tempfile::tempdir().expect("a folder");
        let (certificate, key) = (folder.path().join("cert"), folder.path().join("key"));
        let copy = |name: &str| {
            fs::copy(file(&format!("{name}.cert.pem")), &certificate).expect("copied");
            fs::copy(file(&format!("{name}.key.pem")), &key).expect("copied");
        };
        copy("one");
        let files = TlsFiles { certificate: certificate.clone(), key: key.clone() };
        let mut tls = files.load().expect("valid files");
        let first = tls.config.get_inner();
        tls.check();
        assert!(Arc::ptr_eq(&first, &tls.config.get_inner()), "nothing changed");
        // Only one of two files is replaced: the key does not match the certificate.
        fs::copy(file("two.key.pem"), &key).expect("copied");
        tls.check();
        assert!(Arc::ptr_eq(&first, &tls.config.get_inner()), "the loaded configuration stays");
        copy("two");
        tls.check();
        assert!(!Arc::ptr_eq(&first, &tls.config.get_inner()));
    }

    #[test]
    fn error_names_the_file_and_never_its_content() {
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
