//! Greedy assignment, as a rival to measure against: what stood before RAS.
//!
//! The paper (RAS, SOSP'21, section 4.2) starts from "greedy server assignment as described in Twine"
//! and says of it only where it led: 15.1 % of a service's servers in one MSB, and servers moved
//! between services by hand. The rest is chosen here, in favour of the greedy one where in doubt:
//!
//! - Reservations come one after another, the most important first, then in order of name, which
//!   stands for that of arrival; shared buffers and elastic reservations after the rest.
//! - Each keeps what it holds, and takes free servers that fit until eq. 6 holds: its capacity is
//!   there even without its largest MSB. Those that need less than they hold give idle servers
//!   back, the last by id first, before any reservation takes some.
//! - Servers are taken rack by rack, the rack with most free ones that fit first and within it by
//!   id. Neither MSBs nor shares are looked at, so prices, spread (eq. 2, 3) and affinity (eq. 7)
//!   are not either. Racks in order of MSB would give a reservation one whole MSB after another,
//!   and half of it would lie in one.
//! - Once the capacity itself is there, servers in the MSB that holds most bring nothing, and none
//!   are taken there.
//!
//! No reservation gives up servers for others: one that finds too few free servers stays short.

use fleet::{RegionSnapshot, Reservation, ReservationIx, ReservationKind, Rru, Targets};

/// Who should hold each server, by greedy assignment.
pub fn assign(snapshot: &RegionSnapshot) -> Targets {
    let mut holders = Targets::unchanged(snapshot).holders().to_vec();
    let mut order: Vec<usize> = (0..snapshot.reservations.len()).collect();
    order.sort_by_key(|&ix| {
        let of = &snapshot.reservations[ix];
        (of.kind, of.priority, ix)
    });
    let mut needs: Vec<Need> = (0..snapshot.reservations.len())
        .map(|ix| Need::new(snapshot, ReservationIx::new(ix)))
        .collect();
    for (server, holder) in snapshot.servers.iter().zip(&holders) {
        if let (Some(holder), true) = (holder, server.available) {
            let value = snapshot.value(server, *holder);
            needs[holder.ix()].add(snapshot.msb_of(server).ix(), value);
        }
    }
    let servers = Servers::new(snapshot);
    for &ix in &order {
        give_back(snapshot, &mut needs[ix], &mut holders, ReservationIx::new(ix));
    }
    for &ix in &order {
        if snapshot.reservations[ix].kind != ReservationKind::Elastic {
            take(snapshot, &servers, &mut needs[ix], &mut holders, ReservationIx::new(ix));
        }
    }
    Targets::new(snapshot, holders)
}

/// What a reservation has, and whether that is enough.
struct Need {
    capacity: Rru,
    buffered: bool,
    by_msb: Vec<Rru>,
    total: Rru,
}

impl Need {
    fn new(snapshot: &RegionSnapshot, ix: ReservationIx) -> Need {
        let Reservation { capacity, msb_buffer, .. } = snapshot.reservations[ix.ix()];
        let by_msb = vec![Rru::ZERO; snapshot.msbs.len()];
        Need { capacity, buffered: msb_buffer, by_msb, total: Rru::ZERO }
    }

    fn add(&mut self, msb: usize, value: Rru) {
        self.by_msb[msb] += value;
        self.total += value;
    }

    fn remove(&mut self, msb: usize, value: Rru) {
        self.by_msb[msb] -= value;
        self.total -= value;
    }

    fn largest(&self) -> Rru {
        self.by_msb.iter().copied().max().unwrap_or(Rru::ZERO)
    }

    /// Eq. 6.
    fn is_met(&self) -> bool {
        let lost = if self.buffered { self.largest() } else { Rru::ZERO };
        self.total - lost >= self.capacity
    }

    /// Whether a server of an MSB brings eq. 6 nearer.
    fn gains_in(&self, msb: usize) -> bool {
        !self.buffered || self.total < self.capacity || self.by_msb[msb] < self.largest()
    }
}

/// Available servers by rack, in order of id.
struct Servers {
    by_rack: Vec<Vec<u32>>,
}

impl Servers {
    fn new(snapshot: &RegionSnapshot) -> Servers {
        let mut by_rack = vec![Vec::new(); snapshot.racks.len()];
        for (position, server) in (0_u32..).zip(&snapshot.servers) {
            if server.available {
                by_rack[server.rack.ix()].push(position);
            }
        }
        Servers { by_rack }
    }
}

/// Frees idle servers that a reservation no longer needs.
fn give_back(
    snapshot: &RegionSnapshot,
    need: &mut Need,
    holders: &mut [Option<ReservationIx>],
    ix: ReservationIx,
) {
    if snapshot.reservations[ix.ix()].kind == ReservationKind::Elastic {
        return;
    }
    for position in (0..holders.len()).rev() {
        let server = &snapshot.servers[position];
        if holders[position] != Some(ix) || !server.available || server.in_use {
            continue;
        }
        if !need.is_met() {
            return;
        }
        let (msb, value) = (snapshot.msb_of(server).ix(), snapshot.value(server, ix));
        need.remove(msb, value);
        if need.is_met() {
            holders[position] = None;
        } else {
            need.add(msb, value);
        }
    }
}

