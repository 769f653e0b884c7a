//! The page of a plan: who is short in the coming weeks.

use crate::line_chart::{self, Axis};
use crate::summary::tile;
use crate::svg::{self, Scale};
use crate::{number, page};
use maud::{Markup, html};

/// Rows of the table of shortfalls.
const ROWS: usize = 400;

/// What the page shows.
#[derive(Clone, Copy, Debug)]
pub struct PlanPage<'a> {
    /// The snapshot's name.
    pub title: &'a str,
    /// What was assumed, in sentences.
    pub scenario: &'a [String],
    /// Each solve: the weeks in order, and each of them without an MSB.
    pub weeks: &'a [PlanWeek<'a>],
    /// Who is short in which.
    pub rows: &'a [PlanRow<'a>],
}

/// A week, perhaps without an MSB.
#[derive(Clone, Debug)]
pub struct PlanWeek<'a> {
    /// From 1 on.
    pub week: usize,
    /// Its date.
    pub date: String,
    /// The MSB that is lost.
    pub lost: Option<&'a str>,
    /// Servers in service.
    pub servers: usize,
    /// The fewest servers that could meet all requests.
    pub requested: usize,
    /// The fewest servers that cover each shortfall alone.
    pub missing: usize,
    /// Reservations that are short.
    pub short: usize,
    /// The fewest servers that cover what is missing.
    pub fewest: String,
}

/// A reservation that is short in a week.
#[derive(Clone, Debug)]
pub struct PlanRow<'a> {
    /// The reservation.
    pub reservation: &'a str,
    /// Its owner.
    pub owner: &'a str,
    /// The week, and the MSB lost in it.
    pub week: usize,
    /// The MSB lost.
    pub lost: Option<&'a str>,
    /// RRU requested.
    pub requested: f64,
    /// RRU missing to what is guaranteed.
    pub missing: f64,
    /// RRU missing to what it holds.
    pub missing_now: f64,
    /// Why.
    pub why: &'a str,
    /// Servers that would help.
    pub helps: String,
}

/// Renders the page of a plan.
pub fn render(of: &PlanPage) -> String {
    let worst = of.weeks.iter().max_by_key(|week| week.missing);
    let first = of.weeks.iter().find(|week| week.missing > 0);
    page(
        &format!("{}: plan", of.title),
        &html! {
            a.skip href="#main" { "Skip to main content" }
            header {
                p.kicker { "Who is short in the coming weeks" }
                h1 { (of.title) }
                div.facts { @for sentence in of.scenario { span { (sentence) } } }
            }
            main #main {
                div.tiles {
                    (tile(if first.is_some() { "bad" } else { "good" }, "First short",
                        first.map_or("never", |week| &week.date), html! {
                            @match first {
                                Some(week) => { "week " (week.week) (without(week.lost)) }
                                None => { "in these weeks" }
                            }
                        }))
                    @if let Some(worst) = worst.filter(|worst| worst.missing > 0) {
                        (tile("bad", "Missing at worst", &number::count(worst.missing), html! {
                            "servers at least, in week " (worst.week) (without(worst.lost))
                        }))
                        (tile("", "Would cover it", &worst.fewest, html! { "the fewest servers, all types alike" }))
                    }
                }
                section {
                    h2 { "Weeks" }
                    @if !of.weeks.is_empty() { (chart(of)) }
                    (weeks(of))
                }
                @if !of.rows.is_empty() {
                    section {
                        h2 { "Reservations that are short" }
                        (rows(of))
                    }
                }
                (method())
            }
        },
    )
}

fn without(lost: Option<&str>) -> String {
    lost.map_or_else(String::new, |msb| format!(", without {msb}"))
}

/// Servers missing by week: as planned, and with the worst loss of an MSB.
fn chart(of: &PlanPage) -> Markup {
    let last = of.weeks.iter().map(|week| week.week).max().unwrap_or(0);
    let most = |week: usize, is_lost: bool| {
        let of_week = of.weeks.iter().filter(|w| w.week == week && w.lost.is_some() == is_lost);
        of_week.map(|w| w.missing as f64).reduce(f64::max)
    };
    let line = |is_lost: bool| -> Vec<(f64, f64)> {
        let points = (1..=last).filter_map(|week| Some((week as f64 - 1.0, most(week, is_lost)?)));
        points.collect()
    };
    let (planned, lost) = (line(false), line(true));
    let axis = Axis::new(planned.iter().chain(&lost).map(|(_, missing)| *missing), &|value, _| {
        number::short(value)
    });
    let scale = Scale::ending_at(last as f64, 6);
    let mut lines = vec![("line-gap", &planned[..])];
    let mut legend = vec![("ink", "as planned".to_owned())];
    if !lost.is_empty() {
        lines.push(("line-primal", &lost[..]));
        legend.push(("after", "without the MSB whose loss is worst".to_owned()));
    }
    html! {
        (svg::legend(legend))
        (line_chart::plot(&axis, &scale, last as f64, &lines, &html! {}, "Missing servers by week", |week| {
            format!("{} weeks", number::decimal(week))
        }))
        p.note { "Upwards: the fewest servers that cover what each reservation lacks. Reservations count RRU of their own, so RRU are not added." }
    }
}

