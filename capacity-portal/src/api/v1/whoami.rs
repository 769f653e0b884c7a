//! `GET /v1/whoami`: the token of the caller.

use crate::http::Problem;
use crate::http::auth::{Caller, Role};
use api_types::tokens::Whoami;
use axum::Json;

/// The token of the caller: name, roles and owner
#[utoipa::path(get, path = "/whoami", operation_id = "whoami",
    responses((status = 200, description = "the token", body = Whoami)))]
pub(super) async fn whoami(caller: Caller) -> Result<Json<Whoami>, Problem> {
    let name = caller.needs(Role::Viewer)?.to_string();
    let roles = caller.roles().map(|role| role.as_str().to_owned()).collect();
    let (owner, csrf) = (caller.scope().map(str::to_owned), caller.csrf().map(str::to_owned));
    Ok(Json(Whoami { name, roles, owner, csrf }))
}
