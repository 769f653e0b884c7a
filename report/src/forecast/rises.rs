//! The steepest rises of demand, and which margins held.

use super::WarmSeries;
use crate::line_chart::{self, Axis};
use crate::number;
use crate::svg::{self, Scale};
use forecast::tune::Family;
use forecast::warm::{capacities, rises};
use maud::{Markup, html};

/// Rises that are shown.
const RISES: usize = 5;
/// Steps between two of them.
const APART: usize = 12;
/// Steps before and after a rise that its chart shows.
const AROUND: usize = 24;

/// The methods that are compared, with the class of their line.
const COMPARED: [Family; 4] = [
    Family::ConstantMargin,
    Family::AdaptiveMargin,
    Family::SmoothedMargin,
    Family::ExpectedMargin,
];

/// What a method held at each step.
struct Held {
    family: Family,
    capacity: Vec<Option<f64>>,
}

pub(super) fn section(of: &WarmSeries) -> Markup {
    let steps = rises(of.series, of.split..of.series.len(), RISES, APART);
    let compared = of.choices.iter().filter(|choice| COMPARED.contains(&choice.family));
    // The methods have run once, so their parameters are in range.
    let held: Vec<Held> = compared
        .filter_map(|choice| {
            let capacity = capacities(of.series, &choice.method).ok()?;
            Some(Held { family: choice.family, capacity })
        })
        .collect();
    html! {
        h3 { "The steepest rises" }
        @if steps.is_empty() {
            (svg::missing("Demand does not rise in the part that is judged."))
        } @else {
            (table(of, &steps, &held))
            @for held in &held { (chart(of, &steps, held)) }
        }
    }
}

fn table(of: &WarmSeries, steps: &[usize], held: &[Held]) -> Markup {
    html! {
        div.scroll {
            table.data {
                thead { tr {
                    th scope="col" { "hour" }
                    th.n scope="col" { "demand before" }
                    th.n scope="col" { "demand" }
                    @for held in held { th.n scope="col" { (held.family.label()) } }
                } }
                tbody {
                    @for step in steps {
                        tr {
                            th scope="row" { (hour(of, *step)) }
                            td.n { (amount(of.series.get(step - 1))) }
                            td.n { (amount(of.series.get(*step))) }
                            @for held in held { td.n { (verdict(of, held, *step)) } }
                        }
                    }
                }
            }
        }
    }
}

fn hour(of: &WarmSeries, step: usize) -> String {
    let seconds = of.series.time(step) - of.series.start();
    number::decimal(seconds as f64 / 3_600.0)
}

fn amount(value: Option<f64>) -> String {
    value.map_or_else(|| number::NOTHING.to_owned(), number::decimal)
}

fn verdict(of: &WarmSeries, held: &Held, step: usize) -> String {
    let capacity = held.capacity.get(step).copied().flatten();
    match of.series.get(step).zip(capacity) {
        Some((demand, capacity)) if demand > capacity => {
            format!("short by {}", number::decimal(demand - capacity))
        }
        Some((demand, capacity)) => format!("held, {} over", number::decimal(capacity - demand)),
        None => number::NOTHING.to_owned(),
    }
}

/// Demand and what a method held around the steepest rise of all, with short steps marked.
fn chart(of: &WarmSeries, steps: &[usize], held: &Held) -> Markup {
    let rise = |step: &usize| of.series.get(*step).zip(of.series.get(step - 1)).map(|(a, b)| a - b);
    let steepest = steps
        .iter()
        .max_by(|one, other| rise(one).unwrap_or(0.0).total_cmp(&rise(other).unwrap_or(0.0)));
    let Some(&steepest) = steepest else { return html! {} };
    let (from, to) = (steepest.saturating_sub(AROUND), (steepest + AROUND).min(of.series.len()));
    let hours = f64::from(of.series.step().seconds()) / 3_600.0;
    let at = |step: usize| (step - from) as f64 * hours;
    let demand: Vec<(f64, f64)> =
        (from..to).filter_map(|step| Some((at(step), of.series.get(step)?))).collect();
    let capacity: Vec<(f64, f64)> =
        (from..to).filter_map(|step| Some((at(step), held.capacity[step]?))).collect();
    let end = at(to.max(from + 1));
    let values = demand.iter().chain(&capacity).map(|(_, value)| *value);
    let axis = Axis::new(values, &|value, _| number::short(value));
    let time = Scale::ending_at(end, 4);
    let short = (from..to).filter_map(|step| {
        let (demand, capacity) = of.series.get(step).zip(held.capacity[step])?;
        (demand > capacity).then_some((at(step), demand))
    });
    let marks = html! {
        @for (hour, demand) in short {
            circle.off cx=(svg::percent(time.at(hour))) cy=(svg::percent(1.0 - axis.at(demand))) r="4" {}
        }
    };
    let lines = [("line-primal", &capacity[..]), ("line-gap", &demand[..])];
    let label = format!("Demand and capacity held by {}", held.family.label());
    html! {
        h3 { (held.family.label()) ", around hour " (hour(of, steepest)) }
        (svg::legend([
            ("ink", "demand".to_owned()),
            ("after", "held".to_owned()),
            ("off", "short step".to_owned()),
        ]))
        (line_chart::plot(&axis, &time, end, &lines, &marks, &label, hours_label))
    }
}

fn hours_label(hours: f64) -> String {
    if hours == 0.0 { "0".to_owned() } else { format!("{}\u{202f}h", number::decimal(hours)) }
}
