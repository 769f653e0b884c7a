//! Selects server and token: from the command line, the environment, or the file of `ras login`.

use crate::cli::{Secret, ServerOptions, StoreOptions};
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Maximum size of a token file.
const FILE_BYTES_MAX: u64 = 1 << 12;

/// A server and the token for it.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its URL, without a trailing slash.
    pub url: String,
    /// The token; without one, requests are anonymous.
    pub token: Option<Secret>,
}

/// The file of `ras login`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Noted {
    server: String,
    token: String,
}

impl Server {
    /// The server given by option or environment, else the one of `ras login`.
    ///
    /// # Errors
    /// If no server is given, or a file cannot be read.
    pub fn of(options: &ServerOptions) -> Result<Server> {
        Server::find(options)?.with_context(|| {
            "no server: give --server or RAS_SERVER, or use `ras login`".to_owned()
        })
    }

    /// The server for a subcommand that also works on a store. Precedence: a server given
    /// explicitly, a store given explicitly, the server of `ras login`, the store in the default
    /// folder, which is `None`.
    ///
    /// # Errors
    /// As [`Server::of`], and if the command line has both.
    pub fn or_store(options: &ServerOptions, store: &StoreOptions) -> Result<Option<Server>> {
        let named = options.server.is_some();
        if named && store.data.is_some() {
            bail!("give either a server or a store, not both");
        }
        let store = store.data.is_some() || store.database_url.is_some() || store.config.is_some();
        if store && !named {
            return Ok(None);
        }
        Server::find(options)
    }

    fn find(options: &ServerOptions) -> Result<Option<Server>> {
        let noted = read(options)?;
        let url = options.server.as_deref().map(address).transpose()?;
        let Some(url) = url.or_else(|| noted.as_ref().map(|noted| noted.server.clone())) else {
            return Ok(None);
        };
        let noted = noted.filter(|noted| noted.server == url).map(|noted| Secret(noted.token));
        let token = given_token(options)?.or(noted);
        Ok(Some(Server { url, token }))
    }
}

/// The token of the command line or the environment.
///
/// # Errors
/// If a file is given and has no token.
pub fn given_token(options: &ServerOptions) -> Result<Option<Secret>> {
    let Some(path) = &options.token_file else {
        return Ok(options.token.clone().filter(|token| !token.0.is_empty()));
    };
    let name = || format!("token file {}", path.display());
    let size = fs::metadata(path).with_context(name)?.len();
    ensure!(size <= FILE_BYTES_MAX, "{}: {size} bytes are too long for a token", name());
    let text = fs::read_to_string(path).with_context(name)?;
    let token = text.trim();
    ensure!(!token.is_empty(), "{}: it is empty", name());
    Ok(Some(Secret(token.to_owned())))
}

/// Checks a server's URL (http or https, without credentials and query) and strips trailing
/// slashes.
///
/// # Errors
/// If it is not a URL.
pub fn address(text: &str) -> Result<String> {
    let url = url::Url::parse(text.trim());
    let url =
        url.with_context(|| format!("server {text:?} is not a URL such as `https://ras.example`"))?;
    let plain = url.username().is_empty() && url.password().is_none();
    ensure!(
        matches!(url.scheme(), "http" | "https") && url.host().is_some() && plain,
        "server {text:?} is not a URL such as `https://ras.example`"
    );
    ensure!(
        url.query().is_none() && url.fragment().is_none(),
        "server {text:?}: a URL without query and fragment is expected"
    );
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Path of the file of `ras login`.
///
/// # Errors
/// If neither `XDG_CONFIG_HOME` nor `HOME` is set.
pub fn file(options: &ServerOptions) -> Result<PathBuf> {
    let folder = options.config_home.as_deref().filter(|folder| folder.is_absolute());
    let folder = match (folder, &options.home) {
        (Some(folder), _) => folder.to_owned(),
        (None, Some(home)) => home.join(".config"),
        (None, None) => bail!("no folder for settings: neither XDG_CONFIG_HOME nor HOME is set"),
    };
    Ok(folder.join("ras").join("login.toml"))
}

fn read(options: &ServerOptions) -> Result<Option<Noted>> {
    let Ok(path) = file(options) else { return Ok(None) };
    let name = || format!("{} (written by `ras login`)", path.display());
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(name),
    };
    // The contents are not shown: they are secret.
    let noted = toml::from_str(&text).ok();
    noted.map(Some).with_context(|| format!("{} cannot be read", name()))
}

/// Saves a server and a token in a file that only the user can read.
///
/// # Errors
/// If the file cannot be written.
pub fn write(options: &ServerOptions, server: &Server) -> Result<PathBuf> {
    let path = file(options)?;
    let name = || format!("saving the server in {}", path.display());
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(name)?;
    let token = server.token.as_ref().map_or("", |token| &token.0).to_owned();
    let noted = Noted { server: server.url.clone(), token };
    // Atomic, and readable only by its owner from the beginning.
    let mut file = tempfile::NamedTempFile::new_in(folder).with_context(name)?;
    let text = toml::to_string(&noted).with_context(name)?;
    file.write_all(text.as_bytes()).with_context(name)?;
    file.as_file().sync_all().with_context(name)?;
    file.persist(&path).with_context(name)?;
    Ok(path)
}

/// Removes the file. Returns whether it existed.
///
/// # Errors
/// If the file cannot be removed.
pub fn forget(options: &ServerOptions) -> Result<Option<PathBuf>> {
    let path = file(options)?;
    match fs::remove_file(&path) {
        Ok(()) => Ok(Some(path)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("removing {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(folder: &Path) -> ServerOptions {
        ServerOptions { config_home: Some(folder.to_owned()), ..ServerOptions::default() }
    }

    fn store() -> StoreOptions {
        StoreOptions {
            database_url: None,
            data: None,
            postgres_programs: None,
            config: None,
            actor: "me".to_owned(),
            state_home: None,
        }
    }

    #[test]
    fn a_server_is_found_by_one_rule() {
        let folder = tempfile::tempdir().expect("a folder");
        let none = options(folder.path());
        assert!(Server::of(&none).is_err());
        assert!(Server::or_store(&none, &store()).expect("decided").is_none());

        let token = Some(Secret("noted".to_owned()));
        let home = Server { url: "https://home".to_owned(), token };
        write(&none, &home).expect("noted");
        let found = Server::or_store(&none, &store()).expect("decided").expect("a server");
        assert_eq!((found.url.as_str(), found.token), ("https://home", home.token.clone()));
        let data = StoreOptions { data: Some("data".into()), ..store() };
        assert!(Server::or_store(&none, &data).expect("decided").is_none());

        // The token is sent to no other server.
        let other = ServerOptions { server: Some("https://other/".to_owned()), ..none.clone() };
        let database = StoreOptions { database_url: Some("postgres://".into()), ..store() };
        let found = Server::or_store(&other, &database).expect("decided").expect("a server");
        assert_eq!((found.url.as_str(), found.token), ("https://other", None));
        assert!(Server::or_store(&other, &data).is_err());
        let own = ServerOptions { token: Some(Secret("own".to_owned())), ..other };
        assert_eq!(Server::of(&own).expect("a server").token, own.token);

        assert!(forget(&none).expect("forgotten").is_some());
        assert!(forget(&none).expect("nothing there").is_none());
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in
            ["ras.example", "ftp://ras", "http://", "https://me:secret@ras", "https://ras?a"]
        {
            assert!(address(text).is_err(), "{text}");
        }
        assert_eq!(
            address("https://ras.example:443/sub/").expect("one"),
            "https://ras.example/sub"
        );
    }
}
