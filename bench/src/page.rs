//! The page of the benchmark: the table of competitors, and each figure of the paper made again.

use crate::competitors::Compared;
use crate::{Bench, Figure, Plot, Power, Series, Unit, markdown};
use maud::{Markup, html};
use report::number;
use report::svg::{self, Scale};
use std::fmt::Write as _;

/// Colours of series, in order; further ones share the last.
const COLOURS: [&str; 5] = ["today", "after", "off", "s2", "s5"];

/// Colours of parts of a bar: those of the steps of a solve.
const PARTS: [&str; 5] = ["s1", "s2", "s3", "s4", "s5"];

/// The most columns drawn: a month of hours.
const COLUMNS_MAX: usize = 744;

/// Upper ends of the colours of a heat map, in even shares; beyond is the last.
const HEAT: [f64; 6] = [0.4, 0.8, 1.2, 2.0, 4.0, 8.0];

/// The share of a column that its bars take.
const BARS: f64 = 0.8;

/// Writes the page.
pub fn render(bench: &Bench) -> String {
    let title = match &bench.regions[..] {
        [of] => number::counted(of.region.servers, "server"),
        several => number::counted(several.len(), "region"),
    };
    report::page(
        &format!("Benchmark of {title}"),
        &html! {
            header {
                p.kicker { "Benchmark" }
                h1 { (title) ", this solver beside others" }
                p.facts {
                    span { (bench.date) }
                    span { "version " (bench.version) }
                    span { (bench.machine.sentence()) }
                    span { "deadline " (number::seconds(bench.deadline_seconds)) }
                    span { "medians of " (number::counted(bench.runs as usize, "run")) }
                }
                p.origin { "Generated regions are made up from published statistics: no such fleet exists." }
            }
            main #main {
                (regions(bench))
                (competitors(bench))
                @for figure in &bench.figures { (section(figure)) }
            }
        },
    )
}

fn regions(bench: &Bench) -> Markup {
    html! {
        section #regions {
            h2 { "Regions" }
            div.scroll { table.data {
                thead { tr {
                    th scope="col" { "region" } th.n scope="col" { "servers" } th.n scope="col" { "reservations" }
                    th.n scope="col" { "MSBs" } th.n scope="col" { "best bound" } th scope="col" { "origin" }
                } }
                tbody { @for Compared { region, best_bound, .. } in &bench.regions { tr {
                    th scope="row" { (region.name) }
                    td.n { (number::count(region.servers)) }
                    td.n { (number::count(region.reservations)) }
                    td.n { (number::count(region.msbs)) }
                    td.n { @if let Some(bound) = best_bound { (markdown::amount(*bound)) } }
                    td.reason { (region.origin) }
                } } }
            } }
        }
    }
}

fn competitors(bench: &Bench) -> Markup {
    let last = markdown::COLUMNS.len() - 1;
    html! {
        section #competitors {
            h2 { "Competitors" }
            p.lead { "Each on the same regions, in the same run, with the same deadline. The price is that of \
                phase 1, by one model for all; the whole gap is the solver's own, of all expressions of the \
                objective; the rest is counted by the audit." }
            div.scroll { table.data {
                thead { tr { @for (place, name) in markdown::COLUMNS.iter().enumerate() {
                    th.n[place > 1 && place < last] scope="col" { (name) }
                } } }
                tbody { @for cells in markdown::rows(bench) { tr {
                    @for (place, cell) in cells.iter().enumerate() {
                        @if place == 0 { th scope="row" { (cell) } }
                        @else if place == 1 { td { (cell) } }
                        @else if place == last { td.reason { (cell) } }
                        @else { td.n { (cell) } }
                    }
                } } }
            } }
            p.note { "Gaps are against the best bound of the run, whole gaps against the solver's own." }
        }
    }
}

fn section(figure: &Figure) -> Markup {
    html! {
        section id={ "figure-" (figure.number) } {
            h2 { (figure.title) " " span.ref { "figure " (figure.number) } }
            p.lead { (figure.made) }
            @for of in &figure.plots { (plot(of)) }
            div.scroll { table.data.narrow.beside {
                thead { tr { th scope="col" { "" } th scope="col" { "paper" } th scope="col" { "here" } } }
                tbody { @for row in &figure.rows {
                    tr { th scope="row" { (row.what) } td { (row.paper) } td { (row.here) } }
                } }
            } }
        }
    }
}

fn show(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Seconds => number::seconds(value),
        Unit::Bytes => number::bytes(value),
        Unit::Share => number::percent(value),
        Unit::Plain => number::decimal(value),
    }
}

fn plot(plot: &Plot) -> Markup {
    match plot {
        Plot::Bars { labels, unit, series } => columns(labels, *unit, series),
        Plot::Stacked { labels, unit, series } => stacked(labels, *unit, series),
        Plot::Points { across, at, unit, series } => points(across, at, *unit, series),
        Plot::Growth { across, at, unit, series, powers } => {
            growth(across, at, *unit, series, powers)
        }
        Plot::Heat { columns, series } => heat(columns, series),
    }
}