fn weeks(of: &PlanPage) -> Markup {
    html! {
        div.scroll {
            table.data {
                thead { tr {
                    th.n scope="col" { "week" }
                    th scope="col" { "date" }
                    th scope="col" { "lost" }
                    th.n scope="col" { "servers" }
                    th.n scope="col" { "requested servers" }
                    th.n scope="col" { "missing servers" }
                    th.n scope="col" { "short" }
                    th scope="col" { "fewest servers that cover it" }
                } }
                tbody { @for week in of.weeks {
                    tr {
                        td.n { (week.week) }
                        td { (week.date) }
                        td { (week.lost.unwrap_or(number::NOTHING)) }
                        td.n { (number::count(week.servers)) }
                        td.n { (number::count(week.requested)) }
                        td.n { (number::count(week.missing)) }
                        td.n { (number::count(week.short)) }
                        td { (week.fewest) }
                    }
                } }
            }
        }
    }
}

fn rows(of: &PlanPage) -> Markup {
    html! {
        div.scroll {
            table.data {
                thead { tr {
                    th scope="col" { "reservation" }
                    th scope="col" { "owner" }
                    th.n scope="col" { "week" }
                    th scope="col" { "lost" }
                    th.n scope="col" { "requested RRU" }
                    th.n scope="col" { "missing RRU" }
                    th.n scope="col" { "missing RRU now" }
                    th scope="col" { "would help" }
                    th scope="col" { "why" }
                } }
                tbody { @for row in of.rows.iter().take(ROWS) {
                    tr {
                        th scope="row" { (row.reservation) }
                        td { (row.owner) }
                        td.n { (row.week) }
                        td { (row.lost.unwrap_or(number::NOTHING)) }
                        td.n { (number::decimal(row.requested)) }
                        td.n { (number::decimal(row.missing)) }
                        td.n { (number::decimal(row.missing_now)) }
                        td { (row.helps) }
                        td { (row.why) }
                    }
                } }
            }
        }
        (svg::left_out(of.rows.len().min(ROWS), of.rows.len(), "shortfall"))
    }
}

/// How the numbers are defined.
fn method() -> Markup {
    html! {
        section #method {
            h2 { "Method" }
            ol {
                li { "Each week is a region of its own, solved as any region: it begins with the targets of the week before, with "
                    "the requests and arrivals of the week. Events of today are over by then." }
                li { "Missing is what a reservation lacks of its request now or, with an embedded buffer, after the loss of an MSB; "
                    "missing now is what it lacks of it at once." }
                li { "Without an MSB: its servers are out of service. Embedded buffers are used up then, so none is asked for." }
                li { "Would help: this number of servers of one type covers the shortfall; types are alternatives. New servers of a reservation "
                    "with an embedded buffer are counted as spread over the MSBs that have their type." }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::elements;

    #[test]
    fn page_is_well_formed_with_and_without_shortfalls() {
        let week = |week, missing, lost| PlanWeek {
            week,
            date: format!("2026-01-0{week}"),
            lost,
            servers: 900,
            requested: 800,
            missing,
            short: usize::from(missing > 0),
            fewest: "3 A".to_owned(),
        };
        let row = PlanRow {
            reservation: "<b>feed</b>",
            owner: "web",
            week: 2,
            lost: Some("m1"),
            requested: 10.0,
            missing: 3.0,
            missing_now: 0.0,
            why: "type A: 3 servers",
            helps: "3 A or 2 B".to_owned(),
        };
        let scenario = ["Requests grow.".to_owned()];
        let weeks = [week(1, 0, None), week(2, 3, None), week(2, 9, Some("m1"))];
        let page = |weeks: &[PlanWeek], rows: &[PlanRow]| {
            render(&PlanPage { title: "a & b", scenario: &scenario, weeks, rows })
        };
        let short = page(&weeks, &[row]);
        assert!(short.contains("&lt;b&gt;feed") && short.contains("2026-01-02"), "{short}");
        assert!(short.contains("servers at least, in week 2, without m1"), "{short}");
        let fine = page(&weeks[..1], &[]);
        assert!(fine.contains("never") && !fine.contains("Reservations that are short"));
        for page in [short, fine, page(&[], &[])] {
            elements(&page);
            assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
        }
    }
}
