//! Identifies the caller: by a bearer token, the cookie of a session, or the user at the unix socket.

use super::Site;
use super::authority::{Role, Token};
use super::problem::Problem;
use crate::guard::{self, Guard};
use crate::local::LocalCaller;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::time::sleep;

/// The header with what only our own pages know.
const CSRF: &str = "x-csrf-token";

/// How often whoever follows something is looked up again.
const STILL_GOOD: Duration = Duration::from_secs(10);

/// The field `csrf` of a form, which was taken out of the body.
#[derive(Clone, Debug)]
pub(crate) struct CsrfField(pub(crate) String);

/// How a caller proved who it is.
#[derive(Clone, Debug)]
enum Proof {
    /// The secret of its token.
    Secret,
    /// The cookie of a session. Its forms have this field `csrf`.
    Session { csrf: String },
    /// A connection to the unix socket, for which the kernel names the user.
    Socket,
}

/// A caller with an identity.
#[derive(Clone, Debug)]
struct Known {
    token: Token,
    proof: Proof,
}

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    known: Option<Known>,
    guard: Guard,
}

impl Caller {
    fn token(&self) -> Option<&Token> {
        self.known.as_ref().map(|known| &known.token)
    }

    /// The name for the audit trail, if this caller may act in this role.
    pub(crate) fn needs(&self, role: Role) -> Result<Arc<str>, Problem> {
        match self.token() {
            Some(token) if token.may(role) => Ok(token.name.clone()),
            Some(token) => {
                let detail = format!("token {:?} does not have the role {role}", token.name);
                Err(Problem::new(StatusCode::FORBIDDEN, "role_missing", detail))
            }
            None => Err(Problem::unauthorized(
                "token_missing",
                "send `Authorization: Bearer` and a token; `ras token create` makes one",
            )),
        }
    }

    /// The name for the audit trail, if this caller may act for this owner: as the owner, or as
    /// whoever runs the region. Of an object that exists ask [`Caller::sees`] before.
    pub(crate) fn may_act_for(&self, owner: &str) -> Result<Arc<str>, Problem> {
        let name = self.needs(Role::Owner)?;
        if self.sees(owner) {
            return Ok(name);
        }
        let own = self.scope().unwrap_or_default();
        let detail = format!("token {name:?} acts for the owner {own:?} alone");
        Err(Problem::new(StatusCode::FORBIDDEN, "other_owner", detail))
    }

    /// Whether this caller may read what is asked for one owner or another.
    pub(crate) fn reads(&self) -> Result<(), Problem> {
        if self.guard.authority().is_closed() { self.needs(Role::Viewer).map(drop) } else { Ok(()) }
    }

    /// Whether this caller may read what is about the whole region.
    pub(crate) fn reads_region(&self) -> Result<(), Problem> {
        self.reads()?;
        let Some(owner) = self.scope() else { return Ok(()) };
        let detail = format!("this is about the whole region, and the token for {owner:?} alone");
        Err(Problem::new(StatusCode::FORBIDDEN, "other_owner", detail))
    }

    /// The owner whose objects alone this caller may see; `None`: everybody's.
    pub(crate) fn scope(&self) -> Option<&str> {
        self.token().and_then(|token| token.owner.as_deref())
    }

    /// Whether this caller may know of an object of this owner; else there is none.
    pub(crate) fn sees(&self, owner: &str) -> bool {
        self.scope().is_none_or(|scope| scope == owner)
    }

    /// What this caller may do.
    pub(crate) fn roles(&self) -> impl Iterator<Item = Role> {
        self.token().into_iter().flat_map(|token| token.roles.iter().copied())
    }

    /// What forms say for this caller, in a field `csrf`; `None`: nobody is signed in.
    pub(crate) fn csrf(&self) -> Option<&str> {
        match &self.known.as_ref()?.proof {
            Proof::Session { csrf } => Some(csrf),
            Proof::Secret | Proof::Socket => None,
        }
    }

