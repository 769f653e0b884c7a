//! `/ops/v1/solves/{id}/files`: what a solve left behind, to be taken along.

use super::solves::row;
use crate::api::Site;
use crate::api::asked;
use crate::api::authority::Caller;
use crate::api::problem::Problem;
use crate::archive::{Archive, ArchiveError, ArchivedFile};
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::SolveRow;
use serde::Serialize;
use utoipa::ToSchema;

/// The largest file that is sent: a region of a million servers has tables of some ten megabytes.
const BYTES_MAX: u64 = 1 << 30;

/// The snapshot it was made on, or its result.
const PARTS: [&str; 2] = ["snapshot", "result"];

fn parts() -> utoipa::openapi::Schema {
    asked::words(PARTS)
}

/// A file that is kept of a solve.
#[derive(Debug, Serialize, ToSchema)]
struct SolveFile {
    #[schema(schema_with = parts)]
    part: &'static str,
    name: String,
    bytes: u64,
    /// Where it can be had.
    href: String,
}

/// What is kept of a solve.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SolveFiles {
    /// Empty: nothing yet, or it is forgotten.
    files: Vec<SolveFile>,
}

impl From<ArchiveError> for Problem {
    fn from(error: ArchiveError) -> Problem {
        tracing::warn!(%error, "files of a solve cannot be read");
        Problem::unavailable("archive_unavailable", error.to_string())
    }
}

fn archive(site: &Site) -> Result<&dyn Archive, Problem> {
    let none = || {
        let detail = "this portal does not know where solves leave their files";
        Problem::new(StatusCode::NOT_FOUND, "no_archive", detail)
    };
    site.archive.as_deref().ok_or_else(none)
}

fn url<'a>(solve: &'a SolveRow, part: &str) -> Option<&'a str> {
    if part == PARTS[0] { solve.snapshot_url.as_deref() } else { solve.result_url.as_deref() }
}

/// The files that are kept of a solve
#[utoipa::path(get, path = "/solves/{id}/files", operation_id = "list_solve_files",
    params(("id" = Uuid, Path, description = "the solve")),
    responses((status = 200, description = "its files", body = SolveFiles)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<SolveFiles>, Problem> {
    caller.reads_region()?;
    let (solve, archive) = (row(&site, &id).await?, archive(&site)?);
    let mut files = Vec::new();
    for part in PARTS {
        let Some(url) = url(&solve, part) else { continue };
        let kept = archive.files(url).await?;
        files.extend(kept.into_iter().map(|ArchivedFile { name, bytes }| {
            let href = format!("/ops/v1/solves/{}/files/{part}/{name}", solve.id);
            SolveFile { part, name, bytes, href }
        }));
    }
    Ok(Json(SolveFiles { files }))
}

/// A file that is kept of a solve
#[utoipa::path(get, path = "/solves/{id}/files/{part}/{name}", operation_id = "get_solve_file",
    params(
        ("id" = Uuid, Path, description = "the solve"),
        ("part" = String, Path, description = "snapshot or result"),
        ("name" = String, Path, description = "the file, as it is listed"),
    ),
    responses((status = 200, description = "the file", content(
        (Vec<u8> = "application/octet-stream"), (Object = "application/json")))))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path((id, part, name)): Path<(String, String, String)>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let (solve, archive) = (row(&site, &id).await?, archive(&site)?);
    let unknown = || {
        let detail = format!("solve {id} has no file {name:?} of its {part}");
        Problem::new(StatusCode::NOT_FOUND, "unknown_file", detail)
    };
    let part = PARTS.into_iter().find(|known| *known == part).ok_or_else(unknown)?;
    let url = url(&solve, part).ok_or_else(unknown)?;
    // What is not listed is not read, whatever its name leads to.
    let listed = archive.files(url).await?;
    let file = listed.into_iter().find(|file| file.name == name).ok_or_else(unknown)?;
    if file.bytes > BYTES_MAX {
        let detail = format!("{} bytes; files of {BYTES_MAX} at most are sent", file.bytes);
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", detail));
    }
    let chunks = archive.read(url, &file.name).await?.ok_or_else(unknown)?;
    let kind =
        if name.ends_with(".json") { "application/json" } else { "application/octet-stream" };
    let mut response = Body::from_stream(chunks).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_LENGTH, file.bytes.into());
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let saved: String = name.chars().filter(|c| plain(*c)).collect();
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{saved}\"")) {
        headers.insert(CONTENT_DISPOSITION, value);
    }
    Ok(response)
}
