//! Whether given servers can satisfy an ask: found by construction, so a yes is a proof.

use crate::reservation::ReplicaRule;
use crate::rru::Rru;

/// Capacities tried downwards before the search halves its step: fine enough for an offer to an
/// owner, and cheap.
const TRIALS: i64 = 256;

/// Servers to choose from in one MSB.
#[derive(Clone, Debug, Default)]
pub(super) struct OfferMsb {
    /// The datacenter it lies in.
    pub(super) datacenter: usize,
    /// Value and number of servers, the most valuable first.
    pub(super) servers: Vec<(Rru, usize)>,
}

impl OfferMsb {
    fn worth(&self) -> Rru {
        self.servers.iter().map(|&(value, count)| value.times(count)).sum()
    }
}

/// Servers to choose from.
#[derive(Clone, Debug, Default)]
pub(super) struct Offer {
    pub(super) msbs: Vec<OfferMsb>,
    pub(super) datacenters: usize,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) capacity: Rru,
    pub(super) msb_buffer: bool,
    /// A by datacenter, and theta; `None` without affinity.
    pub(super) affinity: Option<(Vec<f64>, f64)>,
    /// The part k/n of the capacity that one MSB may hold; `None` without replica rule.
    pub(super) replicas: Option<ReplicaRule>,
}

impl Ask {
    pub(super) fn of(&self, capacity: Rru) -> Ask {
        Ask { capacity, ..self.clone() }
    }

    /// Whether it asks where servers are.
    fn is_placed(&self) -> bool {
        self.affinity.is_some() || self.replicas.is_some()
    }

    fn msb_max(&self) -> Rru {
        self.replicas.map_or(Rru(i64::MAX), |rule| rule.msb_max(self.capacity))
    }
}

/// Bounds of eq. 7 in one datacenter.
#[derive(Clone, Copy, Debug)]
struct Window {
    least: Rru,
    most: Rru,
    /// Whether the embedded buffer may come on top.
    with_buffer: bool,
}

impl Window {
    const OPEN: Window = Window { least: Rru::ZERO, most: Rru(i64::MAX), with_buffer: false };

    /// The most RRU beside an embedded buffer.
    fn most_beside(&self, buffer: Rru) -> Rru {
        if self.with_buffer { Rru(self.most.0.saturating_add(buffer.0)) } else { self.most }
    }
}

impl Offer {
    /// RRU in each MSB.
    pub(super) fn worth(&self) -> Vec<Rru> {
        self.msbs.iter().map(OfferMsb::worth).collect()
    }

    /// What all of it guarantees: everything, but for the fullest MSB where its loss must be
    /// survived. No choice among the servers guarantees more.
    pub(super) fn guaranteed(&self, msb_buffer: bool) -> Rru {
        let worth = self.worth();
        let total: Rru = worth.iter().copied().sum();
        if msb_buffer { total - worth.into_iter().max().unwrap_or_default() } else { total }
    }

    /// Whether some choice of the servers satisfies the ask (eq. 6 and 7 and the replica rule). Without
    /// affinity and replica rule the answer is exact; with them, a yes is proved by a choice that was
    /// made, and a no means that choosing greedily at a handful of levels found none.
    pub(super) fn grants(&self, ask: &Ask) -> bool {
        if self.guaranteed(ask.msb_buffer) < ask.capacity {
            return false;
        }
        if !ask.is_placed() {
            return true;
        }
        let windows = self.windows(ask);
        self.levels(ask, &windows).into_iter().any(|level| self.chooses(ask, &windows, level))
    }

    fn windows(&self, ask: &Ask) -> Vec<Window> {
        let Some((shares, theta)) = &ask.affinity else {
            return vec![Window::OPEN; self.datacenters];
        };
        let window = |&share: &f64| Window {
            with_buffer: ask.msb_buffer && share > 0.0,
            ..window(share, *theta, ask.capacity)
        };
        shares.iter().map(window).collect()
    }

    /// The largest capacity that can be granted in place of the ask's own.
    pub(super) fn at_best(&self, ask: &Ask) -> Rru {
        let limit = self.guaranteed(ask.msb_buffer).min(ask.capacity);
        if !ask.is_placed() || self.grants(&ask.of(limit)) {
            return limit;
        }
        // Eq. 7 scales with the capacity, and whole servers may fit it at one capacity and not at
        // a smaller one. So whole servers are tried downwards, then halves of the last step.
        let server = self.msbs.iter().flat_map(|msb| &msb.servers).map(|&(value, _)| value.0);
        let server = server.min().unwrap_or(1);
        let step = (limit.0 / TRIALS / server + 1) * server;
        let mut tried = (1..=limit.0 / step).rev().map(|steps| steps * step);
        let mut granted = tried.find(|&c| self.grants(&ask.of(Rru(c)))).unwrap_or(0);
        let mut refused = (granted + step).min(limit.0);
        while refused - granted > 1 {
            let middle = granted + (refused - granted) / 2;
            if self.grants(&ask.of(Rru(middle))) { granted = middle } else { refused = middle }
        }
        Rru(granted)
    }

