//! Tiny regions for tests: written in a few lines, or drawn at random.

use chrono::TimeDelta;
use fleet::{
    AffinityRow, AllowedDatacenterRow, RegionSnapshot, ReservationIx, ReservationRow, ServerRow,
    SnapshotParts, Targets,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use testkit::rows;

pub use testkit::rows::noon;

pub fn hours(count: i64) -> TimeDelta {
    TimeDelta::hours(count)
}

/// Rows under construction.
#[derive(Clone, Debug)]
pub struct World {
    pub parts: SnapshotParts,
}

impl World {
    /// An empty region without shared buffers, with the default prices.
    pub fn new() -> World {
        World { parts: rows::parts() }
    }

    /// Adds free, idle servers on one rack of an MSB: `dc0/m1` means MSB `m1` of datacenter
    /// `dc0`. Ids are `<msb>-<type>-<number>`.
    pub fn servers(mut self, place: &str, hardware_type: &str, count: usize) -> World {
        let (datacenter, msb) = place.split_once('/').expect("datacenter/msb");
        for number in 0..count {
            let id = format!("{msb}-{hardware_type}-{number:03}");
            let place = (datacenter, msb, &*format!("{msb}-rack"));
            self.parts.servers.push(rows::server(&id, place, hardware_type));
        }
        self
    }

    /// Adds a guaranteed reservation with embedded buffer and one RRU per server of each type.
    pub fn reservation(self, id: &str, capacity: f64, types: &[&str]) -> World {
        let values: Vec<(&str, f64)> = types.iter().map(|&ty| (ty, 1.0)).collect();
        self.valued(id, "guaranteed", capacity, &values)
    }

    /// Adds a reservation with embedded buffer.
    pub fn valued(mut self, id: &str, kind: &str, capacity: f64, values: &[(&str, f64)]) -> World {
        let row = ReservationRow { kind: kind.into(), ..rows::reservation(id, capacity) };
        self.parts.reservations.push(row);
        for &(hardware_type, rru) in values {
            self.parts.rru.push(rows::rru(id, hardware_type, rru));
        }
        self
    }

    pub fn affinity(mut self, id: &str, datacenter: &str, share: f64) -> World {
        let datacenter = datacenter.into();
        self.parts.affinity.push(AffinityRow { reservation_id: id.into(), datacenter, share });
        self
    }

    /// Holds a reservation to one more datacenter.
    pub fn allow(mut self, id: &str, datacenter: &str) -> World {
        let (reservation_id, datacenter) = (id.into(), datacenter.into());
        self.parts.allowed_datacenters.push(AllowedDatacenterRow { reservation_id, datacenter });
        self
    }

    /// Adds an event without end that began an hour ago.
    pub fn event(mut self, scope: &str, scope_id: &str, kind: &str) -> World {
        let number = self.parts.unavailability.len();
        self.parts.unavailability.push(rows::event(number, scope, scope_id, kind));
        self
    }

    /// Changes a server.
    pub fn server(mut self, id: &str, change: impl FnOnce(&mut ServerRow)) -> World {
        let row = self.parts.servers.iter_mut().find(|row| &*row.server_id == id);
        change(row.unwrap_or_else(|| panic!("no server {id}")));
        self
    }

    /// Changes a reservation.
    pub fn change(mut self, id: &str, change: impl FnOnce(&mut ReservationRow)) -> World {
        let row = self.parts.reservations.iter_mut().find(|row| &*row.reservation_id == id);
        change(row.unwrap_or_else(|| panic!("no reservation {id}")));
        self
    }

    /// Gives every server whose id begins with `prefix` to a reservation, as of today.
    pub fn hold(mut self, id: &str, prefix: &str) -> World {
        for row in self.parts.servers.iter_mut().filter(|row| row.server_id.starts_with(prefix)) {
            row.current_reservation = Some(id.into());
        }
        self
    }

    pub fn build(self) -> RegionSnapshot {
        RegionSnapshot::new(self.parts).expect("a valid world")
    }
}

/// A reservation by name.
pub fn find(snapshot: &RegionSnapshot, id: &str) -> ReservationIx {
    snapshot.reservation(id).unwrap_or_else(|| panic!("no reservation {id}"))
}

/// Targets: today's, except for servers whose id begins with a prefix; `free` frees them.
pub fn targets(snapshot: &RegionSnapshot, given: &[(&str, &str)]) -> Targets {
    let mut holders = Targets::unchanged(snapshot).holders().to_vec();
    for &(prefix, id) in given {
        let holder = (id != "free").then(|| find(snapshot, id));
        for (server, target) in snapshot.servers.iter().zip(&mut holders) {
            if server.id.starts_with(prefix) {
                *target = holder;
            }
        }
    }
    Targets::new(snapshot, holders)
}

const TYPES: [&str; 3] = ["t0", "t1", "t2"];
const PLACES: [(&str, &str); 5] =
    [("dc0", "m0"), ("dc0", "m1"), ("dc1", "m2"), ("dc1", "m3"), ("dc2", "m4")];
/// Values with awkward decimals among them, so that rounding has something to do.
const VALUES: [f64; 5] = [0.5, 1.0, 1.25, 2.0, 0.958_984];
const RESERVATIONS: [&str; 5] = ["r0", "r1", "r2", "r3", "lent"];

/// The reservation that a row names: none half of the time.
fn anybody() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![Just(None), select(&RESERVATIONS[..4]).prop_map(Some)]
}

