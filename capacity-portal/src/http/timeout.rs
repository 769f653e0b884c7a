//! Timeouts of Postgres, as handlers wait for it.

use super::problem::Problem;
use std::time::Duration;
use tokio::time::timeout;

/// Timeout of the readiness check: load balancers poll every few seconds and give up about as soon.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(2);

/// Timeout of other queries: Prometheus waits ten seconds, and a slow Postgres is not down.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(9);

/// Timeout of reading the whole region.
pub(crate) const REGION_WITHIN: Duration = Duration::from_secs(30);

/// Waits for the broker for at most [`ANSWER_WITHIN`], then reports Postgres as unavailable.
pub(crate) async fn in_time<T, E>(query: impl Future<Output = Result<T, E>>) -> Result<T, Problem>
where
    Problem: From<E>,
{
    let late = |_| Problem::unavailable("postgres_unavailable", "Postgres does not answer in time");
    Ok(timeout(ANSWER_WITHIN, query).await.map_err(late)??)
}
