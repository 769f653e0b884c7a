//! The caller of a request, identified by a bearer token, a session cookie, or the user at the unix socket.

use super::authority::{Role, Token};
use super::cache::{self, TokenCache};
use super::secret::digest;
use crate::http::problem::Problem;
use crate::http::rate;
use crate::local::LocalCaller;
use axum::extract::{ConnectInfo, FromRef, FromRequestParts};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::{Cookie, SameSite};
use broker::SecretDigest;
use chrono::{DateTime, Utc};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::time::sleep;

/// Header of the CSRF token, which only our own pages know.
const CSRF: &str = "x-csrf-token";

/// How often the token of a long-lived response is checked.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// Field `csrf` of a form, removed from the body by the middleware.
#[derive(Clone, Debug)]
pub(crate) struct CsrfField(pub(crate) String);

/// How a caller proved its identity.
#[derive(Clone, Debug)]
enum Proof {
    /// The secret of its token.
    Secret,
    /// The cookie of a session, whose writes need this CSRF token.
    Session { csrf: String },
    /// A connection to the unix socket, for which the kernel names the user.
    Socket,
}

/// An authenticated caller.
#[derive(Clone, Debug)]
struct Authenticated {
    token: Token,
    proof: Proof,
}

/// The caller of a request, anonymous or authenticated.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    authenticated: Option<Authenticated>,
    tokens: TokenCache,
}

impl Caller {
    fn token(&self) -> Option<&Token> {
        self.authenticated.as_ref().map(|of| &of.token)
    }

    /// Checks the role; returns the actor for the audit trail.
    pub(crate) fn needs(&self, role: Role) -> Result<Arc<str>, Problem> {
        match self.token() {
            Some(token) if token.may(role) => Ok(token.name.clone()),
            Some(token) => {
                let detail = format!("token {:?} does not have the role {role}", token.name);
                Err(Problem::new(StatusCode::FORBIDDEN, "role_missing", detail))
            }
            None => Err(Problem::unauthorized(
                "token_missing",
                "send `Authorization: Bearer` with a token; create one with `ras token create`",
            )),
        }
    }

    /// Checks that this caller may act for an owner; returns the actor for the audit trail. For an object that
    /// exists check [`Caller::sees`] first, so that the answer does not reveal it.
    pub(crate) fn may_act_for(&self, owner: &str) -> Result<Arc<str>, Problem> {
        let name = self.needs(Role::Owner)?;
        if self.sees(owner) {
            return Ok(name);
        }
        let own = self.scope().unwrap_or_default();
        let detail = format!("token {name:?} acts only for owner {own:?}");
        Err(Problem::new(StatusCode::FORBIDDEN, "other_owner", detail))
    }

    /// Checks that this caller may read.
    pub(crate) fn reads(&self) -> Result<(), Problem> {
        if self.tokens.authority().is_closed() {
            self.needs(Role::Viewer).map(drop)
        } else {
            Ok(())
        }
    }

    /// Checks that this caller may read data of the whole region.
    pub(crate) fn reads_region(&self) -> Result<(), Problem> {
        self.reads()?;
        let Some(owner) = self.scope() else { return Ok(()) };
        let detail = format!("this covers the whole region; the token is only for owner {owner:?}");
        Err(Problem::new(StatusCode::FORBIDDEN, "other_owner", detail))
    }

    /// The only owner whose objects this caller may see; `None`: all owners.
    pub(crate) fn scope(&self) -> Option<&str> {
        self.token().and_then(|token| token.owner.as_deref())
    }

    /// Whether this caller may see an object of this owner; otherwise it is reported as missing.
    pub(crate) fn sees(&self, owner: &str) -> bool {
        self.scope().is_none_or(|scope| scope == owner)
    }

    /// When the token of this caller expires; `None`: never, or the caller is anonymous.
    pub(crate) fn expires_at(&self) -> Option<DateTime<Utc>> {
        self.token().and_then(|token| token.expires_at)
    }

    /// Roles of this caller.
    pub(crate) fn roles(&self) -> impl Iterator<Item = Role> {
        self.token().into_iter().flat_map(|token| token.roles.iter().copied())
    }

    /// CSRF token for the forms of this caller; `None`: not signed in.
    pub(crate) fn csrf(&self) -> Option<&str> {
        match &self.authenticated.as_ref()?.proof {
            Proof::Session { csrf } => Some(csrf),
            Proof::Secret | Proof::Socket => None,
        }
    }

