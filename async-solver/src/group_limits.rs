//! Limits of groups: what the servers of reservations add up to, at most.
//!
//! A limit is a row `sum over servers of coefficient(server, reservation that gets it) <= most`: the power of an
//! MSB, the licences of a product, an owner's share of a hardware type. Coefficients are the same for all servers of a
//! *class*, which the caller defines by what the rows read, and nothing else.
//!
//! A limit that holds today holds afterwards. One that is exceeded today is exceeded by no more, and what is above its
//! bound has a price, above those of moves and spread and below that of a shortfall: so it is mended. A coefficient
//! above the limit of its row means that no such server may go there: a rule of membership.

use fleet::{Move, RegionSnapshot, ReservationIx, Rru, ServerIx, Targets};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLimit {
    /// What it is called in reports.
    pub name: String,
    /// What its group may add up to, in a unit that the caller chooses.
    pub most: i64,
}

impl GroupLimit {
    /// The policy and the group of a name such as `power_per_msb: msb=m07`; a limit of a whole policy has no group.
    pub fn policy_and_group(&self) -> (&str, &str) {
        self.name.split_once(": ").unwrap_or((&self.name, ""))
    }
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
    /// What a unit above the bound costs, in units of the objective; zero where nothing is above it that may leave.
    pub excess_price: f64,
}

/// Servers that have to leave so that rows which are exceeded are within their bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaving {
    /// Of each row alone, the fewest servers; `None`: those that are unavailable or pinned exceed it.
    pub fewest: Vec<Option<usize>>,
    /// Servers after whose leaving all rows are within their bounds that can be, idle ones first; not always the fewest.
    pub servers: Vec<ServerIx>,
}

/// Rows that are exceeded today.
pub(crate) struct Exceeded<'a> {
    limits: &'a GroupLimits,
    rows: Vec<bool>,
}

impl Exceeded<'_> {
    /// Whether a move makes one of them smaller.
    pub(crate) fn is_left_by(&self, of: &Move) -> bool {
        let server = of.server.ix();
        let amounts = |holder: Option<ReservationIx>| {
            holder.map_or(&[][..], |holder| self.limits.rows_of(server, holder))
        };
        let then = |row: u32| {
            let of = amounts(of.target).iter().find(|of| of.0 == row);
            of.map_or(0, |of| of.1)
        };
        let mut left = amounts(of.source).iter();
        left.any(|&(row, amount)| self.rows[row as usize] && amount > then(row))
    }
}

/// A server that may leave a row that is exceeded.
#[derive(Clone, Copy)]
struct Counted {
    in_use: bool,
    amount: i64,
    server: usize,
}

