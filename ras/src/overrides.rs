//! Overrides of the snapshot's settings for one solve.
//!
//! Recorded in `report.json` in the form of `ras.toml`, so that later readers of the result (audit,
//! explanation, page) see the region as the solve saw it.

use crate::cli::OverrideOptions;
use anyhow::{Context, Result};
use fleet::{RegionSnapshot, ReservationKind, SnapshotParts, Weights};
use report::SolveReport;
use serde::{Deserialize, Serialize};

/// The settings that can be overridden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// Factor on the capacity of every guaranteed reservation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_requests: Option<f64>,
    /// Share of each hardware type in its derived shared buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_buffer_fraction: Option<f64>,
    /// Prices and limits.
    #[serde(skip_serializing_if = "WeightOverrides::is_empty")]
    pub weights: WeightOverrides,
}

/// Overridden members of [`Weights`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the members of `fleet::Weights`, described there")]
pub struct WeightOverrides {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub move_in_use: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub move_idle: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread_beta: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_tau: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msb_alpha: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rack_alpha: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity_theta: Option<f64>,
}

impl From<&OverrideOptions> for Overrides {
    fn from(options: &OverrideOptions) -> Overrides {
        Overrides {
            scale_requests: options.scale_requests,
            shared_buffer_fraction: options.shared_buffer_fraction,
            weights: WeightOverrides {
                move_in_use: options.move_in_use,
                move_idle: options.move_idle,
                spread_beta: options.spread_beta,
                buffer_tau: options.buffer_tau,
                msb_alpha: options.msb_alpha,
                rack_alpha: options.rack_alpha,
                affinity_theta: options.affinity_theta,
            },
        }
    }
}

impl Overrides {
    /// These overrides, completed by `others`.
    pub fn or(self, others: Overrides) -> Overrides {
        let (w, o) = (self.weights, others.weights);
        Overrides {
            scale_requests: self.scale_requests.or(others.scale_requests),
            shared_buffer_fraction: self.shared_buffer_fraction.or(others.shared_buffer_fraction),
            weights: WeightOverrides {
                move_in_use: w.move_in_use.or(o.move_in_use),
                move_idle: w.move_idle.or(o.move_idle),
                spread_beta: w.spread_beta.or(o.spread_beta),
                buffer_tau: w.buffer_tau.or(o.buffer_tau),
                msb_alpha: w.msb_alpha.or(o.msb_alpha),
                rack_alpha: w.rack_alpha.or(o.rack_alpha),
                affinity_theta: w.affinity_theta.or(o.affinity_theta),
            },
        }
    }

    /// As arguments of `ras solve`.
    pub fn arguments(&self) -> Vec<String> {
        let weights = &self.weights;
        let options = [
            ("--spread-beta", weights.spread_beta),
            ("--buffer-tau", weights.buffer_tau),
            ("--move-in-use", weights.move_in_use),
            ("--move-idle", weights.move_idle),
            ("--msb-alpha", weights.msb_alpha),
            ("--rack-alpha", weights.rack_alpha),
            ("--affinity-theta", weights.affinity_theta),
            ("--shared-buffer-fraction", self.shared_buffer_fraction),
            ("--scale-requests", self.scale_requests),
        ];
        let given = options.into_iter().filter_map(|(option, value)| Some((option, value?)));
        given.flat_map(|(option, value)| [option.to_owned(), value.to_string()]).collect()
    }

    /// The overrides recorded in a report.
    ///
    /// # Errors
    /// If its member `overrides` is not of this form.
    pub fn of_report(report: &SolveReport) -> Result<Overrides> {
        let recorded = Option::<Overrides>::deserialize(&report.overrides);
        Ok(recorded.context("report.json: overrides")?.unwrap_or_default())
    }

    /// The region with these overrides.
    ///
    /// # Errors
    /// If one breaks a rule of the snapshot format.
    pub fn apply(&self, snapshot: RegionSnapshot) -> Result<RegionSnapshot> {
        if *self == Overrides::default() {
            return Ok(snapshot);
        }
        let mut parts = snapshot.to_parts();
        self.change(&mut parts);
        RegionSnapshot::new(parts).context("with the overrides of the snapshot's settings")
    }

    fn change(&self, parts: &mut SnapshotParts) {
        self.weights.change(&mut parts.weights);
        if self.shared_buffer_fraction.is_some() {
            parts.shared_buffer_fraction = self.shared_buffer_fraction;
        }
        if let Some(factor) = self.scale_requests {
            let guaranteed = ReservationKind::Guaranteed.as_str();
            for row in parts.reservations.iter_mut().filter(|row| *row.kind == *guaranteed) {
                row.capacity_rru *= factor;
            }
        }
    }
}

impl WeightOverrides {
    fn is_empty(&self) -> bool {
        *self == WeightOverrides::default()
    }

    fn change(&self, weights: &mut Weights) {
        let set = |weight: &mut f64, instead: Option<f64>| *weight = instead.unwrap_or(*weight);
        set(&mut weights.move_in_use, self.move_in_use);
        set(&mut weights.move_idle, self.move_idle);
        set(&mut weights.spread_beta, self.spread_beta);
        set(&mut weights.buffer_tau, self.buffer_tau);
        set(&mut weights.affinity_theta, self.affinity_theta);
        weights.msb_alpha = self.msb_alpha.or(weights.msb_alpha);
        weights.rack_alpha = self.rack_alpha.or(weights.rack_alpha);
    }
}

#[cfg(test)]
mod tests {
    use super::Overrides;
    use crate::cli::OverrideOptions;
    use clap::{Args, FromArgMatches};

    #[test]
    fn arguments_are_read_as_what_they_were() {
        let all = OverrideOptions {
            spread_beta: Some(0.1 + 0.2),
            buffer_tau: Some(0.0),
            move_in_use: Some(12.0),
            move_idle: Some(1e-9),
            msb_alpha: Some(0.05),
            rack_alpha: Some(1.0),
            affinity_theta: Some(0.25),
            shared_buffer_fraction: Some(0.015),
            scale_requests: Some(1.5),
        };
        for options in [all, OverrideOptions::default()] {
            let overrides = Overrides::from(&options);
            let command = OverrideOptions::augment_args(clap::Command::new("solve"));
            let words = std::iter::once("solve".to_owned()).chain(overrides.arguments());
            let matches = command.get_matches_from(words);
            let read = OverrideOptions::from_arg_matches(&matches).expect("arguments");
            assert_eq!(Overrides::from(&read), overrides);
        }
    }
}