/// Takes free servers, rack by rack, until eq. 6 holds or all are taken.
fn take(
    snapshot: &RegionSnapshot,
    servers: &Servers,
    need: &mut Need,
    holders: &mut [Option<ReservationIx>],
    ix: ReservationIx,
) {
    let fits = |position: u32, holders: &[Option<ReservationIx>]| {
        let value = snapshot.value(&snapshot.servers[position as usize], ix);
        (value > Rru::ZERO && holders[position as usize].is_none()).then_some(value)
    };
    let mut racks: Vec<(usize, usize)> = (servers.by_rack.iter().enumerate())
        .map(|(rack, of)| (rack, of.iter().filter(|&&s| fits(s, holders).is_some()).count()))
        .filter(|&(_, free)| free > 0)
        .collect();
    racks.sort_by_key(|&(rack, free)| (std::cmp::Reverse(free), rack));
    for (rack, _) in racks {
        let msb = snapshot.racks[rack].msb.ix();
        for &server in &servers.by_rack[rack] {
            if need.is_met() {
                return;
            }
            if !need.gains_in(msb) {
                break;
            }
            if let Some(value) = fits(server, holders) {
                holders[server as usize] = Some(ix);
                need.add(msb, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleet::audit::audit;
    use fleet::{ReservationRow, SnapshotParts};
    use testkit::rows::{parts, reservation, rru, server};

    /// Free servers of one type: how many are in each rack of each MSB.
    fn region(msbs: &[&[usize]], requests: &[(&str, f64, i32)]) -> SnapshotParts {
        let mut parts = parts();
        for (m, racks) in msbs.iter().enumerate() {
            for (k, &count) in racks.iter().enumerate() {
                let (msb, rack) = (format!("m{m}"), format!("r{m}{k}"));
                let id = |s: usize| format!("s{m}{k}{s:02}");
                parts.servers.extend((0..count).map(|s| server(&id(s), ("dc", &msb, &rack), "t")));
            }
        }
        for &(id, capacity_rru, priority) in requests {
            let row = ReservationRow { priority, ..reservation(id, capacity_rru) };
            parts.reservations.push(row);
            parts.rru.push(rru(id, "t", 1.0));
        }
        parts
    }

    fn snapshot(parts: SnapshotParts) -> RegionSnapshot {
        RegionSnapshot::new(parts).expect("a valid region")
    }

    /// Servers by MSB of a reservation.
    fn held(snapshot: &RegionSnapshot, targets: &Targets, id: &str) -> Vec<usize> {
        let ix = snapshot.reservation(id);
        let mut by_msb = vec![0; snapshot.msbs.len()];
        for (server, holder) in snapshot.servers.iter().zip(targets.holders()) {
            by_msb[snapshot.msb_of(server).ix()] += usize::from(holder.is_some() && *holder == ix);
        }
        by_msb
    }

    #[test]
    fn the_fullest_rack_first_until_the_loss_of_the_largest_msb_is_survived() {
        let region = snapshot(region(&[&[3], &[5], &[4]], &[("a", 6.0, 0)]));
        let targets = assign(&region);
        // Five of the second, one of the third: capacity. Then outside the largest: five more
        // there and in the first.
        assert_eq!(held(&region, &targets, "a"), [2, 5, 4]);
        let audit = audit(&region, &targets);
        assert!(audit.is_clean() && audit.shortfall == Rru::ZERO);
    }

    #[test]
    fn the_more_important_comes_first_and_the_other_stays_short() {
        let region = snapshot(region(&[&[4], &[4]], &[("a", 4.0, 1), ("b", 4.0, 0)]));
        let targets = assign(&region);
        assert_eq!(held(&region, &targets, "b"), [4, 4]);
        assert_eq!(held(&region, &targets, "a"), [0, 0]);
    }

    #[test]
    fn what_is_held_stays_and_idle_surplus_goes_back_first() {
        let mut parts = region(&[&[4], &[4]], &[("a", 2.0, 1), ("b", 2.0, 0)]);
        for (position, server) in parts.servers.iter_mut().enumerate() {
            server.current_reservation = Some("a".into());
            server.in_use = position % 4 == 0;
        }
        let region = snapshot(parts);
        let targets = assign(&region);
        assert_eq!(held(&region, &targets, "a"), [2, 2]);
        assert_eq!(held(&region, &targets, "b"), [2, 2]);
        assert!(targets.diff(&region).all(|step| !step.in_use));
    }

    #[test]
    fn servers_that_do_not_fit_or_are_out_of_use_are_not_taken() {
        let mut parts = region(&[&[2], &[2]], &[("a", 2.0, 0)]);
        parts.servers[0].hardware_type = "other".into();
        parts.unavailability.push(fleet::UnavailabilityRow {
            event_id: "e".into(),
            scope: "server".into(),
            scope_id: "s1000".into(),
            kind: "random_failure".into(),
            started_at: parts.taken_at,
            ended_at: None,
            recall_minutes: None,
        });
        let region = snapshot(parts);
        let targets = assign(&region);
        assert_eq!(held(&region, &targets, "a"), [1, 1]);
        assert_eq!(audit(&region, &targets).shortfall, Rru::units(1));
    }
}