/// The fewest servers that together count this much; `None`: all of them do not.
fn fewest(excess: i64, counted: &[Counted]) -> Option<usize> {
    let mut amounts: Vec<i64> = counted.iter().map(|of| of.amount).collect();
    amounts.sort_unstable_by_key(|amount| Reverse(*amount));
    let mut left = excess;
    let mut servers = 0;
    for amount in amounts {
        if left <= 0 {
            break;
        }
        left -= amount;
        servers += 1;
    }
    (left <= 0).then_some(servers)
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

    /// The number of classes: servers of one class count alike.
    pub fn classes(&self) -> usize {
        self.amounts.len()
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
                LimitUse { name, most, before, after, price: 0.0, excess_price: 0.0 }
            })
            .collect()
    }

    /// Whether targets keep every row: within its bound, or no further above it than today.
    pub(crate) fn are_kept(&self, snapshot: &RegionSnapshot, targets: &Targets) -> bool {
        self.report(snapshot, targets).iter().all(LimitUse::is_kept)
    }

    /// The rows that leave no room for some server which counts for a reservation, with targets that do not give it to this
    /// one.
    pub(crate) fn full_for(
        &self,
        snapshot: &RegionSnapshot,
        asking: ReservationIx,
        targets: &Targets,
    ) -> Vec<LimitUse> {
        let uses = self.report(snapshot, targets);
        let mut is_full = vec![false; uses.len()];
        for (server, holder) in targets.holders().iter().enumerate() {
            let of = &snapshot.servers[server];
            let counts = of.available && snapshot.value(of, asking) > Rru::ZERO;
            if !counts || *holder == Some(asking) {
                continue;
            }
            let leaves = holder.map_or(&[][..], |holder| self.rows_of(server, holder));
            for &(row, amount) in self.rows_of(server, asking) {
                let LimitUse { most, before, after, .. } = uses[row as usize];
                let left = leaves.iter().find(|of| of.0 == row).map_or(0, |of| of.1);
                is_full[row as usize] |= amount > left && after - left + amount > most.max(before);
            }
        }
        uses.into_iter().zip(is_full).filter(|of| of.1).map(|of| of.0).collect()
    }

    /// The rows that other targets do not keep, with what they add up to with targets.
    pub(crate) fn exceeded_by(
        &self,
        snapshot: &RegionSnapshot,
        other: &Targets,
        targets: &Targets,
    ) -> Vec<LimitUse> {
        let other = self.report(snapshot, other);
        let uses = self.report(snapshot, targets).into_iter().zip(other);
        uses.filter(|(_, other)| !other.is_kept()).map(|of| of.0).collect()
    }

    /// The rows that are exceeded today.
    pub(crate) fn exceeded(&self, snapshot: &RegionSnapshot) -> Exceeded<'_> {
        let usage = self.usage(snapshot.servers.iter().map(fleet::Server::holder));
        let rows = self.limits.iter().zip(usage).map(|(row, usage)| usage > row.most);
        Exceeded { limits: self, rows: rows.collect() }
    }

    /// Servers that have to leave their holders so that every row is within its bound.
    pub fn leaving(&self, snapshot: &RegionSnapshot) -> Leaving {
        let mut usage = self.usage(snapshot.servers.iter().map(fleet::Server::holder));
        let excess: Vec<i64> =
            self.limits.iter().zip(&usage).map(|(row, usage)| usage - row.most).collect();
        let mut counted = vec![Vec::new(); self.limits.len()];
        for (server, of) in snapshot.servers.iter().enumerate() {
            let Some(holder) = of.holder().filter(|_| of.available && !of.pinned) else { continue };
            for &(row, amount) in self.rows_of(server, holder) {
                if excess[row as usize] > 0 {
                    counted[row as usize].push(Counted { in_use: of.in_use, amount, server });
                }
            }
        }
        let fewest = excess.iter().zip(&counted).map(|(excess, of)| fewest(*excess, of)).collect();
        let mut servers = BTreeSet::new();
        for (row, mut counted) in counted.into_iter().enumerate() {
            counted.sort_by_key(|of| (of.in_use, Reverse(of.amount), of.server));
            for Counted { server, .. } in counted {
                if usage[row] <= self.limits[row].most {
                    break;
                }
                let holder = snapshot.servers[server].holder();
                if servers.insert(server) {
                    for &(row, amount) in holder.map_or(&[][..], |of| self.rows_of(server, of)) {
                        usage[row as usize] -= amount;
                    }
                }
            }
        }
        Leaving { fewest, servers: servers.into_iter().map(ServerIx::new).collect() }
    }

    /// Rows in which a server of a holder counts, and how much.
    pub fn rows_of(&self, server: usize, holder: ReservationIx) -> &[(u32, i64)] {
        let of = self.class_of.get(server).and_then(|&class| self.amounts.get(class as usize));
        of.and_then(|of| of.get(&holder)).map_or(&[], Vec::as_slice)
    }

    /// A number that servers share which count alike, as far as it matters.
    pub fn kind(&self, server: u32) -> u32 {
        self.class_of.get(server as usize).map_or(0, |&class| self.kind_of[class as usize])
    }

    /// Whether a server alone exceeds a row.
    pub(crate) fn excludes(&self, server: usize, holder: ReservationIx) -> bool {
        let rows = self.rows_of(server, holder).iter();
        rows.into_iter().any(|&(limit, amount)| amount > self.limits[limit as usize].most)
    }
}

impl LimitUse {
    /// How far above its bound it was before the solve, and is with the targets.
    pub fn excess(&self) -> (i64, i64) {
        ((self.before - self.most).max(0), (self.after - self.most).max(0))
    }

    /// Whether the targets keep to the row: within its bound, or no further above it than before.
    pub fn is_kept(&self) -> bool {
        self.after <= self.most.max(self.before)
    }
}
