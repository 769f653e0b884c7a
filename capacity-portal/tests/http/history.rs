//! The history of the region: samples that a server takes, their list, and the page.

use crate::pages::page;
use crate::place::{PATIENCE, Place};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// Waits for the first sample.
async fn sampled(place: &Place) -> Value {
    let sampled = async {
        loop {
            let (status, list) = place.get("/ops/v1/history?range=1h").await;
            assert_eq!(status, 200, "{list}");
            if let Some(sample) = list["samples"].get(0) {
                return sample.clone();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, sampled).await.expect("a server takes a sample")
}

#[tokio::test]
async fn server_samples_the_region_as_the_overview_shows_it() {
    let place = Place::new().await;
    place.ready().await;
    let sample = sampled(&place).await;
    let uses = ["in_use", "idle", "shared_buffer", "free", "unavailable"];
    let servers = uses.map(|of| sample[format!("servers_{of}")].as_i64().expect("a count"));
    assert_eq!(servers.iter().sum::<i64>(), 24, "{sample}");
    let (_, region) = place.get("/ops/v1/certificate").await;
    let promised: f64 = region["reservations"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["promised_rru"].as_f64().expect("a number"))
        .sum();
    assert_eq!(sample["promised_rru"].as_f64(), Some(promised), "{region}");
    assert!(sample["guaranteed_rru"].as_f64() <= sample["held_rru"].as_f64(), "{sample}");
    assert!(sample["held_rru"].as_f64() <= sample["promised_rru"].as_f64(), "{sample}");
    for range in ["1h", "24h", "7d", "30d"] {
        let (status, text) = page(&place, &format!("/history?range={range}"), None).await;
        assert_eq!(status, 200);
        assert!(text.contains(&format!("range={range}\" aria-current=\"true\"")), "{text}");
        // Each chart has its figures as text.
        assert_eq!(text.matches("class=\"chart\"").count(), 2, "no server has moved: {text}");
        assert_eq!(text.matches("Figures as a table").count(), 2, "{text}");
        assert!(text.contains("No server was moved in this time."), "{text}");
    }
}

#[tokio::test]
async fn history_takes_known_ranges_only() {
    let place = Place::new().await;
    let (status, problem) = place.get("/ops/v1/history?range=2h").await;
    assert_eq!((status.as_u16(), &problem["code"]), (400, &"malformed".into()));
    assert!(problem["detail"].as_str().expect("text").contains("30d"), "{problem}");
    assert_eq!(page(&place, "/history?range=2h", None).await.0, 400);
    for wrong in
        ["from=1&until=0", "from=1", "range=1h&from=1&until=2", "from=1&until=9999999999999999"]
    {
        assert_eq!(page(&place, &format!("/history?{wrong}"), None).await.0, 400, "{wrong}");
    }
}

#[tokio::test]
async fn history_shows_a_part_of_the_time() {
    let place = Place::new().await;
    place.ready().await;
    let sample = sampled(&place).await;
    let at: chrono::DateTime<chrono::Utc> =
        serde_json::from_value(sample["at"].clone()).expect("a time");
    let at = at.timestamp();
    let part = |from: i64, until: i64| format!("/history?from={}&until={}", at + from, at + until);
    let (status, text) = page(&place, &part(-3_600, 1), None).await;
    assert_eq!((status.as_u16(), text.matches("class=\"chart\"").count()), (200, 2), "{text}");
    for link in ["Earlier", "Later", "Zoom in", "Zoom out"] {
        assert!(text.contains(&format!(">{link}</a>")), "{link}: {text}");
    }
    assert!(!text.contains("aria-current=\"true\""), "no range is shown: {text}");
    let (_, text) = page(&place, &part(-7_200, -3_600), None).await;
    assert!(text.contains("There is no sample in this time."), "{text}");
}

/// The last value of a figure of a series.
fn last(series: &Value, figure: &str) -> Option<f64> {
    series[figure].as_array().expect("a list").last().and_then(Value::as_f64)
}

#[tokio::test]
async fn usage_has_the_servers_of_each_reservation_type_and_datacenter() {
    let place = Place::new().await;
    place.ready().await;
    let sample = sampled(&place).await;
    let (status, found) = place.get("/v1/history/usage?days=1").await;
    assert_eq!((status.as_u16(), &found["step_seconds"]), (200, &300.into()), "{found}");
    let series = found["series"].as_array().expect("series");
    let names: Vec<&str> =
        series.iter().filter_map(|of| of["of"]["reservation"].as_str()).collect();
    assert_eq!(names, ["a", "b/ü"]);
    let sum = |figure: &str| series.iter().filter_map(|of| last(of, figure)).sum::<f64>();
    assert_eq!(sum("promised_rru"), sample["promised_rru"].as_f64().expect("a number"));
    assert_eq!(sum("held"), 16.0, "{found}");
    assert_eq!(sum("used"), sample["servers_in_use"].as_f64().expect("a number"));
    let (_, found) =
        place.get("/v1/history/usage?by=hardware_type,datacenter&step=1d&days=1").await;
    let series = found["series"].as_array().expect("series");
    let sum = |figure: &str| series.iter().filter_map(|of| last(of, figure)).sum::<f64>();
    assert_eq!((sum("held"), sum("free"), sum("promised_rru")), (16.0, 8.0, 0.0), "{found}");
    assert!(series.iter().all(|of| of["of"]["datacenter"].is_string()), "{found}");
    let (_, found) = place.get("/v1/history/usage?reservation=a&step=1h").await;
    assert_eq!(found["series"].as_array().map(Vec::len), Some(1), "{found}");
    let (_, found) = place.get("/v1/history/usage?owner=unknown").await;
    assert_eq!(found["series"].as_array().map(Vec::len), Some(0), "{found}");
}

#[tokio::test]
async fn usage_takes_known_words_only() {
    let place = Place::new().await;
    for (wrong, named) in [
        ("by=rack", "hardware_type"),
        ("by=owner,owner", "twice"),
        ("step=2h", "1d"),
        ("days=0", "400"),
        ("days=401", "400"),
        ("range=1h", "range"),
    ] {
        let (status, problem) = place.get(&format!("/v1/history/usage?{wrong}")).await;
        assert_eq!((status.as_u16(), &problem["code"]), (400, &"malformed".into()), "{wrong}");
        assert!(problem["detail"].as_str().expect("text").contains(named), "{problem}");
    }
}
