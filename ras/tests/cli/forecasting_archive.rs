//! Forecasts and their decisions, replayed from an archive of snapshots, and the page of all forecasts.

use crate::folder::Folder;
use chrono::{DateTime, TimeDelta, Utc};
use fleet::{SnapshotParts, UnavailabilityRow};
use serde_json::Value;
use std::fs;
use testkit::rows::{parts, reservation, rru, server};

/// Days of the archive: four snapshots a day, and one each hour in the last sixteen.
const DAYS: i64 = 40;
const HOURLY_FROM: i64 = 24;

fn midnight() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_225_600, 0).expect("an instant")
}

fn name(hour: i64) -> String {
    format!("archive/solves/hour-{hour:04}/1/snapshot")
}

/// 40 servers, of which web holds ten and one more every second day. It asks for 25 RRU and uses all that it holds at noon,
/// half by night. A server of "busy" fails each day at noon, for ten hours.
fn region(hour: i64) -> SnapshotParts {
    let held = 10 + hour / 48;
    let servers = (0..40).map(|number: i64| {
        let of_type = if number % 4 == 3 { "busy" } else { "calm" };
        let place = format!("m{}", number % 3);
        let mut row =
            server(&format!("s{number:02}"), ("dc1", &place, &format!("{place}-r")), of_type);
        row.current_reservation = (number < held).then(|| "web".into());
        let is_day = hour % 24 >= 12;
        row.in_use = number < if is_day { held } else { held / 2 };
        row
    });
    let failures = (0..=hour / 24).filter(|day| day * 24 + 12 <= hour).map(|day| {
        let start = midnight() + TimeDelta::hours(day * 24 + 12);
        let end = start + TimeDelta::hours(10);
        let at = midnight() + TimeDelta::hours(hour);
        UnavailabilityRow {
            event_id: format!("failure-{day:02}").into(),
            scope: "server".into(),
            scope_id: "s03".into(),
            kind: "random_failure".into(),
            started_at: start,
            ended_at: (end <= at).then_some(end),
            recall_minutes: None,
        }
    });
    SnapshotParts {
        taken_at: midnight() + TimeDelta::hours(hour),
        servers: servers.collect(),
        reservations: vec![reservation("web", 25.0)],
        rru: vec![rru("web", "calm", 1.0), rru("web", "busy", 2.0)],
        unavailability: failures.collect(),
        ..parts()
    }
}

fn hours() -> impl Iterator<Item = i64> {
    (0..DAYS * 24).filter(|hour| *hour >= HOURLY_FROM * 24 || hour % 6 == 0)
}

fn write(folder: &Folder, hour: i64, parts: &SnapshotParts) {
    datasets::write_parts(&folder.path(&name(hour)), parts).expect("written");
}

fn archive(folder: &Folder) {
    hours().for_each(|hour| write(folder, hour, &region(hour)));
}

/// The decisions of all policies until an instant, one line each, and how many come after it.
fn decisions(answer: &Value, until: DateTime<Utc>) -> (Vec<String>, usize) {
    let list = |of: &Value, member: &str| of[member].as_array().expect("a list").clone();
    let mut all: Vec<(String, String)> = Vec::new();
    for policy in list(&answer["autosize"], "policies").iter().skip(1) {
        for of in list(policy, "reservations") {
            for resize in list(&of, "resizes") {
                all.push((resize["at"].as_str().expect("an instant").into(), resize.to_string()));
            }
        }
    }
    assert!(all.len() > 3, "requests change: {answer}");
    let requests = all.len();
    for policy in list(&answer["spares"], "policies").iter().skip(1) {
        for of in list(policy, "decisions") {
            all.push((of["at"].as_str().expect("an instant").into(), of["spares"].to_string()));
        }
    }
    assert!(all.len() > requests, "{answer}");
    let spares = all.len();
    for policy in list(&answer["orders"], "policies").iter().skip(1) {
        for place in list(policy, "places") {
            for of in list(&place, "decisions") {
                let day = of["on"].as_str().expect("a date");
                all.push((format!("{day}T00:00:00Z"), of.to_string()));
            }
        }
    }
    assert!(all.len() > spares, "{answer}");
    let is_before =
        |at: &str| at.parse::<DateTime<Utc>>().unwrap_or_else(|_| panic!("{at}")) <= until;
    let (before, after): (Vec<_>, Vec<_>) = all.into_iter().partition(|(at, _)| is_before(at));
    (before.into_iter().map(|(at, of)| format!("{at} {of}")).collect(), after.len())
}

