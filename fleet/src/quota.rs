//! Quotas: how much an owner's reservations may be promised together.
//!
//! An RRU is worth what a reservation's own values say, so RRU of two reservations are not added unless
//! they mean the same. A quota has one meaning of its own ([`Measure`]): RRU of one profile, or servers,
//! of all hardware types or of one. Each promise is converted into it at its maximum over the
//! eligible types: whichever of them serves it, it takes no more than that. Embedded buffers are
//! apart, as they are from the capacity C.

use crate::id::{HardwareTypeName, Name};
use crate::rru::Rru;
use std::collections::BTreeMap;
use std::fmt;

/// What a quota counts in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// RRU as a profile defines them.
    Profile {
        /// The profile.
        profile: Name,
        /// What it says that one server of each hardware type is worth.
        rru: BTreeMap<HardwareTypeName, Rru>,
    },
    /// Servers of all hardware types.
    Servers,
    /// Servers of one hardware type.
    ServersOf(HardwareTypeName),
}

impl fmt::Display for Measure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measure::Profile { profile, .. } => write!(out, "RRU of profile {profile:?}"),
            Measure::Servers => out.write_str("servers"),
            Measure::ServersOf(hardware_type) => {
                write!(out, "servers of hardware type {hardware_type:?}")
            }
        }
    }
}

impl Measure {
    /// What one server of a type counts.
    fn weight(&self, hardware_type: &HardwareTypeName) -> Rru {
        let one = Rru::units(1);
        match self {
            Measure::Profile { rru, .. } => rru.get(hardware_type).copied().unwrap_or_default(),
            Measure::Servers => one,
            Measure::ServersOf(only) if only == hardware_type => one,
            Measure::ServersOf(_) => Rru::ZERO,
        }
    }

    /// The most that a promise of `capacity` amounts to, rounded up, with `values` the value of a server
    /// of each eligible type to the reservation.
    pub fn of(&self, capacity: Rru, values: &BTreeMap<HardwareTypeName, Rru>) -> Rru {
        let amounts = values.iter().filter(|(_, value)| **value > Rru::ZERO).map(|(ty, value)| {
            let weight = i128::from(self.weight(ty).0);
            ceil_div(i128::from(capacity.or_zero().0) * weight, i128::from(value.0))
        });
        Rru(saturated(amounts.max().unwrap_or_default()))
    }

    /// The largest capacity that amounts to at most `amount`; `None`: any does, because no eligible
    /// type counts.
    pub fn fits(&self, amount: Rru, values: &BTreeMap<HardwareTypeName, Rru>) -> Option<Rru> {
        let capacities = values.iter().filter_map(|(ty, value)| {
            let weight = i128::from(self.weight(ty).0);
            (weight > 0 && *value > Rru::ZERO)
                .then(|| i128::from(amount.or_zero().0) * i128::from(value.0) / weight)
        });
        capacities.min().map(|micro| Rru(saturated(micro)))
    }
}

/// Of numbers that are not negative.
fn ceil_div(a: i128, b: i128) -> i128 {
    (a + b - 1) / b
}

fn saturated(micro: i128) -> i64 {
    i64::try_from(micro).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Measure;
    use crate::id::HardwareTypeName;
    use crate::rru::Rru;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn values(of: &[(&str, i64)]) -> BTreeMap<HardwareTypeName, Rru> {
        of.iter().map(|(ty, micro)| ((*ty).into(), Rru(*micro))).collect()
    }

    fn profile(of: &[(&str, i64)]) -> Measure {
        Measure::Profile { profile: "web".into(), rru: values(of) }
    }

    #[test]
    fn rru_of_another_meaning_are_converted_and_not_added() {
        let web = profile(&[("C1", 1_000_000), ("C2", 2_000_000)]);
        let same = values(&[("C1", 1_000_000), ("C2", 2_000_000)]);
        assert_eq!(web.of(Rru::units(10), &same), Rru::units(10), "its own RRU");
        // 10 RRU at 0.5 a server are 20 servers, each worth 2 to the profile.
        let other = values(&[("C2", 500_000)]);
        assert_eq!(web.of(Rru::units(10), &other), Rru::units(40));
        assert_eq!(web.fits(Rru::units(40), &other), Some(Rru::units(10)));
        // A type that the profile does not value counts nothing of it.
        let gpu = values(&[("G1", 1_000_000)]);
        assert_eq!((web.of(Rru::units(10), &gpu), web.fits(Rru::ZERO, &gpu)), (Rru::ZERO, None));
        assert_eq!(Measure::Servers.of(Rru::units(10), &other), Rru::units(20));
        assert_eq!(
            Measure::Servers.of(Rru::units(10), &same),
            Rru::units(10),
            "C1 alone may serve it"
        );
        assert_eq!(Measure::ServersOf("C2".into()).of(Rru::units(10), &same), Rru::units(5));
        assert_eq!(Measure::ServersOf("C1".into()).of(Rru::units(10), &other), Rru::ZERO);
        assert_eq!(Measure::Servers.of(Rru(1), &values(&[("C1", 3)])), Rru(333_334), "rounded up");
    }

    proptest! {
        /// What is named as the nearest that fits does fit, and a micro-RRU more does not, whichever
        /// single type serves it; counted here type by type with exact fractions.
        #[test]
        fn the_nearest_fits_and_no_more(
            weights in prop::collection::vec(0i64..4_000_000, 3),
            worth in prop::collection::vec(1i64..4_000_000, 3),
            amount in 0i64..1_000_000_000_000,
        ) {
            let types = ["a", "b", "c"];
            let measure = profile(&types.into_iter().zip(weights.clone()).collect::<Vec<_>>());
            let own = values(&types.into_iter().zip(worth.clone()).collect::<Vec<_>>());
            let within = |capacity: i64| (0..3).all(|t| {
                // capacity / worth servers, each of weight: at most the amount.
                i128::from(capacity) * i128::from(weights[t]) <= i128::from(amount) * i128::from(worth[t])
            });
            match measure.fits(Rru(amount), &own) {
                None => prop_assert!(weights.iter().all(|weight| *weight == 0)),
                Some(Rru(capacity)) => {
                    prop_assert!(within(capacity));
                    prop_assert!(!within(capacity + 1));
                    prop_assert!(measure.of(Rru(capacity), &own) <= Rru(amount));
                    prop_assert!(measure.of(Rru(capacity + 1), &own) > Rru(amount));
                }
            }
        }
    }
}
