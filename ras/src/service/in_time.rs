//! Limits how long an answer of Postgres is waited for.

use anyhow::{Context, Result};
use broker::DbError;
use std::future::Future;
use std::time::Duration;

/// Timeout of short statements: a network that drops packets gives no error, and the next attempt
/// uses another connection.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The answer of Postgres, or an error after a timeout.
pub(super) async fn in_time<T>(asked: impl Future<Output = Result<T, DbError>>) -> Result<T> {
    let answer = tokio::time::timeout(ANSWER_WITHIN, asked).await;
    Ok(answer.with_context(|| format!("no answer within {} s", ANSWER_WITHIN.as_secs()))??)
}
