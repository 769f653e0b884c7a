//! What is a series, what is refused, and what is marked.

use forecast::{Faults, Notice, Point, Series, SeriesError, Step};

fn points(rows: &[(i64, f64)]) -> Vec<Point> {
    rows.iter().zip(2..).map(|(&(time, value), row)| Point { time, value, row }).collect()
}

fn refused(rows: &[(i64, f64)]) -> String {
    Series::from_points(&points(rows), Faults::Refuse).expect_err("must be refused").to_string()
}

#[test]
fn each_broken_rule_names_its_row() {
    let cases: [(&[(i64, f64)], &str); 10] = [
        (&[], "known observations: 0; at least 2 are needed"),
        (&[(0, 1.0)], "known observations: 1; at least 2 are needed"),
        (&[(0, 1.0), (300, -1.0)], "row 3: the value is -1; it must be at least 0"),
        (&[(0, 1.0), (300, f64::NAN)], "row 3: the value is NaN; it must be a finite number"),
        (&[(0, 1.0), (300, 1.0), (300, 2.0)], "row 4: time 300 occurs a second time"),
        (&[(0, 1.0), (600, 1.0), (300, 2.0)], "row 4: time 300 follows 600; times must rise"),
        (&[(0, 1.0), (300, 1.0), (750, 2.0)], "row 4: time 750 is not a whole number of steps"),
        (&[(0, 1.0), (300, 1.0), (1200, 2.0)], "row 4: observations are missing before"),
        (&[(0, 9.0), (300, 0.0), (600, 8.0)], "row 3: values are 0 between larger"),
        (&[(i64::MIN, 9.0), (i64::MAX, 1.0)], "row 3: 18446744073709551615 s lie between"),
    ];
    for (rows, message) in cases {
        let found = refused(rows);
        assert!(found.contains(message), "{found}\n{message}");
    }
    let far = [(0, 1.0), (1, 1.0), (100_000_000, 1.0)];
    assert!(refused(&far).contains("row 4: the series would have more than 10000000 steps of 1 s"));
}

#[test]
fn gaps_and_resets_are_marked_and_said() {
    let rows = [(0, 9.0), (300, 0.0), (600, 8.0), (1200, 7.0), (1500, 7.0)];
    let (series, notices) = Series::from_points(&points(&rows), Faults::Mark).expect("marked");
    let values: Vec<_> = series.values().collect();
    assert_eq!(values, [Some(9.0), None, Some(8.0), None, Some(7.0), Some(7.0)]);
    assert_eq!(series.filled(), [9.0, 9.0, 8.0, 8.0, 7.0, 7.0]);
    assert_eq!(notices, [Notice::Gap { row: 5, steps: 1 }, Notice::Reset { row: 3, steps: 1 }]);
    assert_eq!((series.start(), series.step(), series.time(5)), (0, Step::FIVE_MINUTES, 1500));
}

#[test]
fn zeros_of_an_empty_fleet_and_of_a_rare_type_stay() {
    let empty = [(0, 9.0), (1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0), (5, 9.0)];
    let rare = [(0, 0.0), (1, 5.0), (2, 0.0), (3, 1.0), (4, 0.0)];
    for rows in [&empty[..], &rare[..]] {
        let (series, notices) = Series::from_points(&points(rows), Faults::Refuse).expect("kept");
        assert!(series.values().all(|value| value.is_some()) && notices.is_empty());
    }
}

#[test]
fn two_points_are_a_series_that_some_methods_refuse() {
    let (series, _) =
        Series::from_points(&points(&[(0, 1.0), (60, 2.0)]), Faults::Refuse).expect("two");
    assert_eq!(series.require(3), Err(SeriesError::TooShort { found: 2, needed: 3 }));
    assert_eq!(series.slice(1, 9).map(|rest| (rest.start(), rest.len())), Some((60, 1)));
    assert_eq!(series.slice(2, 9), None);
    assert_eq!(Step::FIVE_MINUTES.per(Step::DAY), 288);
}

#[test]
fn peaks_are_those_of_whole_intervals() {
    let values = vec![Some(1.0), Some(3.0), None, Some(2.0), None, None, Some(9.0)];
    let series = Series::new(60, Step::FIVE_MINUTES, values).expect("a series");
    let ten = Step::from_seconds(600).expect("not 0");
    let peaks = series.peaks(ten).expect("three intervals");
    assert!(peaks.values().eq([Some(3.0), Some(2.0), None]));
    assert_eq!((peaks.start(), peaks.step()), (60, ten));
    assert_eq!(series.peaks(Step::from_seconds(450).expect("not 0")), None, "one and a half steps");
    assert_eq!(series.peaks(Step::HOUR), None, "longer than the series");
}