    /// Largest MSB shares worth trying: the least that could do if servers were divisible, some
    /// whole servers more, and no limit. Empty if even divisible servers would not do.
    fn levels(&self, ask: &Ask, windows: &[Window]) -> Vec<Rru> {
        let worth = self.worth();
        let highest = worth.iter().copied().max().unwrap_or_default().min(ask.msb_max());
        let left = |level: i64| self.divisible(ask, windows, &worth, level);
        if !ask.msb_buffer {
            return if left(highest.0) >= ask.capacity.0 { vec![highest] } else { Vec::new() };
        }
        // `left` is concave: find its peak, then the first level that reaches the ask below it.
        let (mut low, mut high) = (0, highest.0);
        while high - low > 2 {
            let third = (high - low) / 3;
            let (a, b) = (low + third, high - third);
            if left(a) < left(b) { low = a + 1 } else { high = b }
        }
        let peak = (low..=high).max_by_key(|&level| left(level)).unwrap_or(low);
        if left(peak) < ask.capacity.0 {
            return Vec::new();
        }
        let (mut low, mut high) = (0, peak);
        while low < high {
            let middle = low + (high - low) / 2;
            if left(middle) >= ask.capacity.0 { high = middle } else { low = middle + 1 }
        }
        let server = self.msbs.iter().flat_map(|msb| &msb.servers).map(|&(value, _)| value.0);
        let server = server.max().unwrap_or(0);
        let mut levels: Vec<Rru> = [low, low + server / 2, low + server, low + 2 * server, peak]
            .into_iter()
            .map(|level| Rru(level).min(highest))
            .chain([highest])
            .collect();
        levels.sort_unstable();
        levels.dedup();
        levels
    }

    /// What divisible servers leave guaranteed if no MSB holds more than `level`.
    fn divisible(&self, ask: &Ask, windows: &[Window], worth: &[Rru], level: i64) -> i64 {
        let mut sums = vec![0_i64; self.datacenters];
        for (msb, worth) in self.msbs.iter().zip(worth) {
            sums[msb.datacenter] += worth.0.min(level);
        }
        let most = |w: &Window| w.most_beside(Rru(level)).0;
        let total: i64 = sums.iter().zip(windows).map(|(&sum, w)| sum.min(most(w))).sum();
        if ask.msb_buffer { total - level } else { total }
    }

    /// Chooses: in each datacenter the emptiest MSB takes the most valuable server that fits under
    /// the level and the datacenter's bound, until none fits. Then checks the choice itself.
    fn chooses(&self, ask: &Ask, windows: &[Window], level: Rru) -> bool {
        let mut left: Vec<Vec<(Rru, usize)>> =
            self.msbs.iter().map(|msb| msb.servers.clone()).collect();
        let mut filled = vec![Rru::ZERO; self.msbs.len()];
        for (datacenter, window) in windows.iter().enumerate() {
            let mut sum = Rru::ZERO;
            loop {
                let most = window.most_beside(level);
                let room = |msb: usize| (level - filled[msb]).min(most - sum);
                let fitting = (0..self.msbs.len())
                    .filter(|&msb| self.msbs[msb].datacenter == datacenter)
                    .filter_map(|msb| {
                        let fits = |&(value, count): &(Rru, usize)| count > 0 && value <= room(msb);
                        left[msb].iter().position(fits).map(|server| (filled[msb], msb, server))
                    })
                    .min();
                let Some((_, msb, server)) = fitting else { break };
                let (value, count) = &mut left[msb][server];
                *count -= 1;
                sum += *value;
                filled[msb] += *value;
            }
            if sum < window.least {
                return false;
            }
        }
        let total: Rru = filled.iter().copied().sum();
        let largest = filled.iter().copied().max().unwrap_or_default();
        // The level may not have been reached: then the buffer is smaller than was thought.
        let mut sums = vec![Rru::ZERO; self.datacenters];
        for (msb, amount) in self.msbs.iter().zip(&filled) {
            sums[msb.datacenter] += *amount;
        }
        if sums.iter().zip(windows).any(|(&sum, window)| sum > window.most_beside(largest)) {
            return false;
        }
        let guaranteed = if ask.msb_buffer { total - largest } else { total };
        guaranteed >= ask.capacity
    }
}

