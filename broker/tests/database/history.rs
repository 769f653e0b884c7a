//! Samples of the region over time.

use crate::harness::Database;
use broker::{RegionSample, SAMPLE_EVERY, TimeSpan};
use chrono::{DateTime, TimeDelta, Utc};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn samples_are_taken_once_listed_thinned_and_deleted() {
    let database = Database::new().await;
    let broker = &database.broker;
    assert!(!broker.is_sampled().await.expect("read"));
    for in_use in [7, 8] {
        let sample = RegionSample { in_use, ..RegionSample::default() };
        broker.add_sample(&sample).await.expect("written");
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
