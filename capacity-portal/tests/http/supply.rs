//! How long servers last: from the region's own history, over HTTP, on pages and as metrics.

use crate::pages::page;
use crate::place::{Place, READER};
use chrono::{Days, NaiveDate};
use reqwest::Method;
use serde_json::Value;

/// 120 days with a sample at noon. Of C4 in dc2, 40 servers are held on the first day and one more on each, and 10 are free
/// on the last. C5 is held for the last ten days only. C6 is held in full. C7 is level.
pub const HISTORY: &str = "
    CREATE TEMP TABLE days AS SELECT n, to_timestamp(floor(extract(epoch FROM clock_timestamp()) / 86400) * 86400 \
        - n * 86400 + 43200) AS at FROM generate_series(1, 120) n;
    INSERT INTO usage_samples SELECT at FROM days;
    INSERT INTO usage_cells (reservation, owner, hardware_type, datacenter, value_micro) VALUES
        ('a', 'a', 'C4', 'dc2', 1000000), ('', '', 'C4', 'dc2', 0), ('a', 'a', 'C5', 'dc2', 1000000),
        ('', '', 'C5', 'dc2', 0), ('a', 'a', 'C6', 'dc2', 1000000), ('a', 'a', 'C7', 'dc2', 1000000), ('', '', 'C7', 'dc2', 0);
    INSERT INTO usage_changes (cell_id, at, promised_micro, held, used, lent)
        SELECT cell_id, at, 0, CASE hardware_type || reservation
            WHEN 'C4a' THEN 160 - n WHEN 'C4' THEN 9 + n WHEN 'C5a' THEN CASE WHEN n > 10 THEN 0 ELSE 30 - n END
            WHEN 'C5' THEN CASE WHEN n > 10 THEN 0 ELSE 5 END WHEN 'C6a' THEN 20 WHEN 'C7a' THEN 40 ELSE 8 END, 0, 0
        FROM days, usage_cells WHERE datacenter = 'dc2'";

pub async fn of_type(place: &Place, query: &str, name: &str) -> Value {
    let (status, found) = place.get(&format!("/ops/v1/supply{query}")).await;
    assert_eq!(status, 200, "{found}");
    let rows = found["supply"].as_array().expect("rows");
    let row = rows.iter().find(|of| of["hardware_type"] == name && of["datacenter"] == "dc2");
    row.unwrap_or_else(|| panic!("no {name} in {found}")).clone()
}

pub fn date(of: &Value) -> NaiveDate {
    serde_json::from_value(of.clone()).expect("a date")
}

#[tokio::test]
async fn a_type_runs_out_on_the_day_that_its_growth_takes_the_last_free_server() {
    let place = Place::after(HISTORY).await;
    place.ready().await;
    let (_, found) = place.get("/ops/v1/supply").await;
    assert_eq!((&found["quantile"], &found["days"]), (&0.7.into(), &28.into()), "{found}");
    let last = date(&found["last_day"]);
    // Ten are free and one more is needed each day: the eleventh day is the first short one, give or take what the
    // quantile lies above the median.
    let growing = of_type(&place, "", "C4").await;
    assert_eq!((&growing["servers"], &growing["free"]), (&169.into(), &10.into()), "{growing}");
    let days = growing["days_left"].as_u64().expect("days");
    assert!((8..=13).contains(&days), "{growing}");
    assert_eq!(date(&growing["runs_out_on"]), last + Days::new(days), "{growing}");
    let sentence = format!("C4 runs out in dc2 on {} (Q70)", date(&growing["runs_out_on"]));
    assert_eq!(growing["sentence"], sentence.as_str());
    // A higher quantile of demand is reached no later.
    let sure = of_type(&place, "?quantile=0.9", "C4").await;
    assert!(date(&sure["runs_out_on"]) <= date(&growing["runs_out_on"]), "{sure}");

    // Ten days say nothing about weeks, so there is no date.
    let new = of_type(&place, "", "C5").await;
    assert_eq!((&new["state"], &new["runs_out_on"]), (&"unknown".into(), &Value::Null), "{new}");
    assert_eq!((&new["known_days"], &new["highest"]), (&10.into(), &Value::Null), "{new}");
    let full = of_type(&place, "", "C6").await;
    assert_eq!((&full["state"], &full["days_left"]), (&"out".into(), &0.into()), "{full}");
    let level = of_type(&place, "", "C7").await;
    assert_eq!((&level["state"], &level["days_left"]), (&"lasts".into(), &Value::Null), "{level}");
    let rank = |of: &Value| of["rank"].as_u64().expect("a number");
    assert!(rank(&full) < rank(&growing) && rank(&growing) < rank(&level), "{found}");

    let metrics = place.send(Method::GET, "/metrics", Some(READER), "").await;
    let metrics = metrics.text().await.expect("text");
    let line = format!("ras_runs_out_days{{datacenter=\"dc2\",hardware_type=\"C4\"}} {days}");
    assert!(metrics.lines().any(|of| of == line), "{metrics}");
    assert!(metrics.contains("ras_supply{state=\"runs_out\"} 1"), "{metrics}");
    assert!(!metrics.contains("hardware_type=\"C5\"") && !metrics.contains("hardware_type=\"C7\""));

    let (status, text) = page(&place, "/supply", None).await;
    assert_eq!(status, 200);
    assert!(text.contains(&sentence) && text.contains("Figures as a table"), "{text}");
    let (_, text) = page(&place, "/supply?hardware_type=C5", None).await;
    assert!(
        text.contains("10 days of C5 in dc2 are too few") && !text.contains(&sentence),
        "{text}"
    );
    let (_, overview) = page(&place, "/", None).await;
    assert!(overview.contains(&sentence), "{overview}");
}

#[tokio::test]
async fn supply_takes_known_quantiles_only() {
    let place = Place::new().await;
    let (status, problem) = place.get("/ops/v1/supply?quantile=0.8").await;
    assert_eq!((status.as_u16(), &problem["code"]), (400, &"malformed".into()));
    assert!(problem["detail"].as_str().expect("text").contains("0.5, 0.6, 0.7, 0.9"), "{problem}");
    assert_eq!(page(&place, "/supply?quantile=x", None).await.0, 400);
}