    /// What limits for one caller count by: its token, or the address if it has none.
    pub(crate) fn limited_by(&self, from: IpAddr) -> SecretDigest {
        self.token().map_or_else(|| digest(&rate::block(from).to_string()), |token| token.digest)
    }

    /// Waits until the token of this caller is revoked or expires: ends long-lived responses.
    pub(crate) async fn until_over(&self) {
        let token = match &self.authenticated {
            Some(Authenticated { token, proof: Proof::Secret | Proof::Session { .. } }) => token,
            Some(Authenticated { proof: Proof::Socket, .. }) | None => {
                return std::future::pending().await;
            }
        };
        loop {
            sleep(CHECK_EVERY).await;
            // A failed query revokes nothing.
            if matches!(self.tokens.by_digest(&token.digest).await, Ok(None)) {
                return;
            }
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller
where
    TokenCache: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Caller, Problem> {
        let tokens = TokenCache::from_ref(state);
        let authenticated = if let Some(header) = parts.headers.get(AUTHORIZATION) {
            let from = address(&parts.extensions);
            let token = tokens.token(bearer(header).unwrap_or_default(), from).await?;
            Some(Authenticated { token, proof: Proof::Secret })
        } else if let Some(ConnectInfo(local)) = parts.extensions.get::<ConnectInfo<LocalCaller>>()
        {
            Some(Authenticated { token: local.token(), proof: Proof::Socket })
        } else {
            match session_secret(&parts.headers, tokens.is_secure()) {
                Some(session) => signed_in(&tokens, &session, parts).await?,
                None => None,
            }
        };
        Ok(Caller { authenticated, tokens })
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

/// An ended session counts as anonymous: pages then show the sign-in form, not an error.
async fn signed_in(
    tokens: &TokenCache,
    session: &str,
    parts: &Parts,
) -> Result<Option<Authenticated>, Problem> {
    let Some(token) = tokens.session(session).await? else { return Ok(None) };
    let csrf = cache::csrf(session);
    if !parts.method.is_safe() {
        same_origin(&parts.headers)?;
        let header = parts.headers.get(CSRF).map(HeaderValue::as_bytes);
        let field = parts.extensions.get::<CsrfField>().map(|CsrfField(field)| field.as_bytes());
        let sent = header.or(field).unwrap_or_default();
        if !bool::from(sent.ct_eq(csrf.as_bytes())) {
            let detail = "a session must send the page's CSRF token, in the header x-csrf-token or the \
                          form field csrf; reload the page";
            return Err(Problem::new(StatusCode::FORBIDDEN, "csrf", detail));
        }
    }
    Ok(Some(Authenticated { token, proof: Proof::Session { csrf } }))
}

/// Rejects requests from pages of other sites. Browsers send the origin; a client that sends none is not a
/// browser.
pub(crate) fn same_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |header| headers.get(header).and_then(|value: &HeaderValue| value.to_str().ok());
    let own = match (headers.get("sec-fetch-site"), headers.get(ORIGIN)) {
        (Some(site), _) => site == "same-origin",
        (None, Some(_)) => {
            let origin = text(ORIGIN.as_str()).and_then(|origin| origin.split_once("://"));
            origin.is_some_and(|(_, host)| Some(host) == text(HOST.as_str()))
        }
        (None, None) => true,
    };
    let detail = "the request comes from a page of another site";
    if own { Ok(()) } else { Err(Problem::new(StatusCode::FORBIDDEN, "csrf", detail)) }
}

/// The prefix `__Host-` makes browsers accept the cookie only from this host over TLS.
fn cookie_name(secure: bool) -> &'static str {
    if secure { "__Host-ras-session" } else { "ras-session" }
}

/// Value of the session cookie.
pub(crate) fn session_secret(headers: &HeaderMap, secure: bool) -> Option<String> {
    let jar = CookieJar::from_headers(headers);
    jar.get(cookie_name(secure)).map(|cookie| cookie.value().to_owned())
}

/// The session cookie, which ends when the browser is closed. An empty value removes it.
pub(crate) fn session_cookie(value: &str, secure: bool) -> Cookie<'static> {
    let cookie = Cookie::build((cookie_name(secure), value.to_owned()));
    cookie.path("/").http_only(true).same_site(SameSite::Strict).secure(secure).build()
}
