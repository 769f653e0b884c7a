//! Limits of groups: the solver against every assignment of tiny regions, and what it keeps in larger ones.

mod brute;
mod world;

use async_solver::backend::InProcess;
use async_solver::random::Random;
use async_solver::{
    Coefficient, GroupLimit, GroupLimits, GroupLimitsError, SolveEnv, SolveOutcome, SolverConfig,
    solve_within,
};
use brute::Phase1;
use fleet::{RegionSnapshot, ReservationIx, ReservationKind, Rru, Server, SnapshotParts};
use std::cell::Cell;
use world::{
    TINY, TOWN, config, empty, for_each, reservation, rru, server, shortfalls, snapshot, worlds,
};

/// What a server of a reservation counts in a row.
type Amount = Box<dyn Fn(&RegionSnapshot, &Server, ReservationIx) -> i64>;

/// Rows as a reader states them: a name, a bound, and a function of single servers.
struct Stated {
    rows: Vec<(String, i64, Amount)>,
}

impl Stated {
    /// What a row adds up to, server by server.
    fn sum(&self, row: usize, snapshot: &RegionSnapshot, holders: &[Option<ReservationIx>]) -> i64 {
        let servers = snapshot.servers.iter().zip(holders);
        servers
            .filter_map(|(server, holder)| Some((self.rows[row].2)(snapshot, server, (*holder)?)))
            .sum()
    }

    /// Whether every row is within its bound, or no further above it than today.
    fn keeps(&self, snapshot: &RegionSnapshot, holders: &[Option<ReservationIx>]) -> bool {
        self.keeps_with(snapshot, holders, |_, _| 0)
    }

    /// The same as the search reads it: servers worth zero to their holder count there even if they leave it, and where
    /// one server alone exceeds a bound, no reservation gets one that holds none like it.
    fn keeps_as_searched(
        &self,
        snapshot: &RegionSnapshot,
        holders: &[Option<ReservationIx>],
    ) -> bool {
        let like = |one: &Server, other: &Server| {
            snapshot.msb_of(one) == snapshot.msb_of(other)
                && one.hardware_type == other.hardware_type
        };
        let holds_like = |server: &Server, of: ReservationIx| {
            let mut held = snapshot.servers.iter().filter(|held| held.holder() == Some(of));
            held.any(|held| held.available && like(held, server))
        };
        let is_member = snapshot.servers.iter().zip(holders).all(|(server, holder)| {
            holder.is_none_or(|of| {
                let exceeds = |row: &(String, i64, Amount)| (row.2)(snapshot, server, of) > row.1;
                !self.rows.iter().any(exceeds) || !server.available || holds_like(server, of)
            })
        });
        is_member
            && self.keeps_with(snapshot, holders, |row, (server, target)| {
                let leaves = server.available && server.holder() != target;
                let holder = server.holder().filter(|of| {
                    leaves
                        && (snapshot.value(server, *of) == Rru::ZERO || is_elastic(snapshot, *of))
                });
                holder.map_or(0, |of| (self.rows[row].2)(snapshot, server, of))
            })
    }

    fn keeps_with(
        &self,
        snapshot: &RegionSnapshot,
        holders: &[Option<ReservationIx>],
        more: impl Fn(usize, (&Server, Option<ReservationIx>)) -> i64,
    ) -> bool {
        let today: Vec<_> = snapshot.servers.iter().map(Server::holder).collect();
        (0..self.rows.len()).all(|row| {
            let most = self.rows[row].1.max(self.sum(row, snapshot, &today));
            let more =
                snapshot.servers.iter().zip(holders).map(|(server, &of)| more(row, (server, of)));
            self.sum(row, snapshot, holders) + more.sum::<i64>() <= most
        })
    }

