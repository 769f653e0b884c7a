//! The distributions that a network's outputs describe, by place and logarithm of their width.

use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// A distribution with a place and a width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// Heavy tails: Eigen's choice.
    Cauchy,
    /// Exponential tails.
    Laplace,
    /// Light tails.
    Normal,
}

/// Widths are kept between e^-7 and e^2 of the recent level of demand.
const WIDTH: (f64, f64) = (-7.0, 2.0);

impl Output {
    /// All of them.
    pub const ALL: [Output; 3] = [Output::Cauchy, Output::Laplace, Output::Normal];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Output::Cauchy => "Cauchy",
            Output::Laplace => "Laplace",
            Output::Normal => "normal",
        }
    }

    /// The negative logarithm of the density at `truth`, up to a constant, and its derivatives by
    /// place and by log width.
    pub fn loss(self, truth: f64, place: f64, log_width: f64) -> (f64, f64, f64) {
        let log = log_width.clamp(WIDTH.0, WIDTH.1);
        let width = log.exp();
        let z = (truth - place) / width;
        let (loss, by_place, by_log) = match self {
            Output::Cauchy => {
                let square = z * z;
                let pull = 2.0 / (1.0 + square);
                (square.ln_1p(), -pull * z, 1.0 - pull * square)
            }
            Output::Laplace => (z.abs(), if z == 0.0 { 0.0 } else { -z.signum() }, 1.0 - z.abs()),
            Output::Normal => (0.5 * z * z, -z, 1.0 - z * z),
        };
        let is_free = log == log_width;
        (log + loss, by_place / width, if is_free { by_log } else { 0.0 })
    }

    /// The quantile at a level strictly between 0 and 1.
    pub fn quantile(self, place: f64, log_width: f64, level: f64) -> f64 {
        let level = level.clamp(1e-6, 1.0 - 1e-6);
        let width = log_width.clamp(WIDTH.0, WIDTH.1).exp();
        let from_middle = level - 0.5;
        let z = match self {
            Output::Cauchy => (PI * from_middle).tan(),
            Output::Laplace => -from_middle.signum() * (-2.0 * from_middle.abs()).ln_1p(),
            Output::Normal => normal_quantile(level),
        };
        place + width * z
    }
}

/// The quantile of the standard normal distribution, to about 1e-9 (Acklam's rational
/// approximation).
fn normal_quantile(level: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    let polynomial = |of: &[f64], x: f64| of.iter().fold(0.0, |sum, next| sum * x + next);
    let tail = |level: f64| {
        let x = (-2.0 * level.ln()).sqrt();
        polynomial(&C, x) / polynomial(&D, x)
    };
    if level < 0.024_25 {
        tail(level)
    } else if level > 1.0 - 0.024_25 {
        -tail(1.0 - level)
    } else {
        let x = level - 0.5;
        let square = x * x;
        polynomial(&A, square) * x / polynomial(&B, square)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_agree_with_differences() {
        for output in Output::ALL {
            for (truth, place, log) in [(0.3, 0.1, -1.0), (-2.0, 0.4, 0.5), (0.1, 0.1001, -3.0)] {
                let step = 1e-6;
                let loss = |place, log| output.loss(truth, place, log).0;
                let by_place = (loss(place + step, log) - loss(place - step, log)) / (2.0 * step);
                let by_log = (loss(place, log + step) - loss(place, log - step)) / (2.0 * step);
                let (_, place, log) = output.loss(truth, place, log);
                assert!((by_place - place).abs() < 1e-4 * (1.0 + place.abs()), "{output:?}");
                assert!((by_log - log).abs() < 1e-4 * (1.0 + log.abs()), "{output:?}");
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_tables() {
        let q = |output: Output, level| output.quantile(1.0, 2.0_f64.ln(), level);
        assert!((q(Output::Normal, 0.9) - (1.0 + 2.0 * 1.281_551_565_5)).abs() < 1e-6);
        assert!((q(Output::Normal, 0.01) - (1.0 - 2.0 * 2.326_347_874)).abs() < 1e-6);
        assert!((q(Output::Cauchy, 0.75) - 3.0).abs() < 1e-9);
        assert!((q(Output::Laplace, 0.9) - (1.0 + 2.0 * 5.0_f64.ln())).abs() < 1e-9);
        for output in Output::ALL {
            assert!((q(output, 0.5) - 1.0).abs() < 1e-9);
        }
    }
}
