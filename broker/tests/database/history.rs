//! Samples of the region over time.

use crate::harness::Database;
use broker::{
    RegionSample, SAMPLE_EVERY, TimeSpan, UsageAsked, UsageCell, UsageCount, UsageKey, UsageSeries,
};
use chrono::{DateTime, TimeDelta, Utc};
use fleet::Rru;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn samples_are_taken_once_listed_thinned_and_deleted() {
    let database = Database::new().await;
    let broker = &database.broker;
    assert!(!broker.is_sampled().await.expect("read"));
    for in_use in [7, 8] {
        let sample = RegionSample { in_use, ..RegionSample::default() };
        broker.add_sample(&sample, &[]).await.expect("written");
    }
    assert!(broker.is_sampled().await.expect("read"));
    let first = broker.samples_page(None, None, 10).await.expect("read");
    assert_eq!(first.len(), 1, "the first of each five minutes stays");
    assert_eq!(first[0].1.in_use, 7);
    let (newest, _) = first[0];
    let every = TimeDelta::from_std(SAMPLE_EVERY).expect("short");
    assert_eq!(newest.timestamp() % every.num_seconds(), 0);

    // Two days of earlier samples.
    database
        .execute(
            "INSERT INTO region_samples SELECT at - n * interval '5 minutes', n, 0, 0, 0, 0, 0, 0, 0 \
             FROM region_samples, generate_series(1, 576) n",
        )
        .await;
    let page = broker.samples_page(Some(HOUR), None, 100).await.expect("read");
    assert!((11..=12).contains(&page.len()), "{}", page.len());
    let times: Vec<DateTime<Utc>> = page.iter().map(|(at, _)| *at).collect();
    assert!(times.windows(2).all(|pair| pair[0] - pair[1] == every), "newest first: {times:?}");
    let next = broker.samples_page(None, Some(times[3]), 2).await.expect("read");
    assert_eq!(next.iter().map(|(at, _)| *at).collect::<Vec<_>>(), times[4..6]);
    let day = TimeSpan { from: newest - TimeDelta::hours(24), until: newest };
    let thinned = broker.samples_by_time(day, HOUR).await.expect("read");
    assert!((24..=25).contains(&thinned.len()), "{}", thinned.len());
    assert_eq!(thinned.last().expect("one").0, newest, "the last of each hour, oldest first");
    let hours = thinned[1..thinned.len() - 1].windows(2);
    assert!(hours.into_iter().all(|pair| pair[1].0 - pair[0].0 == TimeDelta::hours(1)));

    let earlier = TimeSpan { from: day.from, until: newest - TimeDelta::hours(12) };
    let part = broker.samples_by_time(earlier, HOUR).await.expect("read");
    assert!(part.iter().all(|(at, _)| *at > earlier.from && *at <= earlier.until), "{part:?}");
    assert!((12..=13).contains(&part.len()), "{}", part.len());

    broker.forget_samples(24 * HOUR).await.expect("deleted");
    let left = broker.samples_page(None, None, 1_000).await.expect("read");
    assert!((288..=289).contains(&left.len()), "{}", left.len());
}

/// A cell with its promise in RRU, or its servers, held and used.
fn cell(reservation: &str, hardware_type: &str, counts: [i32; 3]) -> (UsageCell, UsageCount) {
    let owner = if reservation.is_empty() { "" } else { "shop" };
    let datacenter = if hardware_type.is_empty() { "" } else { "dc1" };
    let [promised, held, used] = counts;
    let cell = UsageCell {
        reservation: reservation.to_owned(),
        owner: owner.to_owned(),
        hardware_type: hardware_type.to_owned(),
        datacenter: datacenter.to_owned(),
        value: Rru(2_000_000),
    };
    (cell, UsageCount { promised: Rru(i64::from(promised) * 1_000_000), held, used, lent: 0 })
}

/// Writes a sample and dates it back, as if it had been taken then.
async fn sample_before(database: &Database, minutes: i64, counted: &[(UsageCell, UsageCount)]) {
    let sample = RegionSample::default();
    database.broker.add_sample(&sample, counted).await.expect("written");
    for table in ["usage_samples", "usage_changes", "region_samples"] {
        let back = format!(
            "UPDATE {table} SET at = at - {minutes} * interval '1 minute' \
             WHERE at > clock_timestamp() - interval '6 minutes'"
        );
        database.execute(&back).await;
    }
}

#[tokio::test]
async fn usage_is_stored_where_it_changes_and_read_as_series() {
    let database = Database::new().await;
    let broker = &database.broker;
    let quiet = cell("mail", "C1", [0, 3, 1]);
    for (minutes, used) in [(60, 4), (50, 6), (40, 6), (20, 2)] {
        let busy = cell("web", "C1", [0, 8, used]);
        let counted = [cell("web", "", [20, 0, 0]), busy, quiet.clone(), cell("", "C1", [0, 5, 0])];
        sample_before(&database, minutes, &counted).await;
    }
    // `web` is removed.
    sample_before(&database, 10, &[quiet.clone(), cell("", "C1", [0, 13, 0])]).await;
    let rows = database.number("SELECT count(*) FROM usage_changes").await;
    assert_eq!(rows, 9, "4 cells, 2 more of web, then 2 of its end and 1 of free servers");

    let now = broker.clock().await.expect("read");
    let span = TimeSpan { from: now - TimeDelta::hours(2), until: now };
    let asked = UsageAsked { by: vec![UsageKey::Reservation], step: 600, ..UsageAsked::default() };
    let found = broker.usage_series(span, &asked).await.expect("read");
    let used = |of: &UsageSeries| -> Vec<Option<i64>> {
        of.figures.iter().map(|of| of.map(|of| of.used)).collect()
    };
    assert_eq!(found.iter().map(|of| of.names.join("/")).collect::<Vec<_>>(), ["mail", "web"]);
    let known = |of: &UsageSeries| used(of).into_iter().flatten().collect::<Vec<_>>();
    assert_eq!((known(&found[0]), known(&found[1])), (vec![1; 5], vec![4, 6, 6, 2, 0]));
    assert_eq!(used(&found[1]).iter().filter(|of| of.is_none()).count(), 1, "{found:?}");
    let first = found[1].figures[0].expect("sampled");
    assert_eq!((first.promised, first.used_rru), (Rru(20_000_000), Rru(8_000_000)));

    // What was before the span still holds in it.
    let late = TimeSpan { from: now - TimeDelta::minutes(31), until: now };
    let one = UsageAsked { reservation: Some("mail".to_owned()), ..asked.clone() };
    let part = broker.usage_series(late, &one).await.expect("read");
    assert_eq!(known(&part[0]), [1, 1]);

    broker.forget_usage(Duration::from_secs(15 * 60)).await.expect("deleted");
    let left = broker.usage_series(span, &asked).await.expect("read");
    assert_eq!(known(&left[0]), [1], "the last before the age still holds");
    broker.forget_usage(Duration::ZERO).await.expect("deleted");
    let cells = database.number("SELECT count(*) FROM usage_cells").await;
    assert_eq!(cells, 2, "of what is gone nothing is left");
}
