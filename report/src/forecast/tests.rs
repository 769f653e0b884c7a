//! Tests of the page of warm capacity.

use super::{WarmPart, WarmSeries, render};
use crate::tests::elements;
use forecast::tune::{Choice, Family, choose, recommended};
use forecast::warm::{Outcome, capacities, judge, next};
use forecast::{Notice, Series, Step};

/// Two days by the hour: calm, with a jump of a half on the second day.
fn series() -> Series {
    let value = |step: usize| 100.0 + (step % 3) as f64 + if step < 36 { 0.0 } else { 50.0 };
    Series::new(0, Step::HOUR, (0..48).map(|step| Some(value(step))).collect()).expect("a series")
}

fn page(name: &str, series: &Series, choices: &[Choice]) -> String {
    let method = recommended(0.01, Step::HOUR);
    let held = capacities(series, &method).expect("valid parameters");
    let recommended = judge(series, &held, 24..48);
    let notices = [Notice::Gap { row: 7, steps: 2 }];
    let next = next(series, &method).expect("valid parameters");
    let split = 24;
    let series =
        [WarmSeries { name, series, notices: &notices, split, next, recommended, choices }];
    render("<used> & free.csv", &WarmPart { chance: 0.01, series: &series })
}

#[test]
fn page_is_well_formed_and_says_what_was_short() {
    let series = series();
    let families = [Family::Constant5, Family::ConstantMargin, Family::SmoothedMargin];
    let choices = choose(&series, &families, 0.01, 24).expect("valid parameters");
    let page = page("<b>web</b>", &series, &choices);
    let circles = elements(&page).iter().filter(|name| *name == "circle").count();
    assert!(circles >= choices.len(), "a point for each method: {circles}");
    for text in
        ["&lt;b&gt;web", "row 7: observations are missing", "ES, constant margin", "short by"]
    {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("<b>") && !page.contains("NaN") && !page.contains("inf"));
}

#[test]
fn methods_that_were_not_compared_and_demand_that_is_zero_have_a_page() {
    let zeros = Series::new(0, Step::HOUR, vec![Some(0.0); 48]).expect("a series");
    let choices = choose(&zeros, &Family::ALL, 0.01, 24).expect("valid parameters");
    assert!(
        choices.iter().all(|choice| choice.judged == Outcome { steps: 24, ..Outcome::default() })
    );
    for choices in [&choices[..], &[]] {
        let page = page("idle", &zeros, choices);
        elements(&page);
        assert_eq!(page.contains("Demand does not rise"), !choices.is_empty());
        assert!(!page.contains("NaN"));
    }
}
