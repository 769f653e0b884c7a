//! Forecasts of series in CSV.

use crate::folder::Folder;
use std::fmt::Write as _;
use std::fs;

/// Two weeks of hours: higher by day than by night, a jump on the twelfth day, a gap before the end.
fn used() -> String {
    let mut text = "time,used\n".to_owned();
    for hour in (0..14 * 24).filter(|hour| *hour != 330) {
        let day = if hour % 24 < 8 { 100 } else { 140 + hour % 5 };
        let jump = if hour >= 11 * 24 { 60 } else { 0 };
        writeln!(text, "{},{}", hour * 3_600, day + jump).expect("a string");
    }
    text
}

#[test]
fn warm_capacity_is_recommended_and_methods_are_compared() {
    let folder = Folder::new();
    folder.write("used.csv", &used());
    let line = "forecast warm used.csv --value used --compare --out page";
    let text = folder.ras(line).code(0).stdout();
    assert!(text.contains("ES, smoothed adaptive margin") && text.contains("frontier"), "{text}");
    assert!(text.contains("row 332: observations are missing before"), "{text}");
    let page = fs::read_to_string(folder.path("page/warm.html")).expect("the page");
    assert!(page.contains("used.csv: warm capacity") && page.contains("The steepest rises"));

    let answer = folder.ras_json(line);
    assert_eq!(answer["format"], "ras-forecast-warm/1");
    let series = &answer["series"][0];
    assert_eq!((&series["steps"], &series["trained"]), (&336.into(), &168.into()));
    let next = |field: &str| series["next"][field].as_f64().expect("a number");
    assert!(next("capacity") >= next("demand"));
    assert_eq!(series["compared"].as_array().map(Vec::len), Some(13));
    let peaks = folder.ras_json("forecast warm used.csv --value used --every 6h");
    assert_eq!(
        (&peaks["series"][0]["steps"], &peaks["series"][0]["step_seconds"]),
        (&56.into(), &21_600.into())
    );
    let constant = &series["compared"][0]["judged"];
    assert!(
        constant["events"].as_u64().is_some_and(|events| events >= 7),
        "every morning: {constant}"
    );
}

#[test]
fn what_is_wrong_with_a_series_is_named() {
    let folder = Folder::new();
    folder.write("used.csv", "time,used\n0,5\n60,7\n60,8\n");
    folder.ras("forecast warm used.csv --value used").fails_with(&[
        "used.csv",
        "column \"time\"",
        "row 4",
        "occurs a second time",
    ]);
    folder.ras("forecast warm used.csv").fails_with(&["no column \"value\"", "time, used"]);
    folder.write("two.csv", "time,value\n0,5\n60,7\n");
    folder.ras("forecast warm two.csv").code(0);
    folder.ras("forecast warm two.csv --every 90s").fails_with(&[
        "two.csv: value",
        "--every",
        "steps of 1 min",
    ]);
    folder.ras("forecast warm none.csv").fails_with(&["none.csv", "cannot be read"]);
    folder
        .ras("forecast warm used.csv --value used --chance 2")
        .fails_with(&["--chance", "is not a share"]);
}
