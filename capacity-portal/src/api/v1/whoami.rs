//! `GET /v1/whoami`: the token of the caller.

use crate::http::auth::{Caller, Role};
use crate::http::{Problem, schema};
use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

/// The token of the caller.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Whoami {
    /// Name: the actor in the audit trail.
    name: String,
    #[schema(schema_with = roles)]
    roles: Vec<&'static str>,
    /// The only owner whose objects are visible; null: all owners.
    owner: Option<String>,
    /// Value of the header `x-csrf-token` that writes of this session need; null: not a session.
    csrf: Option<String>,
}

fn roles() -> utoipa::openapi::schema::Array {
    utoipa::openapi::schema::ArrayBuilder::new()
        .items(utoipa::openapi::RefOr::T(schema::words(Role::ALL.map(Role::as_str))))
        .build()
}

/// The token of the caller: name, roles and owner
#[utoipa::path(get, path = "/whoami", operation_id = "whoami",
    responses((status = 200, description = "the token", body = Whoami)))]
pub(super) async fn whoami(caller: Caller) -> Result<Json<Whoami>, Problem> {
    let name = caller.needs(Role::Viewer)?.to_string();
    let roles = caller.roles().map(Role::as_str).collect();
    let (owner, csrf) = (caller.scope().map(str::to_owned), caller.csrf().map(str::to_owned));
    Ok(Json(Whoami { name, roles, owner, csrf }))
}