#[test]
fn a_decision_does_not_change_when_later_snapshots_do() {
    let folder = Folder::new();
    archive(&folder);
    let line = "forecast replay archive --since 2026-01-30T00:00:00Z --quantile 60%,99% --cooldown 4h \
        --order-quantile 70%,90% --lead 5 --period 2 --fixed 5% --chance 1%,10%";
    let before = folder.ras_json(line);
    // From the evening of 6 February on the region is another one.
    let cut = 36 * 24 + 18;
    for hour in hours().filter(|hour| *hour > cut) {
        let mut parts = region(hour);
        for (number, row) in parts.servers.iter_mut().enumerate() {
            row.current_reservation = Some("web".into());
            row.in_use = number % 8 != 0;
        }
        parts.unavailability.extend((0..9).map(|number| UnavailabilityRow {
            event_id: format!("later-{number}").into(),
            scope: "server".into(),
            scope_id: format!("s{:02}", 4 * number).into(),
            kind: "software".into(),
            started_at: midnight() + TimeDelta::hours(cut) + TimeDelta::minutes(30),
            ended_at: None,
            recall_minutes: None,
        }));
        write(&folder, hour, &parts);
    }
    let after = folder.ras_json(line);
    let until = midnight() + TimeDelta::hours(cut + 1);
    let (known, rest) = decisions(&before, until);
    let (same, changed) = decisions(&after, until);
    assert_eq!(known, same);
    assert!(rest > 0 && changed > 0, "there are decisions after it, too");
    for part in ["autosize", "spares", "orders"] {
        assert_ne!(before[part], after[part], "{part} came out otherwise");
    }
}

