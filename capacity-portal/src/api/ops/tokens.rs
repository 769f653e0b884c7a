//! `/ops/v1/tokens`: creates, lists and revokes tokens.

use crate::http::auth::secret::Secret;
use crate::http::auth::{Caller, Role};
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::{Problem, Site, body, in_time};
use api_types::tokens::{TokenAsked, TokenMade, TokenOf, Tokens};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use broker::{NewToken, TokenError, TokenRow};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::IntoParams;

/// Most tokens that are listed: those that were made last.
const TOKENS_MAX: u32 = 100_000;

const TOKENS: ListKind =
    ListKind { rows: "tokens", key: &["id"], order: "created_at desc", page: WHOLE };

/// Default validity of a token, in days.
pub(crate) const DAYS: u32 = 90;

/// Filters of the list of tokens.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TokensQuery {
    /// Whether to include expired and revoked tokens.
    #[serde(default)]
    all: bool,
}

/// A token, as it is sent.
pub fn view(of: TokenRow) -> TokenOf {
    let (revoked_at, revoked_by) = of.revoked.map(|of| (of.at, of.by)).unzip();
    TokenOf {
        id: of.id.into(),
        name: of.name.to_string(),
        role: of.role.as_str().to_owned(),
        owner: of.owner.map(|owner| owner.to_string()),
        state: of.state.as_str().to_owned(),
        created_at: of.created_at,
        created_by: of.created_by.to_string(),
        expires_at: of.expires_at,
        revoked_at,
        revoked_by: revoked_by.map(|by| by.to_string()),
        last_used_at: of.last_used_at,
    }
}

impl From<TokenError> for Problem {
    fn from(error: TokenError) -> Problem {
        let detail = error.to_string();
        match error {
            TokenError::BadName(_) | TokenError::ReservedName => malformed("name", detail),
            TokenError::BadOwner(_) | TokenError::NoOwner | TokenError::HasOwner { .. } => {
                malformed("owner", detail)
            }
            TokenError::Life => malformed("days", detail),
            TokenError::NameTaken { .. } => taken(detail),
            TokenError::Unknown { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_token", detail)
            }
            TokenError::Db(error) => error.into(),
        }
    }
}

fn malformed(field: &str, detail: String) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "malformed", detail).with_field(field)
}

fn taken(detail: String) -> Problem {
    Problem::new(StatusCode::CONFLICT, "token_exists", detail)
}

/// Tokens of the database, without those of the settings
#[utoipa::path(get, path = "/tokens", operation_id = "list_tokens", 
    params(TokensQuery, ListQuery),
    responses((status = 200, description = "a page, the newest first", body = Tokens)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest<TokensQuery>,
) -> Result<Response, Problem> {
    let listed = listed_for(&site, &caller, filters.all).await?;
    let page = list.page_of(TOKENS, &filters, listed)?;
    Ok(page.response(&Tokens { tokens: Vec::new(), next_page_token: None }))
}

/// Creates a token; only this response contains its secret
#[utoipa::path(post, path = "/tokens", operation_id = "create_token",
    request_body(content = TokenAsked),
    responses(
        (status = 201, description = "the new token", body = TokenMade),
        (status = 409, description = "the name is taken"),
        (status = 422, description = "the token is invalid"),
    ))]
pub(super) async fn create(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<(StatusCode, Json<TokenMade>), Problem> {
    caller.needs(Role::Admin)?;
    let made = made_for(&site, &caller, body::json(&body)?).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// [`create`], for a page.
pub(crate) async fn made_for(
    site: &Site,
    caller: &Caller,
    asked: TokenAsked,
) -> Result<TokenMade, Problem> {
    let actor = caller.needs(Role::Admin)?;
    let TokenAsked { name, role, owner, days } = asked;
    let Some(role) = Role::parse(&role) else {
        let roles = Role::ALL.map(Role::as_str).join(", ");
        let detail = format!("role: {role:?} is not one of {roles}");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "malformed", detail));
    };
    if site.tokens.authority().has(&name) {
        return Err(taken(format!("a token of the settings has the name {name:?}")));
    }
    let secret = Secret::for_token()
        .map_err(|error| Problem::unavailable("no_chance", error.to_string()))?;
    let life = Duration::from_secs(u64::from(days.unwrap_or(DAYS)) * 86_400);
    let token = NewToken { name, digest: secret.digest(), role, owner, life };
    let made = in_time(site.broker.create_token(&actor, &token)).await?;
    Ok(TokenMade { token: view(made), secret: secret.expose().to_owned() })
}

/// Every token, or those that are good, the newest first: [`list`], for a page.
pub(crate) async fn listed_for(
    site: &Site,
    caller: &Caller,
    all: bool,
) -> Result<Vec<TokenOf>, Problem> {
    caller.needs(Role::Admin)?;
    let listed = in_time(site.broker.tokens(all, TOKENS_MAX)).await?;
    Ok(listed.into_iter().map(view).collect())
}

/// [`revoke`], for a page.
pub(crate) async fn revoked_for(
    site: &Site,
    caller: &Caller,
    token: &str,
) -> Result<TokenOf, Problem> {
    let actor = caller.needs(Role::Admin)?;
    let revoked = in_time(site.broker.revoke_token(&actor, token)).await?;
    site.tokens.clear();
    Ok(view(revoked))
}

/// Revokes a token by id or name: in this process at once, in others within two seconds
#[utoipa::path(post, path = "/tokens/{token}/revoke", operation_id = "revoke_token",
    params(("token" = String, Path, description = "its id or name")),
    responses((status = 200, description = "the revoked token", body = TokenOf)))]
pub(super) async fn revoke(
    State(site): State<Site>,
    caller: Caller,
    Path(token): Path<String>,
) -> Result<Json<TokenOf>, Problem> {
    revoked_for(&site, &caller, &token).await.map(Json)
}
