//! Limits of groups as a reader states them, server by server, and rows drawn for regions.

use async_solver::random::Random;
use async_solver::{Coefficient, GroupLimit, GroupLimits};
use fleet::{RegionSnapshot, ReservationIx, ReservationKind, Rru, Server, SnapshotParts};
use std::collections::BTreeSet;

/// What a server of a reservation counts in a row.
pub type Amount = Box<dyn Fn(&RegionSnapshot, &Server, ReservationIx) -> i64 + Sync>;

pub type Holders = [Option<ReservationIx>];

/// Of each row, up to where it costs nothing, and the price of a unit above that.
pub type Prices = [(i64, f64)];

/// Rows as a reader states them: a name, a bound, and a function of single servers.
pub struct Stated {
    pub rows: Vec<(String, i64, Amount)>,
}

impl Stated {
    /// What a row adds up to, server by server.
    pub fn sum(&self, row: usize, snapshot: &RegionSnapshot, holders: &Holders) -> i64 {
        let servers = snapshot.servers.iter().zip(holders);
        servers
            .filter_map(|(server, holder)| Some((self.rows[row].2)(snapshot, server, (*holder)?)))
            .sum()
    }

    /// What is above the bounds of rows costs; `None`: one is above its bound and further than today.
    pub fn cost(
        &self,
        prices: &Prices,
        snapshot: &RegionSnapshot,
        holders: &Holders,
    ) -> Option<f64> {
        self.cost_with(prices, snapshot, holders, |_, _| 0)
    }

    /// Whether every row is within its bound, or no further above it than today.
    pub fn keeps(&self, snapshot: &RegionSnapshot, holders: &Holders) -> bool {
        let bounds = self.rows.iter().map(|row| (row.1, 0.0));
        self.cost(&bounds.collect::<Vec<_>>(), snapshot, holders).is_some()
    }

    /// Whether one server alone exceeds a bound.
    pub fn exceeds(&self, snapshot: &RegionSnapshot, server: &Server, of: ReservationIx) -> bool {
        self.rows.iter().any(|row| (row.2)(snapshot, server, of) > row.1)
    }

    /// Whether a reservation may get a server: it does not exceed a bound alone, or the reservation holds one like it.
    pub fn may_have(&self, snapshot: &RegionSnapshot, server: &Server, of: ReservationIx) -> bool {
        let like = |other: &&Server| {
            snapshot.msb_of(server) == snapshot.msb_of(other)
                && server.hardware_type == other.hardware_type
                && other.holder() == Some(of)
                && other.available
                && domains(snapshot, server) == domains(snapshot, other)
        };
        !self.exceeds(snapshot, server, of) || snapshot.servers.iter().any(|of| like(&of))
    }

    /// The same as the search reads it: servers worth zero to their holder count there even if they leave it, and where
    /// one server alone exceeds a bound, no reservation gets one that holds none like it.
    pub fn cost_as_searched(
        &self,
        prices: &Prices,
        snapshot: &RegionSnapshot,
        holders: &Holders,
    ) -> Option<f64> {
        let is_member = snapshot.servers.iter().zip(holders).all(|(server, holder)| {
            holder.is_none_or(|of| !server.available || self.may_have(snapshot, server, of))
        });
        if !is_member {
            return None;
        }
        self.cost_with(prices, snapshot, holders, |row, (server, target)| {
            let leaves = server.available && server.holder() != target;
            let holder = server.holder().filter(|of| leaves && is_worthless(snapshot, server, *of));
            holder.map_or(0, |of| (self.rows[row].2)(snapshot, server, of))
        })
    }

    pub fn cost_with(
        &self,
        prices: &Prices,
        snapshot: &RegionSnapshot,
        holders: &Holders,
        more: impl Fn(usize, (&Server, Option<ReservationIx>)) -> i64,
    ) -> Option<f64> {
        let today: Vec<_> = snapshot.servers.iter().map(Server::holder).collect();
        let mut cost = 0.0;
        for (row, (bound, price)) in prices.iter().copied().enumerate() {
            let most = self.rows[row].1.max(self.sum(row, snapshot, &today));
            let more =
                snapshot.servers.iter().zip(holders).map(|(server, &of)| more(row, (server, of)));
            let sum = self.sum(row, snapshot, holders) + more.sum::<i64>();
            if sum > most {
                return None;
            }
            cost += price * (sum - bound).max(0) as f64;
        }
        Some(cost)
    }

    /// Up to where each row costs nothing, and the price of a unit above that, as docs/formulation.md says: half of what a
    /// missing server costs, for the server that counts least of those that may leave.
    pub fn excess_prices(&self, snapshot: &RegionSnapshot) -> Vec<(i64, f64)> {
        let weights = &snapshot.weights;
        let mut server_price = 50.0 * weights.move_in_use.max(weights.move_idle) + 1.0;
        for (number, of) in snapshot.reservations.iter().enumerate() {
            let ix = ReservationIx::new(number);
            let is_item = |server: &&Server| {
                server.available
                    && !is_worthless(snapshot, server, ix)
                    && (!server.pinned || server.holder() == Some(ix))
                    && self.may_have(snapshot, server, ix)
            };
            let items = snapshot.servers.iter().filter(is_item);
            let top = items.map(|server| snapshot.value(server, ix).to_f64()).reduce(f64::max);
            let beta =
                if of.kind == ReservationKind::Guaranteed { weights.spread_beta } else { 0.0 };
            let tau = if of.msb_buffer { weights.buffer_tau } else { 0.0 };
            server_price = server_price.max(20.0 * (tau + beta) * top.unwrap_or(1.0));
        }
        let today: Vec<_> = snapshot.servers.iter().map(Server::holder).collect();
        let prices = (0..self.rows.len()).map(|row| {
            let may_leave = |server: &&Server| server.available && !server.pinned;
            let amounts = snapshot.servers.iter().filter(may_leave).filter_map(|server| {
                let holder = server.holder().filter(|of| !is_worthless(snapshot, server, *of))?;
                Some((self.rows[row].2)(snapshot, server, holder)).filter(|amount| *amount > 0)
            });
            let amounts: Vec<i64> = amounts.collect();
            let stuck = self.sum(row, snapshot, &today) - amounts.iter().sum::<i64>();
            let least = amounts.iter().min().copied().unwrap_or(1);
            let least = least.max(amounts.iter().max().map_or(1, |most| most / 16)).max(1);
            (self.rows[row].1.max(stuck), 0.5 * server_price / least as f64)
        });
        prices.collect()
    }

