//! Limits of groups: what the servers of reservations add up to, at most.
//!
//! A limit is a row `sum over servers of coefficient(server, reservation that gets it) <= most`: the power of an
//! MSB, the licences of a product, an owner's share of a hardware type. Coefficients are the same for all servers of a
//! *class*, which the caller defines by what the rows read, and nothing else.
//!
//! A limit that holds today holds afterwards, and one that is exceeded today is exceeded by no more. A coefficient
//! above the limit of its row means that no such server may go there: a rule of membership.

use fleet::{RegionSnapshot, ReservationIx, Targets};
use std::collections::BTreeMap;

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLimit {
    /// What it is called in reports.
    pub name: String,
    /// What its group may add up to, in a unit that the caller chooses.
    pub most: i64,
}

/// What a server counts in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Coefficient {
    /// The class of the server.
    pub class: u32,
    /// Who gets it.
    pub reservation: ReservationIx,
    /// Position of the row.
    pub limit: u32,
    /// How much it counts, in the unit of the row.
    pub amount: i64,
}

/// Limits of the groups of a region; none by default.
#[derive(Clone, Debug, Default)]
pub struct GroupLimits {
    limits: Vec<GroupLimit>,
    /// Of each server, in the order of the snapshot.
    class_of: Vec<u32>,
    /// By class and reservation: rows, and what a server counts in them.
    amounts: Vec<BTreeMap<ReservationIx, Vec<(u32, i64)>>>,
    /// Equal for classes that count alike in all rows that can be reached.
    kind_of: Vec<u32>,
    /// The rows that some assignment exceeds.
    can_bind: Vec<bool>,
}

/// Why limits make no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupLimitsError {
    /// A class without coefficients is a number like any other, but one that is used has to be declared.
    #[error("class {class}: there are {classes}")]
    UnknownClass {
        /// Its number.
        class: u32,
        /// How many were declared.
        classes: u32,
    },
    /// A coefficient of a row that is not there.
    #[error("limit {limit}: there are {limits}")]
    UnknownLimit {
        /// Its position.
        limit: u32,
        /// How many there are.
        limits: usize,
    },
    /// Rows bound sums from above, so each server counts at least zero.
    #[error("limit `{name}`: a coefficient or bound is below zero")]
    Negative {
        /// The row.
        name: String,
    },
    /// Sums would not fit 64 bits.
    #[error("limit `{name}`: all servers together count more than 2^62")]
    TooLarge {
        /// The row.
        name: String,
    },
}

/// What a row adds up to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitUse {
    /// Its name.
    pub name: String,
    /// What it may add up to.
    pub most: i64,
    /// What it added up to before the solve.
    pub before: i64,
    /// What it adds up to with the targets.
    pub after: i64,
    /// What one unit more would save at most, to first order, in units of the objective: the price of the row in the proved
    /// bound. Zero where no time was left for a bound.
    pub price: f64,
}

/// The most that all servers may count together.
const TOTAL_MAX: i64 = 1 << 62;

