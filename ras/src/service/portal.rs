//! Settings of the HTTP server: tokens from files, limits, TLS.

use crate::settings::{self, ReadAccess, TlsFile, TokenFile};
use anyhow::{Context, Result, anyhow, ensure};
use capacity_portal::{Authority, PortalSettings, Role, TlsFiles, Token};
use std::path::Path;

/// Maximum size of a token file.
const TOKEN_BYTES_MAX: u64 = 1 << 12;

/// The settings from section `[portal]` of the settings file.
///
/// # Errors
/// If a role is unknown, or a token cannot be read or is invalid.
pub fn portal_settings(config: Option<&Path>) -> Result<PortalSettings> {
    let file = settings::file(config)?.portal;
    let read_needs_token = file.read == ReadAccess::Token;
    let tokens = file.tokens.iter().map(token).collect::<Result<Vec<_>>>().context("[portal]")?;
    let authority = Authority::new(tokens, read_needs_token).context("[portal]")?;
    let tls = file.tls.map(|TlsFile { certificate, key }| TlsFiles { certificate, key });
    let (requests_per_second, tls_before) = (file.requests_per_second, file.tls_before);
    let settings = PortalSettings {
        authority,
        requests_per_second,
        tls,
        tls_before,
        open_metrics: file.open_metrics,
        ..PortalSettings::default()
    };
    Ok(settings)
}

fn token(of: &TokenFile) -> Result<Token> {
    let role = |word: &String| {
        Role::parse(word).ok_or_else(|| {
            let roles = Role::ALL.map(Role::as_str).join(", ");
            anyhow!("token {:?}: role {word:?} is not one of {roles}", of.name)
        })
    };
    let roles = of.roles.iter().map(role).collect::<Result<Vec<_>>>()?;
    let path = &of.token_file;
    let name = || format!("token {:?}, file {}", of.name, path.display());
    let size = std::fs::metadata(path).with_context(name)?.len();
    ensure!(size <= TOKEN_BYTES_MAX, "{}: {size} bytes are too long for a token", name());
    let secret = std::fs::read_to_string(path).with_context(name)?;
    Ok(Token::scoped(&of.name, &roles, of.owner.as_deref(), secret.trim())?)
}

#[cfg(test)]
mod tests {
    use super::portal_settings;
    use std::fs;

    #[test]
    fn tokens_are_read_from_their_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("good"), "0123456789abcdef\n").expect("written");
        fs::write(path("short"), "0123").expect("written");
        let settings = |text: &str| {
            let text = text.replace("FOLDER", &folder.path().display().to_string());
            fs::write(path("ras.toml"), text).expect("written");
            portal_settings(Some(&path("ras.toml")))
        };
        let token = |roles: &str, file: &str| {
            format!(
                "[[portal.tokens]]\nname = \"watch\"\nroles = [{roles}]\ntoken_file = \"FOLDER/{file}\"\n"
            )
        };
        settings(&token("\"health\", \"viewer\"", "good")).expect("a token");
        settings("").expect("none");
        settings(&(token("\"owner\", \"viewer\"", "good") + "owner = \"web\"\n"))
            .expect("an owner's");
        settings("[portal]\nread = \"token\"\n").expect("with tokens of the store");
        for (text, named) in [
            (token("\"health\"", "nowhere"), "nowhere"),
            (token("\"health\"", "short"), "at least 16"),
            (token("\"king\"", "good"), "viewer, owner, operator, admin, health, emergency"),
            (token("", "good"), "no roles"),
            (token("\"health\"", "good").repeat(2), "two tokens"),
            (token("\"owner\"", "good"), "needs an owner"),
            (token("\"admin\"", "good") + "owner = \"web\"\n", "to an owner, not admin"),
            ("[portal]\nrequests_per_second = 0\n".to_owned(), "requests_per_second"),
            ("[portal.tls]\ncertificate = \"a\"\n".to_owned(), "key"),
            ("[portal]\nread = \"maybe\"\n".to_owned(), "maybe"),
            ("[portal]\ntoken = 3\n".to_owned(), "token"),
        ] {
            let error = settings(&text).expect_err(&text);
            assert!(format!("{error:#}").contains(named), "{text}: {error:#}");
        }
    }
}