    /// Waits until this caller's token is no longer good: for answers that go on for long.
    pub(crate) async fn until_over(&self) {
        let token = match &self.known {
            Some(Known { token, proof: Proof::Secret | Proof::Session { .. } }) => token,
            Some(Known { proof: Proof::Socket, .. }) | None => return std::future::pending().await,
        };
        loop {
            sleep(STILL_GOOD).await;
            // A database that does not answer has revoked nothing.
            if matches!(self.guard.by_digest(&token.digest).await, Ok(None)) {
                return;
            }
        }
    }
}

impl FromRequestParts<Site> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, site: &Site) -> Result<Caller, Problem> {
        let guard = site.guard.clone();
        let known = if let Some(header) = parts.headers.get(AUTHORIZATION) {
            let token =
                guard.token(bearer(header).unwrap_or_default(), address(&parts.extensions)).await?;
            Some(Known { token, proof: Proof::Secret })
        } else if let Some(ConnectInfo(local)) = parts.extensions.get::<ConnectInfo<LocalCaller>>()
        {
            Some(Known { token: local.token(), proof: Proof::Socket })
        } else {
            match session_secret(&parts.headers, guard.is_secure()) {
                Some(session) => signed_in(&guard, &session, parts).await?,
                None => None,
            }
        };
        Ok(Caller { known, guard })
    }
}

fn bearer(header: &HeaderValue) -> Option<&str> {
    let (scheme, secret) = header.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

/// Address of the client; unspecified for a connection to the unix socket.
pub(crate) fn address(extensions: &Extensions) -> IpAddr {
    let from = extensions.get::<ConnectInfo<SocketAddr>>();
    from.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(from)| from.ip())
}

/// A cookie that says nothing any more is none: pages show how to sign in, not an error.
async fn signed_in(guard: &Guard, session: &str, parts: &Parts) -> Result<Option<Known>, Problem> {
    let Some(token) = guard.session(session).await? else { return Ok(None) };
    let csrf = guard::csrf(session);
    if !parts.method.is_safe() {
        own_page(&parts.headers)?;
        let header = parts.headers.get(CSRF).map(HeaderValue::as_bytes);
        let field = parts.extensions.get::<CsrfField>().map(|CsrfField(field)| field.as_bytes());
        let said = header.or(field).unwrap_or_default();
        if !bool::from(said.ct_eq(csrf.as_bytes())) {
            let detail = "whoever is signed in with a cookie says the token of the page as well, in \
                          the header x-csrf-token or the form's field csrf; load the page again";
            return Err(Problem::new(StatusCode::FORBIDDEN, "csrf", detail));
        }
    }
    Ok(Some(Known { token, proof: Proof::Session { csrf } }))
}

/// Refuses what a page of somebody else sends. Browsers say where a request comes from; whoever says
/// nothing is none.
pub(crate) fn own_page(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |header| headers.get(header).and_then(|value: &HeaderValue| value.to_str().ok());
    let own = match (headers.get("sec-fetch-site"), headers.get(ORIGIN)) {
        (Some(site), _) => site == "same-origin",
        (None, Some(_)) => {
            let origin = text(ORIGIN.as_str()).and_then(|origin| origin.split_once("://"));
            origin.is_some_and(|(_, host)| Some(host) == text(HOST.as_str()))
        }
        (None, None) => true,
    };
    let detail = "this comes from a page of another site";
    if own { Ok(()) } else { Err(Problem::new(StatusCode::FORBIDDEN, "csrf", detail)) }
}

/// A name that a browser takes from this very host alone, and by TLS alone.
fn cookie_name(secure: bool) -> &'static str {
    if secure { "__Host-ras-session" } else { "ras-session" }
}

/// What the cookie says.
pub(crate) fn session_secret(headers: &HeaderMap, secure: bool) -> Option<String> {
    let jar = CookieJar::from_headers(headers);
    jar.get(cookie_name(secure)).map(|cookie| cookie.value().to_owned())
}

/// The cookie that says it; empty, to take it away. It goes when the browser is closed.
pub(crate) fn session_cookie(said: &str, secure: bool) -> Cookie<'static> {
    let cookie = Cookie::build((cookie_name(secure), said.to_owned()));
    cookie.path("/").http_only(true).same_site(SameSite::Strict).secure(secure).build()
}