fn any_server() -> impl Strategy<Value = ServerRow> {
    (
        select(&PLACES[..]),
        0..2_usize,
        select(&TYPES[..]),
        anybody(),
        prop_oneof![3 => Just(None), 1 => anybody().prop_map(Some)],
        any::<bool>(),
        proptest::bool::weighted(0.1),
    )
        .prop_map(
            |((datacenter, msb), rack, hardware_type, holder, pending, in_use, loaned)| ServerRow {
                server_id: "".into(),
                datacenter: datacenter.into(),
                msb: msb.into(),
                rack: format!("{msb}-rack{rack}").into(),
                hardware_type: hardware_type.into(),
                current_reservation: holder.map(Into::into),
                target_reservation: pending.flatten().map(Into::into),
                target_pending: pending.is_some(),
                in_use,
                loaned_to: loaned.then(|| "lent".into()),
                power_watts: in_use.then_some(250.0),
            },
        )
}

/// The datacenters a reservation is held to: none half of the time.
const ALLOWED: [&[&str]; 6] = [&[], &[], &[], &["dc0"], &["dc1"], &["dc0", "dc2"]];

type Drawn = (ReservationRow, Vec<f64>, Vec<f64>, Vec<&'static str>);

fn any_reservation() -> impl Strategy<Value = Drawn> {
    let alpha = || proptest::option::weighted(0.3, select(&[0.1, 0.25, 0.333, 1.0][..]));
    let row = (
        0..24_u32,
        proptest::bool::weighted(0.8),
        0..3_i32,
        alpha(),
        alpha(),
        proptest::option::weighted(0.3, 0.0..0.5_f64),
        proptest::option::weighted(0.3, select(&[(1, 2), (1, 3), (2, 3), (3, 3)][..])),
    )
        .prop_map(
            |(half_units, msb_buffer, priority, msb_alpha, rack_alpha, affinity_theta, rule)| {
                ReservationRow {
                    reservation_id: "".into(),
                    owner: "owner".into(),
                    kind: "guaranteed".into(),
                    capacity_rru: f64::from(half_units) / 2.0,
                    msb_buffer,
                    priority,
                    msb_alpha,
                    rack_alpha,
                    affinity_theta,
                    host_profile: None,
                    replicas: rule.map(|(_, replicas)| replicas),
                    replicas_per_msb: rule.map(|(per_msb, _)| per_msb),
                }
            },
        );
    // Zero: not eligible.
    let values = proptest::collection::vec(
        prop_oneof![1 => Just(0.0), 2 => select(&VALUES[..])],
        TYPES.len(),
    );
    let shares = prop_oneof![
        2 => Just(Vec::new()),
        1 => proptest::collection::vec(0.0..0.5_f64, 1..3),
    ];
    let allowed = select(&ALLOWED[..]);
    (row, values, shares, allowed.prop_map(<[_]>::to_vec))
}

/// Regions of up to 40 servers and four guaranteed reservations, one elastic, with everything that
/// may be in a snapshot: moves under way, loans, events, affinity, shared buffers made or not.
pub fn any_world() -> impl Strategy<Value = SnapshotParts> {
    let servers = proptest::collection::vec(any_server(), 0..40);
    let reservations = proptest::collection::vec(any_reservation(), 4);
    let scopes = select(&[("msb", "m0"), ("rack", "m1-rack0"), ("server", "s03")][..]);
    let kinds = select(&["planned_maintenance", "random_failure", "correlated_failure"][..]);
    let events = proptest::collection::vec((scopes, kinds, -2..3_i64), 0..3);
    let fraction = select(&[None, Some(0.0), Some(0.1)][..]);
    let alphas = select(&[(None, None), (Some(0.4), None), (None, Some(0.2))][..]);
    let region = (fraction, alphas);
    (servers, reservations, events, region).prop_map(|(servers, rows, events, region)| {
        let mut world = World::new().valued("lent", "elastic", 0.0, &[]);
        let (fraction, (msb_alpha, rack_alpha)) = region;
        world.parts.shared_buffer_fraction = fraction;
        (world.parts.weights.msb_alpha, world.parts.weights.rack_alpha) = (msb_alpha, rack_alpha);
        for (number, mut row) in servers.into_iter().enumerate() {
            row.server_id = format!("s{number:02}").into();
            world.parts.servers.push(row);
        }
        for (id, (row, values, shares, mut allowed)) in RESERVATIONS.iter().zip(rows) {
            // A datacenter without servers would be refused.
            let servers = &world.parts.servers;
            allowed.retain(|dc| servers.iter().any(|server| &*server.datacenter == *dc));
            let values = TYPES.into_iter().zip(values).filter(|&(_, value)| value > 0.0);
            let values: Vec<(&str, f64)> = values.collect();
            world = world.valued(id, "guaranteed", row.capacity_rru, &values);
            let last = world.parts.reservations.last_mut().expect("just added");
            *last = ReservationRow { reservation_id: (*id).into(), ..row };
            for (datacenter, share) in ["dc0", "dc1"].into_iter().zip(shares) {
                // And so would a share where it is not allowed.
                if !(allowed.is_empty() || allowed.contains(&datacenter)) {
                    continue;
                }
                world = world.affinity(id, datacenter, share);
            }
            for datacenter in allowed {
                world = world.allow(id, datacenter);
            }
        }
        world.parts.allowed_datacenters.sort_by(|a, b| {
            (&a.reservation_id, &a.datacenter).cmp(&(&b.reservation_id, &b.datacenter))
        });
        for ((scope, id), kind, ends) in events {
            let there = world.parts.servers.iter().any(|row| {
                let of_scope = match scope {
                    "msb" => &*row.msb,
                    "rack" => &row.rack,
                    _ => &row.server_id,
                };
                of_scope == id
            });
            if there {
                world = world.event(scope, id, kind);
                let event = world.parts.unavailability.last_mut().expect("just added");
                event.ended_at = (ends != 0).then(|| noon() + hours(ends.max(-1)));
            }
        }
        world.parts
    })
}

/// A snapshot with targets drawn at random: most servers stay, some go anywhere at all.
pub fn any_assignment() -> impl Strategy<Value = (RegionSnapshot, Targets)> {
    let choices = proptest::collection::vec(
        (proptest::bool::weighted(0.5), proptest::option::of(any::<Index>())),
        40,
    );
    (any_world(), choices).prop_map(|(parts, choices)| {
        let snapshot = RegionSnapshot::new(parts).expect("drawn to be valid");
        let mut holders = Targets::unchanged(&snapshot).holders().to_vec();
        for (holder, (changes, to)) in holders.iter_mut().zip(choices) {
            if changes {
                let to = to.map(|to| to.index(snapshot.reservations.len()));
                *holder = to.map(ReservationIx::new);
            }
        }
        let targets = Targets::new(&snapshot, holders);
        (snapshot, targets)
    })
}
