//! Offers that are kept: what a plan offers instead of a refused request is granted when it is requested, if the
//! region still has it.

use crate::results;
use anyhow::{Context, Result};
use async_solver::{OfferedPlan, Quoted};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Number of offers kept; older ones are planned again.
const KEPT: usize = 128;

/// Version of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
enum Format {
    #[default]
    #[serde(rename = "ras-offers/1")]
    V1,
}

/// Plans that were offered, the latest last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offers {
    format: Format,
    offers: Vec<OfferedPlan>,
}

impl Offers {
    /// Reads a file; one that does not exist has none.
    ///
    /// # Errors
    /// If it cannot be read, or is no file of offers.
    pub fn read(file: &Path) -> Result<Offers> {
        let text = match fs::read_to_string(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Offers::default()),
            text => text.with_context(|| format!("cannot read {}", file.display()))?,
        };
        let not_offers = || format!("{}: not a file of offers (--offers)", file.display());
        serde_json::from_str(&text).with_context(not_offers)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If that fails.
    pub fn write(&self, file: &Path) -> Result<()> {
        results::write_text(file, &serde_json::to_string(self)?)
    }

    /// The plans.
    pub fn plans(&self) -> &[OfferedPlan] {
        &self.offers
    }

    /// Keeps what answers offer.
    pub fn keep(&mut self, answers: &[Quoted]) {
        let refusals = answers.iter().filter_map(|of| of.refusal.as_ref());
        self.offers.extend(refusals.flat_map(|of| &of.alternatives).map(|of| of.plan.clone()));
        let old = self.offers.len().saturating_sub(KEPT);
        self.offers.drain(..old);
    }
}

#[cfg(test)]
mod tests {
    use super::Offers;

    #[test]
    fn missing_file_has_no_offers_and_another_file_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("offers.json");
        let none = Offers::read(&file).expect("none yet");
        none.write(&file).expect("a file");
        assert_eq!(Offers::read(&file).expect("none"), none);
        std::fs::write(&file, "{}").expect("a file");
        let error = format!("{:#}", Offers::read(&file).expect_err("no offers"));
        assert!(error.contains("offers.json: not a file of offers"), "{error}");
    }
}
