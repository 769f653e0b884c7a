//! `ras login` and `ras logout`

use super::ask::with_server;
use crate::cli::{Login, Logout, Secret};
use crate::client::login::{self, Place, Server};
use crate::context::Context;
use crate::exit::Verdict;
use crate::terminal;
use anyhow::{Context as _, Result, bail, ensure};
use api_types::tokens::Whoami;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::json;
use std::io::{BufRead, IsTerminal, Read, stdin};

/// Maximum size of a token.
const TOKEN_BYTES_MAX: u64 = 1 << 12;

pub(in crate::command) fn login(options: &Login, context: &Context) -> Result<Verdict> {
    let options = &options.server;
    let url = match &options.server {
        Some(url) => login::address(url)?,
        None => match Server::on_network(options)?.map(|server| server.place) {
            Some(Place::Network(url)) => url,
            Some(Place::Socket(_)) | None => bail!("no server: give --server"),
        },
    };
    let token = match login::given_token(options)? {
        Some(token) => token,
        None => asked(&url)?,
    };
    ensure!(!token.0.is_empty(), "no token");
    let server = Server { place: Place::Network(url.clone()), token: Some(token.clone()) };
    let whoami =
        with_server(server, async |client| client.get("/v1/whoami").await.context("login failed"))?;
    let Whoami { name, roles, owner, .. } = whoami.read()?;
    let file = login::write(options, &url, Some(&token))?;
    let of = owner.map_or_else(String::new, |owner| format!(" of {owner}"));
    let text = || {
        let open =
            if is_in_clear(&url) { "\nthe token is sent unencrypted: use https" } else { "" };
        let (roles, url, file) = (roles.join(", "), &url, file.display());
        format!("{name}{of} at {url}: {roles}\nsaved in {file}{open}")
    };
    let json = json!({ "server": url, "file": file, "whoami": whoami.body });
    context.answer(text, &json)?;
    Ok(Verdict::Fine)
}

/// Whether the connection is unencrypted and leaves this machine.
fn is_in_clear(url: &str) -> bool {
    let local = match url::Url::parse(url).ok().and_then(|url| url.host().map(|h| h.to_owned())) {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    };
    url.starts_with("http:") && !local
}

pub(in crate::command) fn logout(options: &Logout, context: &Context) -> Result<Verdict> {
    let file = login::forget(&options.server)?;
    let text = || match &file {
        Some(file) => format!("{} is removed", file.display()),
        None => "not logged in".to_owned(),
    };
    context.answer(text, &json!({ "forgotten": file.is_some() }))?;
    Ok(Verdict::Fine)
}

/// Reads a token: from a terminal without echo, else from standard input.
fn asked(url: &str) -> Result<Secret> {
    let mut token = String::new();
    if stdin().is_terminal() {
        // Before the prompt, so that input typed ahead is not echoed, either.
        let unseen = Unseen::new()?;
        terminal::ask(&format!("token for {url}: "))?;
        let typed = typed();
        drop(unseen);
        terminal::say("");
        token = typed?;
    } else {
        let input = stdin().lock().take(TOKEN_BYTES_MAX);
        std::io::BufReader::new(input).read_line(&mut token).context("reading the token")?;
    }
    Ok(Secret(token.trim().to_owned()))
}

/// A terminal with echo off; dropping it restores the terminal.
struct Unseen(Termios);

impl Unseen {
    fn new() -> Result<Unseen> {
        let before = tcgetattr(stdin()).context("asking the terminal")?;
        let mut modes = before.clone();
        // Ctrl-C arrives as a character, so that the terminal is restored.
        modes.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        tcsetattr(stdin(), OptionalActions::Flush, &modes).context("asking the terminal")?;
        Ok(Unseen(before))
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.0);
    }
}

/// A line with deletions (backspace) applied.
fn typed() -> Result<String> {
    const END: u8 = 0x04;
    const CTRL_C: u8 = 0x03;
    const BACK: [u8; 2] = [0x08, 0x7f];
    let mut line = Vec::new();
    for byte in stdin().lock().bytes() {
        match byte.context("reading the token")? {
            b'\n' | b'\r' | END => break,
            CTRL_C => bail!("login failed"),
            back if BACK.contains(&back) => {
                line.pop();
            }
            byte => line.push(byte),
        }
    }
    String::from_utf8(line).context("the token has invalid characters")
}