/// The colour of one of several series; one alone is ours.
fn colour(place: usize, of: &[Series]) -> &'static str {
    if of.len() == 1 { COLOURS[1] } else { COLOURS[place.min(COLOURS.len() - 1)] }
}

fn legend(series: &[Series], colour: impl Fn(usize) -> &'static str) -> Markup {
    svg::legend(series.iter().enumerate().map(|(place, of)| (colour(place), of.name.clone())))
}

/// The colour of a part of a bar.
fn part(place: usize) -> &'static str {
    PARTS[place.min(PARTS.len() - 1)]
}

/// The largest value of all that is one.
fn most(series: &[Series]) -> f64 {
    series.iter().flat_map(|s| &s.values).copied().filter(|v| v.is_finite()).fold(0.0, f64::max)
}

/// A picture over labelled rows of the vertical scale.
fn frame(scale: &Scale, unit: Unit, label: &str, inner: &Markup, below: &Markup) -> Markup {
    let top = |value: f64| svg::percent(1.0 - scale.at(value));
    html! {
        div.plot {
            svg.y width="100%" height="180" aria-hidden="true" {
                @for tick in &scale.ticks {
                    text x="100%" y=(top(*tick)) dy="4" text-anchor="end" { (show(unit, *tick)) }
                }
            }
            svg.area width="100%" height="180" role="img" aria-label=(label) {
                @for tick in &scale.ticks {
                    line.grid x1="0" x2="100%" y1=(top(*tick)) y2=(top(*tick)) {}
                }
                (inner)
            }
            span {}
            (below)
        }
    }
}

fn columns(labels: &[String], unit: Unit, series: &[Series]) -> Markup {
    let shown = labels.len().min(COLUMNS_MAX);
    let scale = Scale::new(most(series), 4);
    let step = 1.0 / shown.max(1) as f64;
    let width = BARS * step / series.len().max(1) as f64;
    let inner = html! {
        @for (column, label) in labels.iter().take(shown).enumerate() {
            @for (place, of) in series.iter().enumerate() {
                @if let Some(value) = of.values.get(column).filter(|value| value.is_finite()) {
                    @let left = (column as f64 + (1.0 - BARS) / 2.0) * step + width * place as f64;
                    rect class=(colour(place, series)) x=(svg::percent(left)) width=(svg::percent(width * 0.94))
                        y=(svg::percent(1.0 - scale.at(*value))) height=(svg::percent(scale.at(*value)))
                        data-tip={ (label) ", " (of.name) ": " (show(unit, *value)) } {}
                }
            }
        }
    };
    // Many labels would lie on each other.
    let every = shown.div_ceil(12).max(1);
    let below = html! {
        svg.x width="100%" height="18" aria-hidden="true" {
            @for (column, label) in labels.iter().take(shown).enumerate().filter(|(c, _)| c % every == 0) {
                text x=(svg::percent((column as f64 + 0.5) * step)) y="13" text-anchor="middle" { (label) }
            }
        }
    };
    html! {
        (legend(series, |place| colour(place, series)))
        (frame(&scale, unit, "Bars", &inner, &below))
        (svg::left_out(shown, labels.len(), "column"))
    }
}

fn stacked(labels: &[String], unit: Unit, series: &[Series]) -> Markup {
    let of = |row: usize| series.iter().map(move |s| s.values.get(row).copied().unwrap_or(0.0));
    let scale = Scale::new((0..labels.len()).map(|row| of(row).sum()).fold(0.0, f64::max), 4);
    html! {
        (legend(series, part))
        table.rows {
            thead { tr { td {} td.c { (svg::axis(&scale, |tick| show(unit, tick))) } td {} } }
            tbody { @for (row, label) in labels.iter().enumerate() { tr {
                th scope="row" { (label) }
                td.c { svg width="100%" height="26" aria-hidden="true" {
                    (svg::grid(&scale))
                    @for (place, of_one) in series.iter().enumerate() {
                        @let before: f64 = of(row).take(place).sum();
                        @let value = of_one.values.get(row).copied().unwrap_or(0.0);
                        rect class=(part(place)) x=(svg::percent(scale.at(before))) y="4"
                            height="18" width=(svg::percent(scale.at(value)))
                            data-tip={ (label) ", " (of_one.name) ": " (show(unit, value)) } {}
                    }
                } }
                td.n { (show(unit, of(row).sum())) }
            } } }
        }
    }
}

fn points(across: &str, at: &[f64], unit: Unit, series: &[Series]) -> Markup {
    let scale = Scale::new(most(series), 4);
    let wide = Scale::new(at.iter().copied().filter(|x| x.is_finite()).fold(0.0, f64::max), 6);
    let shown = at.len().min(COLUMNS_MAX);
    let inner = html! {
        @for (place, of) in series.iter().enumerate() {
            @for (x, y) in at.iter().zip(&of.values).take(shown).filter(|(x, y)| x.is_finite() && y.is_finite()) {
                circle class=(colour(place, series)) cx=(svg::percent(wide.at(*x))) r="4"
                    cy=(svg::percent(1.0 - scale.at(*y)))
                    data-tip={ (across) " " (number::decimal(*x)) ", " (of.name) ": " (show(unit, *y)) } {}
            }
        }
    };
    html! {
        (legend(series, |place| colour(place, series)))
        (frame(&scale, unit, across, &inner, &svg::axis(&wide, number::short)))
        p.note { "Across: " (across) "." }
        (svg::left_out(shown, at.len(), "point"))
    }
}

