//! The heat map of the shares that reservations have in MSBs (RAS, SOSP'21, figure 13): a row for
//! each reservation, a column for each MSB. `charts.js` makes its cells readable by pointer and keyboard.

use crate::number;
use maud::{Markup, html};
use std::fmt::Write as _;

/// Width of the gap between datacenters, in columns.
const GAP: f64 = 0.4;

/// Upper ends of the colour steps, in even shares (one over the number of MSBs). The third step is
/// the even share and a fifth to both sides: a single colour for a reservation that is well spread.
const STEPS: [f64; 6] = [0.4, 0.8, 1.2, 2.0, 4.0, 8.0];

/// Colour classes of the style sheets, one more than there are steps.
const CLASSES: [&str; 7] = ["h1", "h2", "h3", "h4", "h5", "h6", "h7"];

/// Columns and colours of a heat map.
pub struct HeatMap {
    /// Upper ends of the colour steps, as shares of one.
    steps: Vec<f64>,
    /// Left end of each column, in columns.
    left: Vec<f64>,
    width: f64,
    even_share: f64,
}

/// A row of a heat map.
pub struct HeatRow {
    /// Shares in basis points for the attribute `data-s` of the row.
    pub basis_points: String,
    /// The coloured cells.
    pub cells: Markup,
}

impl HeatMap {
    /// A map for datacenters with this many MSBs each.
    pub fn new(msbs_by_datacenter: impl IntoIterator<Item = usize>) -> HeatMap {
        let mut left = Vec::new();
        for (gaps, msbs) in msbs_by_datacenter.into_iter().enumerate() {
            let first = left.len();
            left.extend((first..first + msbs).map(|column| column as f64 + gaps as f64 * GAP));
        }
        let even_share = 1.0 / left.len().max(1) as f64;
        let steps = STEPS.iter().map(|step| step * even_share).filter(|end| *end < 1.0);
        HeatMap {
            steps: steps.collect(),
            width: left.last().map_or(1.0, |last| last + 1.0),
            left,
            even_share,
        }
    }

    /// The share of an MSB if all MSBs had the same.
    pub fn even_share(&self) -> f64 {
        self.even_share
    }

    /// Left end of each column, in columns.
    pub fn left(&self) -> &[f64] {
        &self.left
    }

    /// Width of the map, in columns.
    pub fn width(&self) -> f64 {
        self.width
    }

    /// The left ends as text for the attribute `data-left` of the table.
    pub fn left_attribute(&self) -> String {
        let left: Vec<String> = self.left.iter().map(|left| format!("{left:.1}")).collect();
        left.join(" ")
    }

    /// Colour classes and their labels.
    pub fn legend(&self) -> Vec<(&'static str, String)> {
        let mut entries = vec![("none", "none".to_owned())];
        for (class, end) in CLASSES.into_iter().zip(&self.steps) {
            entries.push((class, format!("up to {}", number::percent_round(*end))));
        }
        entries.push((CLASSES[self.steps.len()], "more".to_owned()));
        entries
    }

    /// The row of a reservation with these shares, one for each column.
    pub fn row(&self, shares: impl IntoIterator<Item = f64>) -> HeatRow {
        // One path for each colour is far smaller than one rectangle for each cell.
        let mut paths = vec![String::new(); self.steps.len() + 1];
        let mut basis_points = String::new();
        for (share, left) in shares.into_iter().zip(&self.left) {
            // Writing to a string does not fail.
            if share > 0.0 {
                let step = self.steps.iter().take_while(|end| share > **end).count();
                let _ = write!(paths[step], "M{left:.1} 0h.94v1h-.94z");
            }
            let gap = if basis_points.is_empty() { "" } else { " " };
            let _ = write!(basis_points, "{gap}{:.0}", share * 10_000.0);
        }
        let cells = html! {
            svg.cells width="100%" height="17" preserveAspectRatio="none"
                viewBox={ "0 0 " (self.width) " 1" } aria-hidden="true" {
                @for (class, path) in CLASSES.iter().zip(&paths) {
                    @if !path.is_empty() { path class=(class) d=(path) {} }
                }
            }
        };
        HeatRow { basis_points, cells }
    }
}

#[cfg(test)]
mod tests {
    use super::HeatMap;

    #[test]
    fn heat_map_separates_datacenters_by_a_gap() {
        let map = HeatMap::new([2, 1]);
        assert_eq!((map.left_attribute().as_str(), map.width()), ("0.0 1.0 2.4", 3.4));
    }

    #[test]
    fn heat_row_has_one_path_for_each_colour() {
        let row = HeatMap::new([4]).row([0.25, 0.25, 0.5, 0.0]);
        let cells = row.cells.into_string();
        assert_eq!(row.basis_points, "2500 2500 5000 0");
        assert_eq!(cells.matches("<path").count(), 2, "{cells}");
        assert!(
            cells.contains("class=\"h3\" d=\"M0.0 0h.94v1h-.94zM1.0 0h.94v1h-.94z\""),
            "{cells}"
        );
    }
}