    /// The same by class: here of servers of an MSB and hardware type.
    pub fn limits(&self, snapshot: &RegionSnapshot) -> GroupLimits {
        let types = snapshot.hardware_types.len();
        let class =
            |server: &Server| snapshot.msb_of(server).ix() * types + server.hardware_type.ix();
        let mut coefficients = Vec::new();
        for server in &snapshot.servers {
            let class = u32::try_from(class(server)).expect("few");
            for reservation in (0..snapshot.reservations.len()).map(ReservationIx::new) {
                for (limit, (_, _, amount)) in (0_u32..).zip(&self.rows) {
                    let amount = amount(snapshot, server, reservation);
                    coefficients.push(Coefficient { class, reservation, limit, amount });
                }
            }
        }
        coefficients.sort_unstable();
        coefficients.dedup();
        let class_of = snapshot.servers.iter().map(class).map(|of| u32::try_from(of).expect("few"));
        let classes = u32::try_from(snapshot.msbs.len() * types).expect("few");
        let rows = self.rows.iter();
        let rows = rows.map(|(name, most, _)| GroupLimit { name: name.clone(), most: *most });
        GroupLimits::new(rows.collect(), (class_of.collect(), classes), coefficients)
            .expect("rows as they must be")
    }
}

/// Rows drawn for a region: power by MSB, licences of a reservation, a share of a type for two of them, and a type that a
/// reservation may not have.
pub fn drawn(snapshot: &RegionSnapshot, seed: u64) -> Stated {
    let mut random = Random::new(seed);
    let mut rows: Vec<(String, i64, Amount)> = Vec::new();
    let servers = snapshot.servers.len();
    let watts: Vec<i64> =
        snapshot.hardware_types.iter().map(|_| whole(1 + random.below(4))).collect();
    for msb in 0..snapshot.msbs.len() {
        if random.below(2) == 0 {
            let watts = watts.clone();
            let amount = move |snapshot: &RegionSnapshot, server: &Server, _| {
                if snapshot.msb_of(server).ix() == msb {
                    watts[server.hardware_type.ix()]
                } else {
                    0
                }
            };
            let most = whole(random.below(2 * servers / snapshot.msbs.len() + 2));
            rows.push((format!("power of {msb}"), most, Box::new(amount)));
        }
    }
    let reservations = snapshot.reservations.len();
    let licensed = ReservationIx::new(random.below(reservations));
    let amount = move |_: &RegionSnapshot, _: &Server, of| i64::from(of == licensed);
    rows.push(("licences".into(), whole(random.below(servers / 2 + 2)), Box::new(amount)));
    let owner = [0, 1].map(|_| ReservationIx::new(random.below(reservations)));
    let shared = random.below(snapshot.hardware_types.len());
    let amount = move |_: &RegionSnapshot, server: &Server, of| {
        i64::from(owner.contains(&of) && server.hardware_type.ix() == shared)
    };
    rows.push(("share of a type".into(), whole(random.below(servers / 2 + 1)), Box::new(amount)));
    let (held, old) = (random.below(reservations), random.below(snapshot.hardware_types.len()));
    if random.below(2) == 0 {
        let amount = move |_: &RegionSnapshot, server: &Server, of: ReservationIx| {
            i64::from(of.ix() == held && server.hardware_type.ix() == old)
        };
        rows.push(("age".into(), 0, Box::new(amount)));
    }
    Stated { rows }
}

/// The domains of a server, where a reservation that could use it survives their loss.
fn domains(snapshot: &RegionSnapshot, server: &Server) -> Vec<Option<u32>> {
    let at = snapshot.server(&server.id).expect("a server of the region").ix();
    let survivors = snapshot.reservations.iter();
    let survivors = survivors.filter(|of| of.value(server.hardware_type).is_some());
    let survived: BTreeSet<_> = survivors.flat_map(|of| &of.survives).collect();
    survived.iter().map(|of| snapshot.partitions[of.ix()].of_servers[at]).collect()
}

/// Whether a server is worth nothing to a reservation.
pub fn is_worthless(snapshot: &RegionSnapshot, server: &Server, of: ReservationIx) -> bool {
    snapshot.value(server, of) == Rru::ZERO
        || snapshot.reservations[of.ix()].kind == ReservationKind::Elastic
}

pub fn whole_of(number: i64) -> usize {
    usize::try_from(number).expect("not below zero")
}

pub fn whole(number: usize) -> i64 {
    i64::try_from(number).expect("few")
}

/// A number that differs from world to world, the same on every machine.
pub fn seed_of(world: &SnapshotParts) -> u64 {
    let held = world.servers.iter().filter(|of| of.current_reservation.is_some()).count();
    (1000 * world.servers.len() + 100 * held + 10 * world.rru.len() + world.unavailability.len())
        as u64
}
