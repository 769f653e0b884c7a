//! Selects server and token: from the command line, the environment, or the file of `ras login`.

use crate::cli::{NetworkOptions, Secret, ServerOptions};
use crate::mistake::Hinted;
use crate::store;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Maximum size of a token file.
const FILE_BYTES_MAX: u64 = 1 << 12;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Its URL, without a trailing slash.
    Network(String),
    /// The unix socket of a server on this machine.
    Socket(LocalServer),
}

/// A server on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalServer {
    /// Its data folder.
    pub data: PathBuf,
    /// Whether the folder was given explicitly.
    pub named: bool,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Network(url) => out.write_str(url),
            Place::Socket(local) => out.write_str(&local.path().display().to_string()),
        }
    }
}

impl LocalServer {
    /// Path of its socket.
    pub fn path(&self) -> PathBuf {
        capacity_portal::socket_path(&self.data)
    }
}

/// A server and the token for it.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where it listens.
    pub place: Place,
    /// The token; without one, requests are anonymous, or those of this user at a unix socket.
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
    /// The server to ask: the one given explicitly, by URL or by data folder; else the one of `ras login`;
    /// else the one of the default data folder on this machine.
    ///
    /// # Errors
    /// If both a URL and a data folder are given, or a file cannot be read.
    pub fn of(options: &ServerOptions) -> Result<Server> {
        let network = &options.network;
        if let Some(data) = &options.data {
            ensure!(
                network.server.is_none(),
                Hinted::new(
                    "--server and --data name two servers",
                    "give one of them, not both; RAS_SERVER counts as --server"
                )
            );
            return Server::local(data.clone(), true, network);
        }
        match Server::on_network(network)? {
            Some(server) => Ok(server),
            None => {
                Server::local(store::default_folder(options.state_home.as_deref()), false, network)
            }
        }
    }

    fn local(data: PathBuf, named: bool, network: &NetworkOptions) -> Result<Server> {
        let place = Place::Socket(LocalServer { data, named });
        Ok(Server { place, token: given_token(network)? })
    }

    /// The server given by URL, else the one of `ras login`; `None`: there is neither.
    ///
    /// # Errors
    /// If a file cannot be read, or the URL is invalid.
    pub fn on_network(options: &NetworkOptions) -> Result<Option<Server>> {
        let noted = read(options)?;
        let url = options.server.as_deref().map(address).transpose()?;
        let Some(url) = url.or_else(|| noted.as_ref().map(|noted| noted.server.clone())) else {
            return Ok(None);
        };
        let noted = noted.filter(|noted| noted.server == url).map(|noted| Secret(noted.token));
        let token = given_token(options)?.or(noted);
        Ok(Some(Server { place: Place::Network(url), token }))
    }
}

/// The token of the command line or the environment.
///
/// # Errors
/// If a file is given and has no token.
pub fn given_token(options: &NetworkOptions) -> Result<Option<Secret>> {
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
    let not = || {
        Hinted::new(
            format!("server {text:?} is not a URL"),
            "give one such as `https://ras.example`",
        )
    };
    let url = url::Url::parse(text.trim()).map_err(|_| not())?;
    let plain = url.username().is_empty() && url.password().is_none();
    let is_http = matches!(url.scheme(), "http" | "https") && url.host().is_some();
    ensure!(is_http && plain, not());
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
pub fn file(options: &NetworkOptions) -> Result<PathBuf> {
    let folder = options.config_home.as_deref().filter(|folder| folder.is_absolute());
    let folder = match (folder, &options.home) {
        (Some(folder), _) => folder.to_owned(),
        (None, Some(home)) => home.join(".config"),
        (None, None) => bail!("no folder for settings: neither XDG_CONFIG_HOME nor HOME is set"),
    };
    Ok(folder.join("ras").join("login.toml"))
}

fn read(options: &NetworkOptions) -> Result<Option<Noted>> {
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
pub fn write(options: &NetworkOptions, url: &str, token: Option<&Secret>) -> Result<PathBuf> {
    let path = file(options)?;
    let name = || format!("saving the server in {}", path.display());
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(name)?;
    let token = token.map_or("", |token| &token.0).to_owned();
    let noted = Noted { server: url.to_owned(), token };
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
pub fn forget(options: &NetworkOptions) -> Result<Option<PathBuf>> {
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
        let network =
            NetworkOptions { config_home: Some(folder.to_owned()), ..NetworkOptions::default() };
        let state_home = Some("/state".into());
        ServerOptions { network, state_home, ..ServerOptions::default() }
    }

    #[test]
    fn server_is_chosen_by_one_rule() {
        let folder = tempfile::tempdir().expect("a folder");
        let none = options(folder.path());
        let place = |options: &ServerOptions| Server::of(options).expect("chosen").place;
        let at_home = Place::Network("https://home".to_owned());
        let local = |data: PathBuf, named| Place::Socket(LocalServer { data, named });
        assert_eq!(place(&none), local(store::default_folder(Some("/state".as_ref())), false));

        let token = Some(Secret("noted".to_owned()));
        write(&none.network, "https://home", token.as_ref()).expect("noted");
        let found = Server::of(&none).expect("a server");
        assert_eq!((found.place, found.token), (at_home, token));

        // The token is sent to no other server.
        let data = ServerOptions { data: Some("data".into()), ..none.clone() };
        let found = Server::of(&data).expect("a server");
        assert_eq!((found.place, found.token), (local("data".into(), true), None));
        let mut other = none.clone();
        other.network.server = Some("https://other/".to_owned());
        let found = Server::of(&other).expect("a server");
        let elsewhere = Place::Network("https://other".to_owned());
        assert_eq!((found.place, found.token), (elsewhere, None));
        let both = ServerOptions { data: data.data.clone(), ..other.clone() };
        assert!(Server::of(&both).expect_err("two places").to_string().contains("two servers"));
        let own = Some(Secret("own".to_owned()));
        for mut options in [data, other] {
            options.network.token = own.clone();
            assert_eq!(Server::of(&options).expect("a server").token, own);
        }

        assert!(forget(&none.network).expect("forgotten").is_some());
        assert!(forget(&none.network).expect("nothing there").is_none());
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