impl GroupLimits {
    /// Checks rows and coefficients. `class_of`: the class of each server of the snapshot, in its order, below `classes`.
    ///
    /// # Errors
    /// If a class or row is not there, an amount or bound is below zero, or sums would not fit.
    pub fn new(
        limits: Vec<GroupLimit>,
        (class_of, classes): (Vec<u32>, u32),
        coefficients: impl IntoIterator<Item = Coefficient>,
    ) -> Result<GroupLimits, GroupLimitsError> {
        let mut servers = vec![0_i64; classes as usize];
        for &class in &class_of {
            let of = servers.get_mut(class as usize);
            *of.ok_or(GroupLimitsError::UnknownClass { class, classes })? += 1;
        }
        let mut amounts = vec![BTreeMap::<_, Vec<(u32, i64)>>::new(); classes as usize];
        // The most that the servers of a class count in a row, by row and class.
        let mut top: BTreeMap<(u32, u32), i64> = BTreeMap::new();
        for Coefficient { class, reservation, limit, amount } in coefficients {
            let of = amounts.get_mut(class as usize);
            let of = of.ok_or(GroupLimitsError::UnknownClass { class, classes })?;
            let Some(row) = limits.get(limit as usize) else {
                return Err(GroupLimitsError::UnknownLimit { limit, limits: limits.len() });
            };
            if amount < 0 {
                return Err(GroupLimitsError::Negative { name: row.name.clone() });
            }
            let of = of.entry(reservation).or_default();
            let sum = match of.iter_mut().find(|of| of.0 == limit) {
                Some(known) => {
                    known.1 = known.1.saturating_add(amount);
                    known.1
                }
                None => {
                    of.push((limit, amount));
                    amount
                }
            };
            let top = top.entry((limit, class)).or_default();
            *top = sum.max(*top);
        }
        let mut total = vec![0_i64; limits.len()];
        for (&(limit, class), &amount) in &top {
            let sum = &mut total[limit as usize];
            *sum = sum.saturating_add(amount.saturating_mul(servers[class as usize]));
        }
        for (row, &total) in limits.iter().zip(&total) {
            if row.most < 0 {
                return Err(GroupLimitsError::Negative { name: row.name.clone() });
            }
            if total > TOTAL_MAX {
                return Err(GroupLimitsError::TooLarge { name: row.name.clone() });
            }
        }
        for of in amounts.iter_mut().flat_map(BTreeMap::values_mut) {
            of.retain(|&(_, amount)| amount > 0);
            of.sort_unstable();
        }
        let can_bind: Vec<bool> =
            limits.iter().zip(&total).map(|(row, &total)| total > row.most).collect();
        let mut kinds: BTreeMap<Vec<(ReservationIx, u32, i64)>, u32> = BTreeMap::new();
        let kind = |of: &BTreeMap<ReservationIx, Vec<(u32, i64)>>| {
            let bind = |of: &(u32, i64)| can_bind[of.0 as usize];
            let rows = of.iter().flat_map(|(&reservation, rows)| {
                rows.iter().filter(|of| bind(of)).map(move |&(row, of)| (reservation, row, of))
            });
            let next = u32::try_from(kinds.len()).unwrap_or(u32::MAX);
            *kinds.entry(rows.collect()).or_insert(next)
        };
        let kind_of = amounts.iter().map(kind).collect();
        Ok(GroupLimits { limits, class_of, amounts, kind_of, can_bind })
    }

    /// The rows.
    pub fn limits(&self) -> &[GroupLimit] {
        &self.limits
    }

    /// Whether some assignment exceeds a row: one that none can exceed changes nothing.
    pub fn can_bind(&self, limit: usize) -> bool {
        self.can_bind.get(limit).copied().unwrap_or(false)
    }

    /// What every row adds up to if servers belong to these holders, server by server.
    pub fn usage(&self, holders: impl IntoIterator<Item = Option<ReservationIx>>) -> Vec<i64> {
        let mut usage = vec![0; self.limits.len()];
        for (server, holder) in holders.into_iter().enumerate() {
            for &(limit, amount) in holder.map_or(&[][..], |holder| self.rows_of(server, holder)) {
                usage[limit as usize] += amount;
            }
        }
        usage
    }

    /// What every row adds up to today, and with targets. Prices are left at zero.
    pub fn report(&self, snapshot: &RegionSnapshot, targets: &Targets) -> Vec<LimitUse> {
        let before = self.usage(snapshot.servers.iter().map(fleet::Server::holder));
        let after = self.usage(targets.holders().iter().copied());
        (self.limits.iter().zip(before.into_iter().zip(after)))
            .map(|(GroupLimit { name, most }, (before, after))| {
                let (name, most) = (name.clone(), *most);
                LimitUse { name, most, before, after, price: 0.0 }
            })
            .collect()
    }

    /// Rows in which a server of a holder counts, and how much.
    pub(crate) fn rows_of(&self, server: usize, holder: ReservationIx) -> &[(u32, i64)] {
        let of = self.class_of.get(server).and_then(|&class| self.amounts.get(class as usize));
        of.and_then(|of| of.get(&holder)).map_or(&[], Vec::as_slice)
    }

    /// A number that servers share which count alike, as far as it matters.
    pub(crate) fn kind(&self, server: u32) -> u32 {
        self.class_of.get(server as usize).map_or(0, |&class| self.kind_of[class as usize])
    }

    /// Whether a server alone exceeds a row.
    pub(crate) fn excludes(&self, server: usize, holder: ReservationIx) -> bool {
        let rows = self.rows_of(server, holder).iter();
        rows.into_iter().any(|&(limit, amount)| amount > self.limits[limit as usize].most)
    }
}

impl LimitUse {
    /// Whether the targets keep to the row: within its bound, or no further above it than before.
    pub fn is_kept(&self) -> bool {
        self.after <= self.most.max(self.before)
    }
}