/// The least and the largest of what has a logarithm.
fn ends<'a>(values: impl Iterator<Item = &'a f64>) -> (f64, f64) {
    let shown = values.copied().filter(|value| value.is_finite() && *value > 0.0);
    let wider = |(least, most): (f64, f64), value: f64| (least.min(value), most.max(value));
    shown.fold((f64::INFINITY, f64::NEG_INFINITY), wider)
}

fn growth(
    across: &str,
    at: &[f64],
    unit: Unit,
    series: &[Series],
    powers: &[Option<Power>],
) -> Markup {
    let (left, right) = ends(at.iter());
    let (low, high) = ends(series.iter().flat_map(|of| &of.values));
    let wide = Scale::logarithmic(left, right, 10.0);
    // Round amounts of memory are powers of two.
    let scale = Scale::logarithmic(low, high, if unit == Unit::Bytes { 4.0 } else { 10.0 });
    let x = |value: f64| svg::percent(wide.at(value));
    let y = |value: f64| svg::percent(1.0 - scale.at(value));
    let inner = html! {
        @for power in powers.iter().flatten() {
            line.fit x1=(x(left)) y1=(y(power.at(left))) x2=(x(right)) y2=(y(power.at(right))) {}
        }
        @for (place, of) in series.iter().enumerate() {
            @for (across_at, value) in at.iter().zip(&of.values).filter(|(x, y)| **x > 0.0 && **y > 0.0) {
                circle class=(colour(place, series)) cx=(x(*across_at)) cy=(y(*value)) r="4"
                    data-tip={ (across) " " (number::decimal(*across_at)) ", " (of.name) ": " (show(unit, *value)) } {}
            }
        }
    };
    let words = |(of, power): (&Series, &Option<Power>)| match power {
        Some(power) => format!("{}: power {:.2}", of.name, power.exponent),
        None => of.name.clone(),
    };
    let entries = series.iter().zip(powers).map(words).enumerate();
    html! {
        (svg::legend(entries.map(|(place, words)| (colour(place, series), words))))
        (frame(&scale, unit, across, &inner, &svg::axis(&wide, number::short)))
        p.note { "Across: " (across) ". Both axes are logarithmic; lines are least squares over all points." }
    }
}

/// One row for each series, one colour for each step of shares.
fn heat(columns: &[String], series: &[Series]) -> Markup {
    let even = 1.0 / columns.len().max(1) as f64;
    let step = |share: f64| HEAT.iter().take_while(|end| share > **end * even).count();
    let mut entries = vec![("h0", "none".to_owned())];
    let classes = ["h1", "h2", "h3", "h4", "h5", "h6", "h7"];
    for (class, end) in classes.iter().zip(HEAT) {
        entries.push((class, format!("up to {}", number::percent_round((end * even).min(1.0)))));
    }
    entries.push((classes[HEAT.len()], "more".to_owned()));
    html! {
        (svg::legend(entries))
        div.scroll { table.rows {
            thead { tr { td {} td.c { (columns.first().map_or("", |c| c)) " to "
                (columns.last().map_or("", |c| c)) } td.n { "largest" } } }
            tbody { @for row in series { tr {
                th scope="row" title=(row.name) { (row.name) }
                td.c { svg width="100%" height="17" preserveAspectRatio="none"
                    viewBox={ "0 0 " (columns.len()) " 1" } role="img" aria-label=(row.name) {
                    @for (class, path) in classes.iter().zip(paths(row, &step)) {
                        @if !path.is_empty() { path class=(class) d=(path) {} }
                    }
                } }
                td.n { (number::percent(row.values.iter().copied().fold(0.0, f64::max))) }
            } } }
        } }
    }
}

/// One path per colour: far smaller than one rectangle per cell.
fn paths(row: &Series, step: &dyn Fn(f64) -> usize) -> Vec<String> {
    let mut paths = vec![String::new(); HEAT.len() + 1];
    for (column, share) in row.values.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        // Writing to a string does not fail.
        let _ = write!(paths[step(*share)], "M{column} 0h.94v1h-.94z");
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_drawn_with_the_line_that_fits() {
        let at = [1e3, 1e4, 1e6];
        let series = [
            Series { name: "linear".into(), values: at.iter().map(|x| x / 50.0).collect() },
            Series { name: "unknown".into(), values: vec![f64::NAN; 3] },
        ];
        let powers: Vec<_> = series.iter().map(|of| Power::fit(&at, &of.values)).collect();
        let page = growth("servers", &at, Unit::Seconds, &series, &powers).into_string();
        assert!(page.contains("linear: power 1.00") && page.contains("unknown<"), "{page}");
        assert_eq!(
            (page.matches("<circle").count(), page.matches("class=\"fit\"").count()),
            (3, 1)
        );
        assert!(!page.contains("NaN"), "{page}");
    }
}
