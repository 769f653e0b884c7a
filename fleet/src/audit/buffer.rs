//! The embedded buffer (RAS, SOSP'21, eq. 4 and 6) and what it can be at best.

use super::promised;
use super::report::{BufferBounds, BufferShare, ReservationAudit};
use crate::id::DatacenterIx;
use crate::reservation::{Reservation, ReservationKind};
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;

/// Available servers by MSB and hardware type.
pub(super) struct Hardware {
    types: usize,
    /// MSB by MSB, one count per type.
    counts: Vec<usize>,
    /// The datacenter of each MSB.
    datacenters: Vec<DatacenterIx>,
}

impl Hardware {
    pub(super) fn count(snapshot: &RegionSnapshot) -> Hardware {
        let types = snapshot.hardware_types.len();
        let mut counts = vec![0; snapshot.msbs.len() * types];
        for server in snapshot.servers.iter().filter(|server| server.available) {
            counts[snapshot.msb_of(server).ix() * types + server.hardware_type.ix()] += 1;
        }
        let datacenters = snapshot.msbs.iter().map(|msb| msb.datacenter).collect();
        Hardware { types, counts, datacenters }
    }

    /// What the eligible hardware of each MSB is worth to a reservation.
    fn worth(&self, reservation: &Reservation) -> Vec<Rru> {
        let worth = |(msb, &datacenter): (&[usize], &DatacenterIx)| {
            if !reservation.allows(datacenter) {
                return Rru::ZERO;
            }
            reservation.rru.iter().map(|&(ty, value)| value.times(msb[ty.ix()])).sum()
        };
        self.counts.chunks(self.types.max(1)).zip(&self.datacenters).map(worth).collect()
    }

    /// MSBs with at least one available server.
    fn msbs_in_use(&self) -> usize {
        let has_any = |msb: &&[usize]| msb.iter().any(|&count| count > 0);
        self.counts.chunks(self.types.max(1)).filter(has_any).count()
    }

    /// The smallest largest-MSB share with which the reservation alone in the region could have
    /// `amount` guaranteed. Whole servers count: every sum is a multiple of the greatest common
    /// divisor of the values. Zero for a reservation without embedded buffer.
    pub(super) fn smallest_buffer_of(&self, reservation: &Reservation, amount: Rru) -> Rru {
        if !reservation.msb_buffer {
            return Rru::ZERO;
        }
        smallest_buffer(&self.worth(reservation), amount, unit(reservation)).unwrap_or(Rru::ZERO)
    }

    /// The buffers of the region against their bounds.
    pub(super) fn share(
        &self,
        snapshot: &RegionSnapshot,
        rows: &[ReservationAudit],
    ) -> BufferShare {
        let msbs = self.msbs_in_use();
        let (mut buffer, mut initial, mut capacity) = (Rru::ZERO, Rru::ZERO, Rru::ZERO);
        let (mut even, mut even_eligible, mut hardware) = (0.0, 0.0, Rru::ZERO);
        for (row, reservation) in rows.iter().zip(&snapshot.reservations) {
            if !(row.kind == ReservationKind::Guaranteed && row.msb_buffer) {
                continue;
            }
            buffer += row.holding.largest_msb;
            initial += row.initial.largest_msb;
            capacity += row.capacity;
            hardware += row.smallest_buffer;
            let eligible = self.worth(reservation).iter().filter(|&&w| w > Rru::ZERO).count();
            even += over_others(promised(row), msbs);
            even_eligible += over_others(promised(row), eligible);
        }
        let of_capacity =
            |rru: f64| if capacity > Rru::ZERO { rru / capacity.to_f64() } else { 0.0 };
        BufferShare {
            buffer,
            capacity,
            share: of_capacity(buffer.to_f64()),
            initial_share: of_capacity(initial.to_f64()),
            bounds: BufferBounds {
                even: of_capacity(even),
                even_eligible: of_capacity(even_eligible),
                hardware: of_capacity(hardware.to_f64()),
            },
        }
    }
}

/// The share of one MSB where `amount` must be left on `msbs - 1` others, equally full.
fn over_others(amount: Rru, msbs: usize) -> f64 {
    if msbs <= 1 { 0.0 } else { amount.to_f64() / (msbs - 1) as f64 }
}

/// What every sum of whole servers is a multiple of: the greatest common divisor of the values.
pub(crate) fn unit(reservation: &Reservation) -> Rru {
    fn gcd(a: i64, b: i64) -> i64 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    Rru(reservation.rru.iter().fold(0, |unit, &(_, value)| gcd(unit, value.0)).max(1))
}

