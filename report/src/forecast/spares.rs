//! The page of spares for failed servers.

use super::{Heading, h2};
use crate::line_chart::{self, Axis};
use crate::summary::tile;
use crate::svg::{self, Scale};
use crate::{number, page};
use forecast::sizing::{Rated, Rule, Sizing};
use maud::{Markup, html};

/// Spares for the failures of a history.
#[derive(Clone, Copy, Debug)]
pub struct SparesPart<'a> {
    /// Accepted chance that a type is short at an instant.
    pub chance: f64,
    /// Share of each type that the fixed rule keeps.
    pub fixed_share: f64,
    /// Length of the history.
    pub history_hours: f64,
    /// The answer.
    pub sizing: &'a Sizing,
}

/// Renders the page of spares; the title says what the history is of.
pub fn render(title: &str, of: &SparesPart) -> String {
    page(
        &format!("{title}: spares"),
        &html! {
            a.skip href="#main" { "Skip to main content" }
            header {
                p.kicker { "Spares for failed servers" }
                h1 { (title) }
                (facts(of))
            }
            main #main {
                (parts(of, h2))
                section #method {
                    h2 { "Method" }
                    (method())
                }
            }
        },
    )
}

pub(super) fn facts(of: &SparesPart) -> Markup {
    html! {
        div.facts {
            span { "history: " (number::decimal(of.history_hours / 24.0)) " days" }
            span { "accepted chance of a shortfall of a type: " (number::percent(of.chance)) }
        }
    }
}

/// Tiles, chart and tables.
pub(super) fn parts(of: &SparesPart, heading: Heading) -> Markup {
    let [fixed, shared, chance] = &of.sizing.rules;
    html! {
        div.tiles {
            (tile("", "Spares for the chance", &number::count(chance.total), html! { "over all types" }))
            (tile("", "Expected missing", &number::decimal(chance.expected_missing_rru), html! { "RRU at an instant, with them" }))
            (tile("", "Shared out", &number::decimal(shared.expected_missing_rru), html! {
                "RRU missing with " (number::count(shared.total)) " spares"
            }))
            (tile("", "Fixed share", &number::decimal(fixed.expected_missing_rru), html! {
                "RRU missing with " (number::count(fixed.total)) " spares"
            }))
        }
        section {
            (heading("Spares and what is missing"))
            (svg::legend([
                ("ink", "spares shared out over types".to_owned()),
                ("today", label(Rule::FixedShare, of)),
                ("after", label(Rule::Chance, of)),
            ]))
            (chart(of.sizing))
            p.note { "Across: spares of all types. Upwards: RRU that are expected to be missing at an instant." }
            (rules(of))
        }
        section {
            (heading("Hardware types"))
            (types(of))
        }
    }
}

fn label(rule: Rule, of: &SparesPart) -> String {
    match rule {
        Rule::FixedShare => format!("{} of each type", number::percent(of.fixed_share)),
        Rule::SharedOut => "shared out".to_owned(),
        Rule::Chance => format!("chance of {} by type", number::percent(of.chance)),
    }
}

/// Expected missing RRU over the number of spares.
fn chart(sizing: &Sizing) -> Markup {
    let curve: Vec<(f64, f64)> =
        sizing.curve.iter().map(|(spares, missing)| (*spares as f64, *missing)).collect();
    let end = curve.last().map_or(0.0, |(spares, _)| *spares);
    if end <= 0.0 {
        return svg::missing("No rule keeps a spare.");
    }
    let [fixed, _, chance] = &sizing.rules;
    let missing = |rated: &Rated| rated.expected_missing_rru;
    let most = curve.iter().map(|(_, missing)| *missing).fold(0.0, f64::max);
    // What is below a ten-thousandth of what no spare at all would miss has no width on any page.
    let shown: Vec<(f64, f64)> =
        curve.iter().map(|(spares, missing)| (*spares, missing.max(most * 1e-4))).collect();
    let values = shown.iter().map(|(_, missing)| *missing);
    let axis = Axis::new(values.chain([missing(fixed).max(most * 1e-4)]), &line_chart::plain_label);
    let spares = Scale::ending_at(end, 5);
    let marks = html! {
        @for (class, rated) in [("today", fixed), ("after", chance)] {
            circle class=(class) r="5" cx=(svg::percent(spares.at(rated.total as f64)))
                cy=(svg::percent(1.0 - axis.at(missing(rated).max(most * 1e-4)))) {}
        }
    };
    let label = "Expected missing RRU over the number of spares";
    line_chart::plot(&axis, &spares, end, &[("line-gap", &shown)], &marks, label, |spares| {
        number::count(spares.max(0.0).round() as usize)
    })
}

