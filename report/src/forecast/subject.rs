//! What the page is about.

use forecast::tune::Choice;
use forecast::warm::{Next, Outcome};
use forecast::{Notice, Series};

/// A series and what is known of its warm capacity.
#[derive(Clone, Copy, Debug)]
pub struct WarmSeries<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its values.
    pub series: &'a Series,
    /// What was marked while it was read.
    pub notices: &'a [Notice],
    /// The first step that is judged; those before choose parameters.
    pub split: usize,
    /// What to hold for the step after the last; none if no value is known.
    pub next: Option<Next>,
    /// What the recommended method did from the split on.
    pub recommended: Outcome,
    /// The choice of each family; empty if they were not compared.
    pub choices: &'a [Choice],
}
