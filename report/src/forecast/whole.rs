//! The page of all forecasts of a region.

use super::{AutosizePart, DemandPart, OrdersPart, SparesPart, WarmPart, h3};
use super::{autosize, demand, orders, spares};
use crate::{number, page, svg};
use maud::{Markup, html};

/// Series of warm capacity whose methods are shown.
const WARM: usize = 3;

/// Sections of the page: anchor and title.
const SECTIONS: [(&str, &str); 5] = [
    ("warm", "Warm capacity"),
    ("demand", "Demand"),
    ("orders", "Orders"),
    ("spares", "Spares"),
    ("autosize", "Requests that follow demand"),
];

/// What the page shows. A part that cannot be computed says why.
#[derive(Clone, Copy, Debug)]
pub struct ForecastPage<'a> {
    /// What the forecasts are of.
    pub title: &'a str,
    /// What they rest on, in a few words each.
    pub facts: &'a [String],
    /// What is most important, in sentences.
    pub summary: &'a [Sentence],
    /// Warm capacity.
    pub warm: Result<WarmPart<'a>, &'a str>,
    /// Demand of the coming weeks.
    pub demand: Result<DemandPart<'a>, &'a str>,
    /// Orders, and when types run out.
    pub orders: Result<OrdersPart<'a>, &'a str>,
    /// Spares.
    pub spares: Result<SparesPart<'a>, &'a str>,
    /// Requests that follow demand.
    pub autosize: Result<AutosizePart<'a>, &'a str>,
}

/// A sentence of the summary.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Sentence {
    /// The section that it is from: its anchor.
    pub section: &'static str,
    /// Whether something must be done.
    pub urgent: bool,
    /// What it says.
    pub text: String,
}

/// Renders the page.
pub fn render(of: &ForecastPage) -> String {
    page(
        &format!("{}: forecasts", of.title),
        &html! {
            a.skip href="#main" { "Skip to main content" }
            header {
                p.kicker { "How much, and when" }
                h1 { (of.title) }
                div.facts { @for fact in of.facts { span { (fact) } } }
            }
            nav aria-label="Sections" {
                a href="#summary" { "Summary" }
                @for (anchor, title) in SECTIONS { a href={ "#" (anchor) } { (title) } }
            }
            main #main {
                (summary(of.summary))
                (section(0, of.warm, "What to hold in service and free for the next step, and what that would have cost so far.",
                    |of| html! { (super::short(of, WARM)) (method(super::method())) }))
                (section(1, of.demand, "The peak of each day of the coming weeks, as quantiles, by the method that the past of the series chooses.",
                    demand::parts))
                (section(2, of.orders, "When servers run out, and what to order, cancel and decommission so that no day is short until the order after this one can arrive.",
                    orders::parts))
                (section(3, of.spares, "How many servers of each type to keep for those that fail.",
                    |of| html! { (spares::facts(of)) (spares::parts(of, h3)) (method(spares::method())) }))
                (section(4, of.autosize, "What each pair of quantile and cooldown would have done in the last part of the history.",
                    autosize::parts))
            }
        },
    )
}

fn summary(of: &[Sentence]) -> Markup {
    html! {
        section #summary {
            h2 { "Summary" }
            @if of.iter().any(|of| of.urgent) {
                div.alarm { ul { @for of in of.iter().filter(|of| of.urgent) { (sentence(of)) } } }
            }
            ul { @for of in of.iter().filter(|of| !of.urgent) { (sentence(of)) } }
        }
    }
}

fn sentence(of: &Sentence) -> Markup {
    html! { li { (of.text) " " a.ref href={ "#" (of.section) } { (title(of.section)) } } }
}

fn title(section: &str) -> &'static str {
    SECTIONS.iter().find(|(anchor, _)| *anchor == section).map_or("", |(_, title)| title)
}

