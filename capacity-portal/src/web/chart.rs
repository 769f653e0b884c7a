//! Charts over time: the script draws the figures, and a table below has them as text.

use super::ui;
use chrono::DateTime;
use maud::{Markup, PreEscaped, html};
use report::number;
use serde_json::{Value, json};

/// Most rows of the table of a chart; of more points, some are left out.
const ROWS: usize = 200;

/// What the points of a chart are beside each other by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Across {
    /// Seconds since 1970.
    Time,
    /// Seconds since a beginning.
    Seconds,
    /// Numbers of servers.
    Servers,
}

/// The unit of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Count,
    /// Shares of one.
    Percent,
    Rru,
}

/// The scale of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    FromZero,
    /// Logarithmic, in whole decades.
    Log,
}

/// Values of a chart.
pub(super) struct Series {
    pub(super) label: &'static str,
    /// Colour of the style sheet; `None`: only in the table, as a plain number.
    pub(super) colour: Option<&'static str>,
    pub(super) values: Vec<Option<f64>>,
    /// Whether the area down to the series before it is filled, and both are thin: the edges of a band.
    pub(super) band: bool,
}

impl Series {
    /// Values without gaps.
    pub(super) fn new(
        label: &'static str,
        colour: &'static str,
        values: impl IntoIterator<Item = f64>,
    ) -> Series {
        Series::with_gaps(label, colour, values.into_iter().map(Some))
    }

    /// Values of which some are missing.
    pub(super) fn with_gaps(
        label: &'static str,
        colour: &'static str,
        values: impl IntoIterator<Item = Option<f64>>,
    ) -> Series {
        let values = values.into_iter().collect();
        Series { label, colour: Some(colour), values, band: false }
    }

    /// The upper edge of a band; the series before it is the lower one.
    pub(super) fn band(self) -> Series {
        Series { band: true, ..self }
    }
}

/// A chart.
pub(super) struct Chart<'a> {
    /// What it shows, for those who do not see it.
    pub(super) label: &'a str,
    pub(super) across: Across,
    pub(super) across_label: &'a str,
    pub(super) unit: Unit,
    pub(super) scale: Scale,
    /// Whether a value holds until the next.
    pub(super) stepped: bool,
    pub(super) at: Vec<f64>,
    /// The first and the last point of the axis; `None`: as far as there are values.
    pub(super) span: Option<(f64, f64)>,
    /// Path of the page that shows a part of the time, given as `from` and `until`; `None`: the chart itself zooms.
    pub(super) zoom: Option<&'static str>,
    pub(super) series: Vec<Series>,
}

impl Chart<'_> {
    pub(super) fn show(&self) -> Markup {
        // `<` is escaped, so that no name can end the element.
        let json = self.figures().to_string().replace('<', "\\u003c");
        html! {
            div.chart role="img" aria-label=(self.label) data-zoom=[self.zoom] {
                script type="application/json" { (PreEscaped(json)) }
            }
            (self.table())
        }
    }

    fn figures(&self) -> Value {
        let series = self.series.iter().filter_map(|of| {
            Some(json!({ "label": of.label, "colour": of.colour?, "values": of.values, "band": of.band }))
        });
        json!({
            "across": match self.across { Across::Time => "time", Across::Seconds => "seconds", Across::Servers => "servers" },
            "across_label": self.across_label,
            "unit": match self.unit { Unit::Count => "count", Unit::Percent => "percent", Unit::Rru => "rru" },
            "log": self.scale == Scale::Log,
            "stepped": self.stepped,
            "at": self.at,
            "span": self.span,
            "series": series.collect::<Vec<_>>(),
        })
    }

    /// The series as a table: the last point first where it is the latest.
    fn table(&self) -> Markup {
        let step = self.at.len().div_ceil(ROWS).max(1);
        let mut rows: Vec<usize> = (0..self.at.len()).rev().step_by(step).collect();
        if self.across != Across::Time {
            rows.reverse();
        }
        html! {
            details.figures {
                summary { "Figures as a table" }
                div.scroll { table.slim {
                    caption.quiet { (self.label) }
                    thead { tr { th scope="col" { (self.across_label) }
                        @for of in &self.series { th.n scope="col" { (of.label) } } } }
                    tbody { @for row in rows { tr {
                        th scope="row" { (self.moment(self.at[row])) }
                        @for of in &self.series { td.n { (self.value(of, row)) } }
                    } } }
                } }
                @if step > 1 { p.note { "One of " (step) " points is listed." } }
            }
        }
    }

    fn moment(&self, at: f64) -> Markup {
        match self.across {
            Across::Seconds => html! { (number::seconds(at)) },
            Across::Servers => html! { (number::count(at as usize)) },
            Across::Time => {
                html! { @if let Some(at) = DateTime::from_timestamp(at as i64, 0) { (ui::when(at)) } }
            }
        }
    }

    fn value(&self, of: &Series, row: usize) -> String {
        match of.values.get(row).copied().flatten() {
            None => number::NOTHING.to_owned(),
            Some(value) if self.unit == Unit::Percent && of.colour.is_some() => ui::gap(value),
            Some(value) => number::decimal((value * 100.0).round() / 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Across, Chart, Scale, Series, Unit};

    fn chart(values: usize) -> String {
        let chart = Chart {
            label: "</script><b>",
            across: Across::Seconds,
            across_label: "</script><b>",
            unit: Unit::Percent,
            scale: Scale::Log,
            stepped: true,
            at: (0..values).map(|at| at as f64).collect(),
            span: None,
            zoom: None,
            series: vec![
                Series::new("Gap", "primal", (0..values).map(|_| 0.25)),
                Series { label: "Cost", colour: None, values: vec![None; values], band: false },
            ],
        };
        chart.show().into_string()
    }

    #[test]
    fn chart_escapes_markup_in_names() {
        let text = chart(2);
        assert!(!text.contains("</script><b>") && text.contains("\\u003c/script>"), "{text}");
    }

    #[test]
    fn chart_has_a_table_with_what_is_not_drawn() {
        let text = chart(3);
        assert_eq!(text.matches("25.0\u{202f}%").count(), 3, "{text}");
        assert!(!text.contains("\"Cost\"") && text.contains(">Cost</th>"), "{text}");
        let long = chart(1_000);
        assert_eq!(long.matches("<tr>").count(), 201);
        assert!(long.contains("One of 5 points is listed."), "{long}");
    }
}
