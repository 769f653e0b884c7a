//! Queries and paths, read strictly: unknown parameters and values are rejected.

use super::problem::Problem;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use broker::State;
use serde::de::DeserializeOwned;
use std::str::FromStr;

/// A query without unknown parameters (`T` denies unknown fields) and without zero characters.
pub(crate) struct StrictQuery<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for StrictQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<StrictQuery<T>, Problem> {
        if parts.uri.query().is_some_and(|query| query.contains("%00")) {
            return Err(Problem::zero_character());
        }
        let refused = |error: QueryRejection| Problem::bad_request("malformed", error.body_text());
        let Query(query) = Query::from_request_parts(parts, state).await.map_err(refused)?;
        Ok(StrictQuery(query))
    }
}

/// Parses the id in a path; `unknown` makes the problem if it is not an id.
pub(crate) fn id<T: FromStr>(
    text: &str,
    unknown: impl FnOnce(String) -> Problem,
) -> Result<T, Problem> {
    text.parse().map_err(|_| unknown(format!("{text:?} is not an id")))
}

/// Number of rows of a page, checked to be from 1 to `most`.
pub(crate) fn limit(limit: Option<u32>, default: u32, most: u32) -> Result<u32, Problem> {
    let limit = limit.unwrap_or(default);
    if (1..=most).contains(&limit) {
        return Ok(limit);
    }
    Err(Problem::bad_request("malformed", format!("limit must be from 1 to {most}")))
}

/// Checks that a filter is one of a closed list.
pub(crate) fn word<'a>(
    word: Option<&'a str>,
    field: &str,
    words: impl IntoIterator<Item = &'static str>,
) -> Result<Option<&'a str>, Problem> {
    let words: Vec<&str> = words.into_iter().collect();
    match word {
        Some(word) if !words.contains(&word) => {
            let detail = format!("{field} {word:?} is not one of {}", words.join(", "));
            Err(Problem::bad_request("malformed", detail))
        }
        word => Ok(word),
    }
}

/// Parses a filter by state.
pub(crate) fn state_of<S: State>(name: Option<&str>) -> Result<Option<S>, Problem> {
    let name = word(name, "state", S::ALL.iter().map(|state| state.as_str()))?;
    Ok(S::ALL.iter().copied().find(|state| name == Some(state.as_str())))
}

/// Rejects texts that Postgres cannot store, and so cannot find.
pub(crate) fn storable<'a>(mut texts: impl Iterator<Item = &'a String>) -> Result<(), Problem> {
    if texts.any(|text| text.contains('\0')) {
        return Err(Problem::zero_character());
    }
    Ok(())
}
