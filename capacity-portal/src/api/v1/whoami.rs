//! `GET /v1/whoami`: whether a token is good, and for what.

use crate::api::asked;
use crate::api::authority::{Caller, Role};
use crate::api::problem::Problem;
use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

/// Who asks.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Whoami {
    /// What stands in the audit trail.
    name: String,
    #[schema(schema_with = roles)]
    roles: Vec<&'static str>,
    /// The owner whose objects alone are shown; null: everybody's are.
    owner: Option<String>,
    /// What a session says in the header `x-csrf-token` of whatever writes; null: it is none.
    csrf: Option<String>,
}

fn roles() -> utoipa::openapi::schema::Array {
    utoipa::openapi::schema::ArrayBuilder::new()
        .items(utoipa::openapi::RefOr::T(asked::words(Role::ALL.map(Role::as_str))))
        .build()
}

/// Whose a token is, and what it is good for
#[utoipa::path(get, path = "/whoami", operation_id = "whoami",
    responses((status = 200, description = "who asks", body = Whoami)))]
pub(super) async fn whoami(caller: Caller) -> Result<Json<Whoami>, Problem> {
    let name = caller.needs(Role::Viewer)?.to_string();
    let roles = caller.roles().map(Role::as_str).collect();
    let (owner, csrf) = (caller.scope().map(str::to_owned), caller.csrf().map(str::to_owned));
    Ok(Json(Whoami { name, roles, owner, csrf }))
}
