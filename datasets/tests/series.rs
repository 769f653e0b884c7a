//! CSV files of series: what is read, and what a broken one is told.

use datasets::import::{NamedSeries, SeriesColumns, SeriesFileError, read_series};
use forecast::{Faults, Notice, Step};

fn columns(by: &[&str]) -> SeriesColumns {
    let by = by.iter().map(|name| (*name).to_owned()).collect();
    SeriesColumns { time: "t".to_owned(), value: "used".to_owned(), by }
}

fn read(text: &str, by: &[&str], faults: Faults) -> Result<Vec<NamedSeries>, SeriesFileError> {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("demand.csv");
    std::fs::write(&file, text).expect("a file");
    read_series(&file, &columns(by), faults)
}

fn refusal(text: &str) -> String {
    read(text, &[], Faults::Refuse).expect_err("must be refused").to_string()
}

#[test]
fn seconds_dates_and_instants_are_times() {
    let texts = [
        "t,used\n0,1\n86400,2\n172800,3\n",
        "t,used\n1970-01-01,1\n1970-01-02,2\n1970-01-03,3\n",
        "used,other,t\n1,x,1970-01-01T01:00:00+01:00\n2,,1970-01-02T00:00:00Z\n3,,1970-01-03T00:00:00Z\n",
    ];
    for text in texts {
        let found = read(text, &[], Faults::Refuse).expect("a series");
        let [NamedSeries { name, series, notices }] = &found[..] else { panic!("{found:?}") };
        assert_eq!((name.as_str(), series.start(), series.step()), ("used", 0, Step::DAY));
        assert!(series.values().eq([Some(1.0), Some(2.0), Some(3.0)]) && notices.is_empty());
    }
}

#[test]
fn columns_tell_series_apart() {
    let text = "t,region,type,used\n0,2,A,1\n0,1,A,5\n60,2,A,1\n60,1,A,6\n120,1,A,\n180,1,A,7\n";
    let found = read(text, &["region", "type"], Faults::Mark).expect("two series");
    let names: Vec<&str> = found.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["1/A", "2/A"]);
    assert!(found[0].series.values().eq([Some(5.0), Some(6.0), None, Some(7.0)]));
    assert_eq!(found[0].notices, [Notice::Gap { row: 7, steps: 1 }]);
}

#[test]
fn what_is_broken_is_named_by_file_line_and_column() {
    let cases = [
        ("time,used\n0,1\n", "has no column \"t\"; its columns are time, used"),
        ("t,used\n0,1\n60,many\n", "line 3: used: \"many\" is not a number"),
        ("t,used\n0,1\n60,-4\n", "line 3: used: -4 must be finite and not negative"),
        ("t,used\n0,1\n60,inf\n", "line 3: used: inf must be finite"),
        ("t,used\n0,1\nnoon,1\n", "line 3: t: \"noon\" is neither a whole number of seconds"),
        ("t,used\n0,1\n,1\n", "line 3: t: is empty"),
        ("t,used\n0,1\n1700000000000,1\n", "line 3: t: 1700000000000 must be a number of seconds"),
        ("t,used\n0,1\n60\n", "line 3: record: has 1 fields, the header has 2"),
        ("t,used\n", "used: column \"used\": known observations: 0; at least 2 are needed"),
        ("t,used\n0,1\n", "column \"used\": known observations: 1; at least 2 are needed"),
        ("t,used\n0,1\n60,2\n60,3\n", "column \"t\": row 4: time 60 occurs a second time"),
        ("t,used\n0,1\n60,2\n30,3\n", "column \"t\": row 4: time 30 follows 60; times must rise"),
        ("t,used\n0,1\n60,2\n150,3\n", "column \"t\": row 4: time 150 is not a whole number"),
        ("t,used\n0,1\n60,2\n240,3\n", "column \"t\": row 4: observations are missing before"),
        ("t,used\n0,9\n60,0\n120,8\n", "column \"used\": row 3: values are 0 between larger"),
        ("t,used\n0,1\n60,1e19\n", "column \"used\": row 3: the value is 10000000000000000000"),
    ];
    for (text, message) in cases {
        let found = refusal(text);
        assert!(found.contains(message) && found.contains("demand.csv"), "{found}\n{message}");
    }
}

#[test]
fn every_broken_field_is_named_at_once() {
    let found = refusal("t,used\nx,1\n60,y\n120,1\n");
    assert!(found.contains("line 2: t:") && found.contains("line 3: used:"), "{found}");
}
