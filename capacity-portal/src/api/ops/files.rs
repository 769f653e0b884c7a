//! `/ops/v1/solves/{id}/files`: downloads the files of a solve.

use super::solves::row;
use crate::archive::{Archive, ArchiveError, ArchivedFile};
use crate::http::auth::Caller;
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::{Problem, Site, schema};
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

/// Largest file that is served: the tables of a region of a million servers have some ten megabytes.
const BYTES_MAX: u64 = 1 << 30;

/// The snapshot of a solve, and its result.
const PARTS: [&str; 2] = ["snapshot", "result"];

fn parts() -> utoipa::openapi::Schema {
    schema::words(PARTS)
}

/// A file of a solve.
#[derive(Debug, Serialize, ToSchema)]
struct SolveFile {
    #[schema(schema_with = parts)]
    part: &'static str,
    name: String,
    bytes: u64,
    /// Path to download it from.
    href: String,
}

/// Files of a solve.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SolveFiles {
    /// Empty: none yet, or deleted.
    files: Vec<SolveFile>,
    /// Null: this is the last page.
    next_page_token: Option<String>,
}

const FILES: ListKind =
    ListKind { rows: "files", key: &["part", "name"], order: "part desc, name", page: WHOLE };

impl From<ArchiveError> for Problem {
    fn from(error: ArchiveError) -> Problem {
        tracing::warn!(%error, "cannot read the files of a solve");
        Problem::unavailable("archive_unavailable", error.to_string())
    }
}

fn archive(site: &Site) -> Result<&dyn Archive, Problem> {
    let none = || {
        let detail = "this server has no archive of solves";
        Problem::new(StatusCode::NOT_FOUND, "no_archive", detail)
    };
    site.archive.as_deref().ok_or_else(none)
}

fn url<'a>(solve: &'a SolveRow, part: &str) -> Option<&'a str> {
    if part == PARTS[0] { solve.snapshot_url.as_deref() } else { solve.result_url.as_deref() }
}

/// Files of a solve
#[utoipa::path(get, path = "/solves/{id}/files", operation_id = "list_solve_files",
    params(("id" = Uuid, Path, description = "the solve"), ListQuery),
    responses((status = 200, description = "a page", body = SolveFiles)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let (solve, archive) = (row(&site, &id).await?, archive(&site)?);
    let mut files = Vec::new();
    for part in PARTS {
        let Some(url) = url(&solve, part) else { continue };
        let archived = archive.files(url).await?;
        files.extend(archived.into_iter().map(|ArchivedFile { name, bytes }| {
            let href = format!("/ops/v1/solves/{}/files/{part}/{name}", solve.id);
            SolveFile { part, name, bytes, href }
        }));
    }
    let page = list.page_of(FILES, &filters, files)?;
    Ok(page.response(&SolveFiles { files: Vec::new(), next_page_token: None }))
}

/// A file of a solve
#[utoipa::path(get, path = "/solves/{id}/files/{part}/{name}", operation_id = "get_solve_file",
    params(
        ("id" = Uuid, Path, description = "the solve"),
        ("part" = String, Path, description = "snapshot or result"),
        ("name" = String, Path, description = "name of a listed file"),
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
    // Only listed files are read, so that a name cannot lead to other files.
    let listed = archive.files(url).await?;
    let file = listed.into_iter().find(|file| file.name == name).ok_or_else(unknown)?;
    if file.bytes > BYTES_MAX {
        let detail = format!("{} bytes; at most {BYTES_MAX} are served", file.bytes);
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