/// The smallest `t`, a multiple of `unit`, with `sum of min(worth, t) - t >= amount`: the smallest
/// largest MSB with which `amount` is left after its loss. `None` if no `t` will do.
///
/// The left side grows with `t` until all but the fullest MSB are used up, so between two
/// neighbouring values of `worth` it is one line, and the first that reaches the amount is it.
pub(crate) fn smallest_buffer(worth: &[Rru], amount: Rru, unit: Rru) -> Option<Rru> {
    let up = |x: i64| x.div_euclid(unit.0) + i64::from(x.rem_euclid(unit.0) > 0);
    let amount = up(amount.0.max(0)) * unit.0;
    let mut worth: Vec<i64> = worth.iter().map(|w| w.0).collect();
    worth.sort_unstable();
    if amount == 0 {
        return Some(Rru::ZERO);
    }
    let mut used_up = 0;
    for (position, &full) in worth.iter().enumerate() {
        // With t between the MSB before and this one: used_up + (others + 1) t - t.
        let others = (worth.len() - position) as i64 - 1;
        if others > 0 {
            let level = (amount - used_up + others - 1) / others;
            if level <= full {
                return Some(Rru(up(level) * unit.0));
            }
        }
        used_up += full;
    }
    None
}

/// What is left after the loss of any one MSB, at best, to reservations with embedded buffer that
/// share hardware of this worth by MSB with `unbuffered` RRU of others that need none.
///
/// The others take from the fullest MSBs first: they level the top to `t`, and the loss of an MSB
/// of `t` must then be covered. Without them this is all but the fullest MSB.
pub(crate) fn usable_beside(worth: &[Rru], unbuffered: Rru) -> Rru {
    let mut worth: Vec<i64> = worth.iter().map(|w| w.0).collect();
    worth.sort_unstable_by(|a, b| b.cmp(a));
    let total: i64 = worth.iter().sum();
    let Some(&fullest) = worth.first() else { return Rru::ZERO };
    if unbuffered.0 >= total {
        return Rru::ZERO;
    }
    let (mut level, mut to_take) = (fullest, unbuffered.0);
    for position in 0..worth.len() {
        let wide = position as i64 + 1;
        let next = worth.get(position + 1).copied().unwrap_or(0);
        let step = wide * (level - next);
        if to_take <= step {
            level -= to_take / wide;
            break;
        }
        to_take -= step;
        level = next;
    }
    Rru(total - unbuffered.0 - level).or_zero()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rru(amounts: &[i64]) -> Vec<Rru> {
        amounts.iter().map(|&amount| Rru(amount)).collect()
    }

    /// The definition, tried for every t.
    fn smallest_by_trial(worth: &[Rru], amount: i64) -> Option<Rru> {
        let top = worth.iter().map(|w| w.0).max().unwrap_or(0);
        let left = |t: i64| worth.iter().map(|w| w.0.min(t)).sum::<i64>() - t;
        (0..=top).find(|&t| left(t) >= amount).map(Rru)
    }

    #[test]
    fn eight_in_each_of_four_msbs_leave_twenty_four() {
        let worth = rru(&[10, 10, 10, 10]);
        assert_eq!(smallest_buffer(&worth, Rru(24), Rru(1)), Some(Rru(8)));
    }

    #[test]
    fn one_msb_guarantees_nothing() {
        assert_eq!(smallest_buffer(&rru(&[100]), Rru(1), Rru(1)), None);
        assert_eq!(usable_beside(&rru(&[100]), Rru::ZERO), Rru::ZERO);
        assert_eq!(usable_beside(&[], Rru::ZERO), Rru::ZERO);
    }

    #[test]
    fn whole_servers_count() {
        // 5 RRU of servers worth 2 are 6; three MSBs: 3 and 3 left of 4, 4, 4 is the least.
        let worth = rru(&[20, 20, 20]);
        assert_eq!(smallest_buffer(&worth, Rru(5), Rru(2)), Some(Rru(4)));
    }

    #[test]
    fn smallest_buffer_agrees_with_trial() {
        let worlds: [&[i64]; 6] =
            [&[], &[0, 0], &[3, 9, 9], &[1, 2, 3, 4, 50], &[7, 7, 7, 7], &[0, 5, 5]];
        for world in worlds {
            let worth = rru(world);
            for amount in 0..=30 {
                let found = smallest_buffer(&worth, Rru(amount), Rru(1));
                let expected = smallest_by_trial(&worth, amount);
                assert_eq!(found, expected, "{world:?} {amount}");
            }
        }
    }

    #[test]
    fn usable_beside_agrees_with_trial() {
        let worlds: [&[i64]; 4] = [&[3, 9, 9], &[1, 2, 3, 4, 50], &[7, 7, 7, 7], &[0, 5, 6]];
        for world in worlds {
            let worth = rru(world);
            let total: i64 = world.iter().sum();
            for unbuffered in 0..total {
                // Every level t: the others may take at least what is above it.
                let best = (0..=total)
                    .filter(|&t| world.iter().map(|w| (w - t).max(0)).sum::<i64>() <= unbuffered)
                    .map(|t| total - unbuffered - t)
                    .max();
                let best = Rru(best.unwrap_or(0)).or_zero();
                assert_eq!(usable_beside(&worth, Rru(unbuffered)), best, "{world:?} {unbuffered}");
            }
        }
    }
}