fn rules(of: &SparesPart) -> Markup {
    html! {
        div.scroll {
            table.data {
                thead { tr {
                    th scope="col" { "rule" }
                    th.n scope="col" { "spares" }
                    th.n scope="col" { "expected missing RRU" }
                    th.n scope="col" { "spares, second half" }
                    th.n scope="col" { "time covered" }
                    th.n scope="col" { "missing RRU-hours" }
                } }
                tbody { @for rated in &of.sizing.rules {
                    tr {
                        th scope="row" { (label(rated.rule, of)) }
                        td.n { (number::count(rated.total)) }
                        td.n { (number::decimal(rated.expected_missing_rru)) }
                        td.n { (number::count(rated.judged.spares)) }
                        td.n { (number::percent(rated.judged.covered)) }
                        td.n { (number::decimal(rated.judged.missing_rru_hours)) }
                    }
                } }
            }
        }
        p.note { "The last three columns: decided from the first half of the history, judged on the second." }
    }
}

fn types(of: &SparesPart) -> Markup {
    html! {
        div.scroll {
            table.data {
                thead { tr {
                    th scope="col" { "type" }
                    th.n scope="col" { "servers" }
                    th.n scope="col" { "RRU each" }
                    th.n scope="col" { "failures" }
                    th.n scope="col" { "down on average" }
                    @for rule in Rule::ALL { th.n scope="col" { (label(rule, of)) } }
                    th.n scope="col" { "chance short, fixed" }
                    th.n scope="col" { "chance short, by chance" }
                } }
                tbody { @for (at, row) in of.sizing.types.iter().enumerate() {
                    tr {
                        th scope="row" { (row.name) }
                        td.n { (number::count(row.servers)) }
                        td.n { (number::decimal(row.rru)) }
                        td.n { (number::count(row.failures)) }
                        td.n { (number::decimal(row.mean_down)) }
                        @for rated in &of.sizing.rules {
                            td.n { (rated.spares.get(at).map_or_else(String::new, |spares| number::count(*spares))) }
                        }
                        td.n { (number::percent(row.chance_short[0])) }
                        td.n { (number::percent(row.chance_short[2])) }
                    }
                } }
            }
        }
    }
}

/// How the numbers are defined.
pub(super) fn method() -> Markup {
    html! {
        ol {
            li { "Failures that begin close to each other are one burst. Bursts are independent of each other, so the number "
                "of servers down at an instant is compound Poisson; how long one, two, three … servers of a burst were "
                "down at a time is read off the history." }
            li { "How many failures are expected follows from the time since the last one of each server, counted over the "
                "whole fleet. Each type counts as having had bursts of the fleet's kind, too: as many as would have missed "
                "least in the past. A type without failures is taken for like the others." }
            li { "By chance: of each type the fewest spares with which more servers are down at an instant with at most "
                "the accepted chance." }
            li { "Shared out: each spare goes to the type where it is needed most, chance times RRU. No other way to share "
                "out the same number has less RRU missing on average." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::elements;
    use forecast::sizing::{SizingTerms, TypeHistory, size};
    use forecast::spares::Outage;

    fn page_of(outages: Vec<Outage>) -> String {
        let name = "<b>A</b>".to_owned();
        let types = [TypeHistory { name, servers: 100, rru: 1.5, outages }];
        let terms = SizingTerms {
            history: 0..864_000,
            burst: 300,
            lost_after: 259_200,
            chance: 0.01,
            fixed_share: 0.02,
            total: Some(5),
        };
        let sizing = size(&types, &terms).expect("valid outages");
        render(
            "a & b",
            &SparesPart { chance: 0.01, fixed_share: 0.02, history_hours: 240.0, sizing: &sizing },
        )
    }

    #[test]
    fn page_is_well_formed_with_and_without_failures() {
        let outage = |n: u32| {
            let start = i64::from(n) * 20_000;
            Outage { server: n, start, end: start + 9_000 }
        };
        let page = page_of((0..40).map(outage).collect());
        let circles = elements(&page).iter().filter(|name| *name == "circle").count();
        assert_eq!(circles, 2, "a point for each of two rules");
        assert!(page.contains("&lt;b&gt;A") && page.contains("a &amp; b: spares"));
        for page in [page, page_of(Vec::new())] {
            elements(&page);
            assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
        }
    }
}