    /// The same by class: here of servers of an MSB and hardware type.
    fn limits(&self, snapshot: &RegionSnapshot) -> GroupLimits {
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
fn drawn(snapshot: &RegionSnapshot, seed: u64) -> Stated {
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

fn is_elastic(snapshot: &RegionSnapshot, of: ReservationIx) -> bool {
    snapshot.reservations[of.ix()].kind == ReservationKind::Elastic
}

fn whole(number: usize) -> i64 {
    i64::try_from(number).expect("few")
}

/// A number that differs from world to world, the same on every machine.
fn seed_of(world: &SnapshotParts) -> u64 {
    let held = world.servers.iter().filter(|of| of.current_reservation.is_some()).count();
    (1000 * world.servers.len() + 100 * held + 10 * world.rru.len() + world.unavailability.len())
        as u64
}

fn solved_within(
    snapshot: &RegionSnapshot,
    limits: &GroupLimits,
    config: &SolverConfig,
) -> SolveOutcome {
    solve_within(snapshot, limits, config, &SolveEnv::untimed(&InProcess))
}

#[test]
fn bound_and_primal_enclose_the_optimum_within_limits() {
    let (all, least, best, bound_near, bound_by) =
        (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
    for_each(150, worlds(TINY), |world| {
        let snapshot = snapshot(&world);
        let stated = drawn(&snapshot, seed_of(&world));
        let limits = stated.limits(&snapshot);
        let phase1 = Phase1::new(&snapshot);
        let within = phase1.best_whole_of(&|holders| stated.keeps(&snapshot, holders));
        let (missing, optimum) =
            phase1.best_whole_of(&|holders| stated.keeps_as_searched(&snapshot, holders));
        let config = SolverConfig { hand_back: false, unguaranteed: false, ..config() };
        let outcome = solved_within(&snapshot, &limits, &config);
        let holders = outcome.targets.holders();
        assert!(stated.keeps(&snapshot, holders), "{:?}", outcome.stats.limits);
        let (found, _) = phase1.standing(holders).expect("nothing worse than today");
        assert!(found >= within.0, "less is missing than can be");
        all.set(all.get() + 1);
        let without = phase1.best_whole_of(&|_| true);
        let differs = without.0 != within.0 || without.1 < within.1 - 1e-6;
        bound_by.set(bound_by.get() + u32::from(differs));
        let stats = &outcome.stats;
        let slack = 1e-6 + 1e-11 * (optimum.abs() + stats.phase1.shortfall_cost);
        let bound = stats.phase1.dual_bound - stats.phase1.shortfall_cost;
        if found == within.0 {
            let optimum = within.1;
            assert!(bound <= optimum + slack, "bound {bound} above the optimum {optimum}");
        }
        if found != missing {
            return;
        }
        least.set(least.get() + 1);
        let cost = phase1.whole_cost(holders);
        assert!(cost >= optimum - slack, "{cost} below the optimum {optimum}");
        best.set(best.get() + u32::from(cost <= optimum + slack));
        let near = bound >= optimum - 0.01 * stats.whole.primal.abs() - 1e-6;
        bound_near.set(bound_near.get() + u32::from(near));
    });
    let (all, least, best) = (all.get(), least.get(), best.get());
    let (bound_near, bound_by) = (bound_near.get(), bound_by.get());
    println!("of {all} worlds: {bound_by} bound by limits, least missing in {least}");
    println!("optimum in {best}, bound within 1 % in {bound_near} of these");
    assert!(bound_by * 100 >= all * 25, "limits matter in {bound_by} of {all} only");
    assert!(least * 100 >= all * 97, "least missing in {least} of {all} worlds only");
    assert!(best * 100 >= least * 97, "optimum in {best} of {least} worlds only");
    assert!(bound_near * 100 >= least * 90, "bound near in {bound_near} of {least} only");
}

/// Everything that runs after phase 1 keeps limits, too, and what the report says of them is so.
#[test]
fn a_whole_solve_keeps_limits() {
    let tight = Cell::new(0);
    for_each(25, worlds(TOWN), |world| {
        let snapshot = snapshot(&world);
        let stated = drawn(&snapshot, seed_of(&world));
        let limits = stated.limits(&snapshot);
        for level in [true, false] {
            let outcome = solved_within(&snapshot, &limits, &SolverConfig { level, ..config() });
            let holders = outcome.targets.holders();
            assert!(stated.keeps(&snapshot, holders), "{:?}", outcome.stats.limits);
            let report = fleet::audit::audit(&snapshot, &outcome.targets);
            assert!(report.is_clean(), "{report}");
            assert_eq!(outcome.stats.limits.len(), stated.rows.len());
            for (row, of) in outcome.stats.limits.iter().enumerate() {
                assert_eq!(of.after, stated.sum(row, &snapshot, holders), "{}", of.name);
                assert_eq!((&of.name, of.most), (&stated.rows[row].0, stated.rows[row].1));
                assert!(of.is_kept(), "{of:?}");
                tight.set(tight.get() + u32::from(of.after == of.most && of.most > 0));
            }
            let phase1 = &outcome.stats.phase1;
            assert!(phase1.dual_bound <= phase1.primal + 1e-6);
        }
    });
    assert!(tight.get() >= 15, "{} rows end at their limit", tight.get());
}

/// Limits that nothing can exceed change nothing, bit for bit.
#[test]
fn limits_that_cannot_bind_change_nothing() {
    for_each(20, worlds(TOWN), |world| {
        let snapshot = snapshot(&world);
        let mut stated = drawn(&snapshot, seed_of(&world));
        stated.rows.iter_mut().for_each(|row| row.1 = 1_000_000);
        let with = solved_within(&snapshot, &stated.limits(&snapshot), &config());
        let without = solved_within(&snapshot, &GroupLimits::default(), &config());
        assert_eq!(with.targets.holders(), without.targets.holders());
        assert_eq!(with.stats.phase1, without.stats.phase1);
        assert!(with.stats.limits.iter().all(|of| of.price == 0.0));
    });
}

/// Two MSBs of six servers, of which the first has power for two: the other four are in the second, and a unit of
/// power more has a price.
#[test]
fn a_limit_has_a_price() {
    let mut parts = empty();
    for number in 0..12 {
        let msb = if number < 6 { "m0" } else { "m1" };
        let rack = format!("{msb}-rack{}", number % 3);
        parts.servers.push(server(&format!("s{number:02}"), ("dc0", msb, &rack), "t0"));
    }
    parts.reservations.push(reservation("web", 4.0));
    parts.rru.push(rru("web", "t0", 1.0));
    parts.weights.buffer_tau = 1.0;
    let snapshot = snapshot(&parts);
    let most = |most: i64| {
        let amount = |snapshot: &RegionSnapshot, server: &Server, _| {
            i64::from(&*snapshot.msbs[snapshot.msb_of(server).ix()].id == "m0") * 250
        };
        Stated { rows: vec![("power of m0".into(), most, Box::new(amount))] }
    };
    let free = solved_within(&snapshot, &most(1000).limits(&snapshot), &config());
    assert_eq!(shortfalls(&snapshot, &free.targets)[0].to_f64(), 0.0);
    let tight = solved_within(&snapshot, &most(600).limits(&snapshot), &config());
    // Eq. 6 leaves what the smaller MSB has.
    assert_eq!(shortfalls(&snapshot, &tight.targets)[0].to_f64(), 2.0);
    let of = &tight.stats.limits[0];
    assert_eq!((of.before, of.after, of.most), (0, 500, 600));
    assert!(of.price > 0.0, "{of:?}");
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    let row = |most| vec![GroupLimit { name: "power".into(), most }];
    let at = |class, limit, amount| {
        [Coefficient { class, reservation: ReservationIx::new(0), limit, amount }]
    };
    let name = String::from("power");
    for (rows, class_of, coefficients, error) in [
        (row(1), vec![2], at(0, 0, 1), GroupLimitsError::UnknownClass { class: 2, classes: 2 }),
        (row(1), vec![0], at(2, 0, 1), GroupLimitsError::UnknownClass { class: 2, classes: 2 }),
        (row(1), vec![0], at(0, 1, 1), GroupLimitsError::UnknownLimit { limit: 1, limits: 1 }),
        (row(-1), vec![0], at(0, 0, 1), GroupLimitsError::Negative { name: name.clone() }),
        (row(1), vec![0], at(0, 0, -1), GroupLimitsError::Negative { name: name.clone() }),
        (row(1), vec![0; 4], at(0, 0, 1 << 61), GroupLimitsError::TooLarge { name }),
    ] {
        assert_eq!(GroupLimits::new(rows, (class_of, 2), coefficients).err(), Some(error));
    }
}