/// (A - theta) C to (A + theta) C, inside to whole micro-RRU.
fn window(share: f64, theta: f64, capacity: Rru) -> Window {
    let bound = |share: f64| share.max(0.0) * capacity.0 as f64;
    // Products that should be whole may miss it by their last bits.
    let slack = 1e-3;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "shares and theta of a capacity; saturates"
    )]
    Window {
        least: Rru((bound(share - theta) - slack).ceil() as i64),
        most: Rru((bound(share + theta) + slack).floor() as i64),
        with_buffer: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(msbs: &[(usize, &[(i64, usize)])]) -> Offer {
        let msb = |&(datacenter, servers): &(usize, &[(i64, usize)])| OfferMsb {
            datacenter,
            servers: servers
                .iter()
                .map(|&(value, count)| (Rru::units(value as usize), count))
                .collect(),
        };
        Offer {
            datacenters: msbs.iter().map(|&(datacenter, _)| datacenter + 1).max().unwrap_or(0),
            msbs: msbs.iter().map(msb).collect(),
        }
    }

    fn ask(capacity: usize, affinity: Option<(Vec<f64>, f64)>) -> Ask {
        Ask { capacity: Rru::units(capacity), msb_buffer: true, affinity, replicas: None }
    }

    #[test]
    fn eq_6_needs_all_but_the_fullest() {
        let offer = offer(&[(0, &[(1, 8)]), (0, &[(1, 8)]), (1, &[(1, 20)])]);
        assert!(offer.grants(&ask(16, None)));
        assert!(!offer.grants(&ask(17, None)));
        assert_eq!(offer.at_best(&ask(100, None)), Rru::units(16));
    }

    #[test]
    fn eq_7_bounds_each_datacenter() {
        // Half of 12 in each of two datacenters; datacenter 1 has one MSB of 20 and one of 4.
        let offer = offer(&[(0, &[(1, 8)]), (0, &[(1, 8)]), (1, &[(1, 20)]), (1, &[(1, 4)])]);
        assert!(offer.grants(&ask(12, Some((vec![0.5, 0.5], 0.05)))));
        // Everything in datacenter 1: its smaller MSB alone survives.
        assert!(!offer.grants(&ask(12, Some((vec![0.0, 1.0], 0.05)))));
        let best = offer.at_best(&ask(12, Some((vec![0.0, 1.0], 0.05))));
        assert_eq!(best, Rru::units(4));
    }

    #[test]
    fn shares_are_of_the_capacity_and_the_buffer_is_apart() {
        // All of 12 in datacenter 0, whose four MSBs hold ten each: 12 and a buffer of 4 fit.
        let ten: &[(i64, usize)] = &[(1, 10)];
        let offer = offer(&[(0, ten), (0, ten), (0, ten), (0, ten), (1, ten), (1, ten)]);
        assert!(offer.grants(&ask(12, Some((vec![1.0, 0.0], 0.0)))));
        assert!(offer.grants(&ask(30, Some((vec![1.0, 0.0], 0.0)))));
        assert!(!offer.grants(&ask(31, Some((vec![1.0, 0.0], 0.0)))));
    }

    #[test]
    fn replicas_bound_each_msb() {
        let ten: &[(i64, usize)] = &[(1, 10)];
        let rule = |per_msb, replicas| Some(ReplicaRule { replicas, per_msb });
        let no_buffer =
            |capacity, replicas| Ask { msb_buffer: false, replicas, ..ask(capacity, None) };
        let three = offer(&[(0, ten), (0, ten), (1, ten)]);
        assert!(three.grants(&no_buffer(30, rule(1, 3))));
        // Of ten, three in each of three MSBs: one is left over.
        assert!(!three.grants(&no_buffer(10, rule(1, 3))));
        assert_eq!(three.at_best(&no_buffer(10, rule(1, 3))), Rru::units(9));
        assert!(!offer(&[(0, ten), (1, ten)]).grants(&no_buffer(6, rule(1, 3))));
        assert!(offer(&[(0, ten), (1, ten)]).grants(&no_buffer(6, rule(2, 3))));
    }

    #[test]
    fn eq_7_asks_for_each_datacenter() {
        // All ten are there, but not the half that is wanted in datacenter 1 as well.
        let offer = offer(&[(0, &[(1, 20)]), (1, &[(1, 4)])]);
        let no_buffer =
            |share| Ask { msb_buffer: false, ..ask(10, Some((vec![1.0, share], 0.05))) };
        assert!(!offer.grants(&no_buffer(0.5)));
        assert!(offer.grants(&no_buffer(0.4)));
    }

    #[test]
    fn the_choice_respects_whole_servers() {
        // 4 RRU with at most 4.2 in the only datacenter: servers of 3 do not fit twice.
        let shares = Some((vec![1.0], 0.05));
        let no_buffer = |servers| Ask { msb_buffer: false, ..ask(servers, shares.clone()) };
        let offer = offer(&[(0, &[(3, 5)])]);
        assert!(!offer.grants(&no_buffer(4)));
        assert!(offer.grants(&no_buffer(3)));
    }
}
