//! How long statements take, counted in this process by the name each has in its list.
//!
//! The driver says of each statement when it has ended (`sqlx::query`, by `tracing`); `ras` hands that on to
//! [`note_statement`].

use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper ends of the buckets that times of statements are counted in, in seconds.
pub const STATEMENT_WITHIN: [f64; 7] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0];

/// How long a statement took, each time since this process began.
#[derive(Clone, Debug, PartialEq)]
pub struct StatementTimes {
    /// Its module and its name there, as in `metrics.COUNTS`.
    pub name: String,
    /// How many times within each of [`STATEMENT_WITHIN`].
    pub within: Vec<i64>,
    /// How many times.
    pub count: i64,
    /// The sum of those times, in seconds.
    pub seconds: f64,
}

#[derive(Default)]
struct Counters {
    /// By the first bucket it fits in.
    first_within: [AtomicU64; STATEMENT_WITHIN.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

static COUNTED: LazyLock<HashMap<&'static str, (&'static str, Counters)>> = LazyLock::new(|| {
    let all = crate::all_statements().into_iter();
    all.map(|(name, sql)| (sql, (name, Counters::default()))).collect()
});

/// Counts a statement that has ended. What is none of this crate's is not counted.
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

/// Every statement that ran in this process and how long it took, by name.
pub fn statement_times() -> Vec<StatementTimes> {
    let rows = COUNTED.values().filter_map(|(name, counters)| {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let number = |counted: u64| i64::try_from(counted).unwrap_or(i64::MAX);
        let mut within: Vec<i64> = counters.first_within.iter().map(|n| number(load(n))).collect();
        for bucket in 1..within.len() {
            within[bucket] += within[bucket - 1];
        }
        // What ends meanwhile: no bucket holds more than all.
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
        assert_eq!(names.len(), COUNTED.len(), "a name for each");
    }
}