#[test]
fn outcomes_are_those_of_the_snapshots() {
    let folder = Folder::new();
    archive(&folder);
    let line = "forecast replay archive --since 2026-02-06T00:00:00Z --fixed 0%,50% --quantile 99%,60% --cooldown 7d \
        --period 3 --lead 2";
    let answer = folder.ras_json(line);
    assert_eq!(
        (&answer["format"], &answer["region"]),
        (&"ras-forecast-replay/1".into(), &"region-a".into())
    );
    let snapshots = hours().count();
    assert_eq!(answer["snapshots"], snapshots);
    assert_eq!(answer["hours_missing"], DAYS as usize * 24 - snapshots);
    // Four days, each with a failure of ten hours; a server of "busy" is worth 2 RRU.
    let spares = |policy: usize| &answer["spares"]["policies"][policy];
    assert_eq!((&spares(1)["share"], &spares(1)["missing_rru_hours"]), (&0.0.into(), &80.0.into()));
    assert_eq!((&spares(3)["share"], &spares(3)["missing_rru_hours"]), (&0.5.into(), &0.0.into()));
    assert_eq!(
        (&spares(0)["policy"], &spares(0)["missing_rru_hours"]),
        (&"as_it_was".into(), &80.0.into())
    );
    // 25 RRU were asked for and at most 40 used: web holds 28 servers from the second last day on, seven of them of 2 RRU, of which
    // one is down.
    let requests = |policy: usize| &answer["autosize"]["policies"][policy];
    let was = requests(0);
    assert_eq!((&was["policy"], &was["total"]["resizes"]), (&"as_it_was".into(), &0.into()));
    let short = |of: &Value| of["total"]["short_hours"].as_u64().expect("a number");
    assert!(short(was) >= 40, "every hour after noon: {was}");
    assert!(short(requests(1)) < short(was), "{answer}");
    assert!(short(requests(1)) <= short(requests(2)), "Q99 beside Q60");
    let orders = |policy: usize| &answer["orders"]["policies"][policy];
    assert_eq!((&orders(0)["policy"], &orders(0)["short_days"]), (&"as_it_was".into(), &0.into()));
    assert_eq!(orders(1)["days"], 8, "four days of two types");

    let text = folder.ras(&format!("{line} --all")).code(0).stdout();
    for word in
        ["as it was", "Q99, cooldown 7d", "50.00 % shared out", "Q70", "web", "without a snapshot"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    let one = folder.ras_json(&format!("{line} --only spares"));
    assert_eq!((&one["autosize"], &one["orders"]), (&Value::Null, &Value::Null));
    // The same history serves the other commands.
    let orders = folder.ras_json("forecast orders archive");
    assert_eq!(orders["series"].as_array().map(Vec::len), Some(2), "{orders}");
    let days = folder.ras_json("forecast demand archive --by hardware_type --value in_service");
    assert_eq!(days["series"][1]["last_day"], "2026-02-09", "{days}");
    let found = folder.ras_json("forecast spares archive");
    assert_eq!(found["types"][0]["failures"], DAYS, "{found}");
}

#[test]
fn what_is_wrong_with_an_archive_is_named() {
    let folder = Folder::new();
    for hour in 0..30 {
        write(&folder, hour, &region(hour));
    }
    folder.ras("forecast replay archive --until 2025-01-01T00:00:00Z").fails_with(&[
        "archive",
        "fewer than two snapshots",
        "until 2025-01-01T00:00:00Z",
        "30 snapshots from 2026-01-01",
    ]);
    folder
        .ras("forecast replay archive --since 2026-03-01T00:00:00Z")
        .fails_with(&["no snapshot is from 2026-03-01T00:00:00Z on", "2026-01-02T05:00:00Z"]);
    folder.ras("forecast replay nowhere").fails_with(&["nowhere", "there is no folder"]);
    folder.ras("forecast replay gopher://x/y").fails_with(&["gopher"]);
    fs::create_dir(folder.path("empty")).expect("made");
    folder.ras("forecast replay empty").fails_with(&["empty", "has no snapshots"]);
    folder
        .ras(&format!("forecast replay {}", name(3)))
        .fails_with(&["has one snapshot, of 2026-01-01T03:00:00Z"]);
    for (options, why) in [
        ("--reservation absent", "--reservation: the archive has no reservation \"absent\""),
        ("--lead X9=3", "--lead: the archive has no hardware type \"X9\""),
        ("--min 10 --max 5", "min is 10 and max is 5"),
        ("--quantile 10%", "quantile is 0.1; it must be at least 0.5"),
    ] {
        folder.ras(&format!("forecast replay archive {options}")).fails_with(&[why]);
    }
    let short = folder.ras_json("forecast replay archive --only orders");
    let refused = short["orders"]["refused"].as_str().expect("why");
    assert!(refused.contains("cover 1 whole days; a forecast needs 28"), "{refused}");
    folder
        .ras("forecast warm archive --by shelf")
        .fails_with(&["--by shelf", "not one of reservation"]);
    folder.write("used.csv", "time,value\n0,1\n3600,2\n");
    folder
        .ras("forecast warm used.csv --reservation web")
        .fails_with(&["--reservation", "used.csv is a file"]);

    let other = SnapshotParts { region: "region-b".into(), ..region(29) };
    write(&folder, 7, &SnapshotParts { taken_at: region(7).taken_at, ..other });
    folder.ras("forecast replay archive").fails_with(&[
        "hour-0007",
        "\"region-b\"",
        "\"region-a\"",
    ]);
    write(&folder, 7, &region(7));
    folder.write(&format!("{}/servers.parquet", name(9)), "not Parquet");
    folder.ras("forecast replay archive").fails_with(&[
        "cannot read snapshot",
        "hour-0009",
        "servers.parquet",
    ]);
    folder.write(&format!("{}/region.json", name(9)), "{}");
    folder.ras("forecast replay archive").fails_with(&["hour-0009", "region.json"]);
}

#[test]
fn page_has_all_sections_and_says_what_it_cannot_compute() {
    let folder = Folder::new();
    archive(&folder);
    let answer = folder.ras_json("forecast report archive --lead 3 --out page");
    assert_eq!(answer["format"], "ras-forecast-report/1");
    let formats = ["warm", "demand", "orders", "spares", "autosize"];
    for part in formats {
        assert_eq!(answer[part]["format"], format!("ras-forecast-{part}/1"), "{}", answer[part]);
    }
    let page = fs::read_to_string(folder.path("page/forecasts.html")).expect("the page");
    assert!(!page.contains("Cannot be computed") && !page.contains("NaN"), "{page}");
    for part in formats {
        assert!(page.contains(&format!("<section id=\"{part}\"")), "{part}");
        assert!(page.contains(&format!("href=\"#{part}\"")), "{part}");
    }
    // The date is that of the orders, and the page and the terminal say it.
    let growing: String = (0..120).map(|day| format!("{},{}\n", day * 86_400, 50 + day)).collect();
    folder.write("growing.csv", &format!("time,value\n{growing}"));
    folder.write("stock.csv", "series,date,servers\nvalue,1970-01-02,5\n");
    let line = "forecast report growing.csv --stock stock.csv --lead 3 --out growing";
    let grown = folder.ras_json(line);
    let date = grown["orders"]["series"][0]["runs_out_on"].as_str().expect("a date").to_owned();
    let said = format!("value runs out on {date} (Q70): order ");
    let text = folder.ras(line).code(0).stdout();
    assert!(
        text.contains(&said) && text.contains("page written to growing/forecasts.html"),
        "{text}"
    );
    assert!(grown["summary"][0]["text"].as_str().is_some_and(|text| text.starts_with(&said)));
    let page = fs::read_to_string(folder.path("growing/forecasts.html")).expect("the page");
    assert!(page.contains(&said), "{page}");

    // Two days are too few for most of it, and no error.
    for hour in 0..48 {
        let at = folder.path(&format!("short/{hour}"));
        datasets::write_parts(&at, &SnapshotParts { unavailability: Vec::new(), ..region(hour) })
            .expect("written");
    }
    let few = folder.ras_json("forecast report short --out few");
    let refused = |part: &str| few[part]["refused"].as_str().unwrap_or_default().to_owned();
    assert!(refused("spares").contains("no failures"), "{few}");
    assert!(refused("autosize").contains("2 days of demand are known; 14 are needed"), "{few}");
    let page = fs::read_to_string(folder.path("few/forecasts.html")).expect("the page");
    assert!(page.contains("Cannot be computed: ") && page.contains("14 are needed"), "{page}");

    // A file of days has no hours, no stock and no failures.
    let days: String = (0..60).map(|day| format!("{},{}\n", day * 86_400, 50 + day)).collect();
    folder.write("days.csv", &format!("time,value\n{days}"));
    let file = folder.ras_json("forecast report days.csv --out file");
    assert_eq!(file["demand"]["series"][0]["name"], "value");
    for (part, why) in [
        ("warm", "the step of value is 1 d"),
        ("orders", "--stock"),
        ("spares", "--failures"),
        ("autosize", "1 d"),
    ] {
        let refused = file[part]["refused"].as_str().unwrap_or_default();
        assert!(refused.contains(why), "{part}: {}", file[part]);
    }
    folder.ras("forecast report none.csv --out none").fails_with(&["none.csv", "cannot be read"]);
    folder.write("blocked", "");
    folder.ras("forecast report days.csv --out blocked/x").fails_with(&["blocked/x"]);
}