fn section<T>(
    at: usize,
    of: Result<T, &str>,
    lead: &str,
    show: impl FnOnce(&T) -> Markup,
) -> Markup {
    let (anchor, title) = SECTIONS[at];
    html! {
        section id=(anchor) {
            h2 { (title) }
            p.lead { (lead) }
            @match of {
                Ok(part) => { (show(&part)) }
                Err(why) => { (svg::missing(&format!("Cannot be computed: {why}"))) }
            }
        }
    }
}

fn method(method: Markup) -> Markup {
    html! { details { summary { "How the numbers are defined" } (method) } }
}

/// Parts of a sentence about names: the first few, and how many more.
pub fn listed(names: &[String], most: usize) -> String {
    let shown = names.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {} more", number::count(more)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::elements;
    use crate::{DemandSeries, OrdersSeries};
    use chrono::NaiveDate;
    use forecast::long::{Daily, Plan, outlook};
    use forecast::orders::advice::Position;
    use forecast::orders::{Pipeline, Supply, Terms, advise};
    use forecast::{Series, Step};

    fn page(demand: Result<DemandPart, &str>, orders: Result<OrdersPart, &str>) -> String {
        let urgent = Sentence { section: "orders", urgent: true, text: "<C4> runs out".to_owned() };
        let calm = Sentence { section: "demand", urgent: false, text: "It grows".to_owned() };
        render(&ForecastPage {
            title: "a & b",
            facts: &["from a file".to_owned()],
            summary: &[urgent, calm],
            warm: Err("too <short>"),
            demand,
            orders,
            spares: Err("no failures"),
            autosize: Err("14 days are needed"),
        })
    }

    #[test]
    fn sections_are_there_or_say_why_not() {
        let values: Vec<Option<f64>> = (0..120).map(|day| Some(f64::from(100 + day))).collect();
        let series = Series::new(0, Step::DAY, values).expect("valid");
        let outlook = outlook(&Daily::new(&series).expect("daily"), &Plan::new(28), None);
        let last_day = NaiveDate::from_ymd_opt(2026, 3, 1);
        let demand = [DemandSeries { name: "<web>", series: &series, last_day, outlook: &outlook }];
        let position = Position { in_use: 219.0, free: 10.0, pipeline: Pipeline::default() };
        let advice = advise(&position, &outlook.bands.path(0.7), Terms::default());
        let orders = [OrdersSeries {
            name: "C4/dc2",
            series: &series,
            last_day,
            bands: &outlook.bands,
            in_use: 219.0,
            free: 10.0,
            on_order: 0.0,
            there: vec![229.0; 28],
            supply: Supply::RunsOut { days: 10 },
            runs_out_on: NaiveDate::from_ymd_opt(2026, 3, 11),
            arrives_on: NaiveDate::from_ymd_opt(2026, 3, 23),
            advice: &advice,
        }];
        let full = page(
            Ok(DemandPart { series: &demand }),
            Ok(OrdersPart { quantile: 0.7, series: &orders }),
        );
        let charts = |page: &str| elements(page).iter().filter(|name| *name == "path").count();
        assert_eq!(charts(&full), 8, "a band and three lines for each of two");
        assert!(full.contains("&lt;web&gt;") && full.contains("2026-03-11"), "{full}");
        assert!(full.contains("&lt;C4&gt; runs out") && full.contains("2 Dec"), "{full}");
        let empty = page(Err("no days"), Err("no stock"));
        assert_eq!(charts(&empty), 0);
        for (anchor, title) in SECTIONS {
            for page in [&full, &empty] {
                assert!(
                    page.contains(&format!("<section id=\"{anchor}\"><h2>{title}</h2>")),
                    "{anchor}"
                );
                assert!(!page.contains("NaN"), "{page}");
            }
        }
        assert_eq!(empty.matches("Cannot be computed: ").count(), 5);
        assert!(empty.contains("too &lt;short&gt;"));
    }

    #[test]
    fn names_beyond_the_first_are_counted() {
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(listed(&names, 3), "a, b, c");
        assert_eq!(listed(&names, 1), "a and 2 more");
    }
}
