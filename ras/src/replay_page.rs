//! The page of `ras ops replay`: recorded and replayed solves side by side.

use crate::service::replay::{Measure, Replayed};
use maud::{Markup, html};
use report::number;
use report::svg::{self, Scale};

/// Maximum number of solves drawn: a month of hourly ones. The table has all.
const COLUMNS_MAX: usize = 744;

/// Share of a column's width for its two bars.
const BARS: f64 = 0.8;

/// Writes the page. `settings`: the differences from the recorded settings.
pub fn render(rows: &[Replayed], settings: &str) -> String {
    let title = format!("{} replayed", number::counted(rows.len(), "solve"));
    report::page(
        &title,
        &html! {
            header {
                p.kicker { "Replay" }
                h1 { (title) }
                p.facts { span { (settings) } }
            }
            main #main {
                (svg::legend([("today", "recorded".to_owned()), ("after", "replayed".to_owned())]))
                @for measure in Measure::ALL { (figure(rows, measure)) }
                (table(rows))
            }
        },
    )
}

fn figure(rows: &[Replayed], measure: Measure) -> Markup {
    let shown = &rows[..rows.len().min(COLUMNS_MAX)];
    let columns = shown.len() as f64;
    let values = shown.iter().flat_map(|row| row.pair(measure)).flatten();
    let scale = Scale::new(values.fold(0.0, f64::max), 3);
    let top = |value: f64| svg::percent(1.0 - scale.at(value));
    html! {
        section {
            h2 { (measure.title()) }
            div.plot {
                svg.y width="100%" height="110" aria-hidden="true" {
                    @for tick in &scale.ticks {
                        text x="100%" y=(top(*tick)) dy="4" text-anchor="end" { (measure.show(*tick)) }
                    }
                }
                svg.area width="100%" height="110" role="img" aria-label=(measure.title()) {
                    @for tick in &scale.ticks {
                        line.grid x1="0" x2="100%" y1=(top(*tick)) y2=(top(*tick)) {}
                    }
                    @for (column, row) in shown.iter().enumerate() {
                        @let left = (column as f64 + (1.0 - BARS) / 2.0) / columns;
                        @let half = BARS / 2.0 / columns;
                        @let pair = row.pair(measure);
                        g data-tip={ (row.name) ": recorded " (shown_value(measure, pair[0]))
                            ", replayed " (shown_value(measure, pair[1])) } {
                            @for (place, class) in [(0, "today"), (1, "after")] {
                                @if let Some(value) = pair[place] {
                                    rect class=(class) x=(svg::percent(left + half * place as f64))
                                        width=(svg::percent(half)) y=(top(value))
                                        height=(svg::percent(scale.at(value))) {}
                                }
                            }
                        }
                    }
                }
            }
            (svg::left_out(shown.len(), rows.len(), "solve"))
        }
    }
}

fn shown_value(measure: Measure, value: Option<f64>) -> String {
    value.map_or_else(|| number::NOTHING.to_owned(), |value| measure.show(value))
}

fn table(rows: &[Replayed]) -> Markup {
    html! {
        section {
            h2 { "All of them" }
            div.scroll.tall { table.data {
                thead { tr {
                    th scope="col" { "Solve" }
                    th scope="col" { "" }
                    @for measure in Measure::ALL { th.n scope="col" { (measure.title()) } }
                } }
                tbody {
                    @for row in rows {
                        @for (place, words) in [(0, "recorded"), (1, "replayed")] {
                            tr {
                                th scope="row" { @if place == 0 { (row.name) } }
                                td { (words) }
                                @for measure in Measure::ALL {
                                    td.n { (shown_value(measure, row.pair(measure)[place])) }
                                }
                            }
                        }
                        @if let Some(failure) = &row.failure {
                            tr { td {} td.why colspan="12" { "failed: " (failure) } }
                        }
                    }
                }
            } }
        }
    }
}
