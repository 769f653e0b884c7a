//! Statement times, counted in this process by statement name.
//!
//! The driver reports each finished statement (`sqlx::query`, through `tracing`); `ras` forwards it to
//! [`note_statement`].

use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the histogram's buckets, in seconds.
pub const STATEMENT_WITHIN: [f64; 7] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0];

/// The times of one statement since the start of this process.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementTimes {
    /// The module and the name of the statement, such as `metrics.COUNTS`.
    pub name: String,
    /// Cumulative counts for the buckets of [`STATEMENT_WITHIN`].
    pub within: Vec<i64>,
    /// The number of executions.
    pub count: i64,
    /// The total time, in seconds.
    pub seconds: f64,
}

#[derive(Default)]
struct Counters {
    /// Counts by the first bucket that fits.
    first_within: [AtomicU64; STATEMENT_WITHIN.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

static COUNTED: LazyLock<HashMap<&'static str, (&'static str, Counters)>> = LazyLock::new(|| {
    let all = crate::all_statements().into_iter();
    all.map(|(name, sql)| (sql, (name, Counters::default()))).collect()
});

/// Counts a finished statement. Statements of other crates are ignored.
pub fn note_statement(sql: &str, took: Duration) {
    let Some((_, counters)) = COUNTED.get(sql.trim()) else { return };
    counters.count.fetch_add(1, Ordering::Relaxed);
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    counters.micros.fetch_add(micros, Ordering::Relaxed);
    let bucket = STATEMENT_WITHIN.iter().position(|end| took.as_secs_f64() <= *end);
    if let Some(bucket) = bucket {
        counters.first_within[bucket].fetch_add(1, Ordering::Relaxed);
    }
}

/// The times of all statements that ran in this process, by name.
pub fn statement_times() -> Vec<StatementTimes> {
    let rows = COUNTED.values().filter_map(|(name, counters)| {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let number = |counted: u64| i64::try_from(counted).unwrap_or(i64::MAX);
        let mut within: Vec<i64> = counters.first_within.iter().map(|n| number(load(n))).collect();
        for bucket in 1..within.len() {
            within[bucket] += within[bucket - 1];
        }
        // Statements may finish during the reads: no bucket exceeds the total.
        let count = number(load(&counters.count)).max(within.last().copied().unwrap_or_default());
        let seconds = Duration::from_micros(load(&counters.micros)).as_secs_f64();
        (count > 0).then(|| StatementTimes { name: label(name), within, count, seconds })
    });
    let mut rows: Vec<StatementTimes> = rows.collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}

/// The module and the name in it: `broker::requests::submit::sql::ADD` gives `submit.ADD`.
fn label(name: &str) -> String {
    let (module, name) = name.rsplit_once("::sql::").unwrap_or(("", name));
    let module = module.rsplit_once("::").map_or(module, |(_, last)| last);
    format!("{module}.{name}")
}

#[cfg(test)]
mod tests {
    use super::{COUNTED, label, note_statement, statement_times};
    use std::collections::BTreeSet;
    use std::time::Duration;

    #[test]
    fn statements_are_counted_by_name_and_bucket() {
        let sql = crate::views::metrics::sql::LAST;
        for millis in [0, 3, 30, 20_000] {
            note_statement(&format!("\n\n{sql}\n"), Duration::from_millis(millis));
        }
        note_statement("SELECT 'of another program'", Duration::from_millis(3));
        let rows = statement_times();
        let row = rows.iter().find(|row| row.name == "metrics.LAST").expect("it ran");
        assert_eq!((row.count, &row.within[..]), (4, &[1, 2, 2, 3, 3, 3, 3][..]));
        assert!((row.seconds - 20.033).abs() < 1e-9, "{}", row.seconds);
        let names: BTreeSet<String> = COUNTED.values().map(|(name, _)| label(name)).collect();
        assert_eq!(names.len(), COUNTED.len(), "labels are unique");
    }
}
