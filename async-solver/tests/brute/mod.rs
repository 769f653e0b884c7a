//! Phase 1 by definition: what an assignment of single servers is missing at each level of priority
//! and what it costs, and the best over all, in that order.
//!
//! Written from the expressions, not from the solver: amounts are summed server by server. Only
//! the prices of shortfalls, for [`Phase1::optimum`], are the solver's ([`Model`]).
//!
//! Phase 1 does not choose servers: of each group of servers alike a reservation has a number, and what these
//! cost by expressions 1 and 2 is the least over all choices of that number of servers of the group, as if
//! no other reservation used its racks. [`Phase1::whole`] is the objective itself, of the servers chosen.

use async_solver::model::Model;
use fleet::{
    MsbIx, RegionSnapshot, Reservation, ReservationIx, ReservationKind, Rru, Server, Targets,
};
use std::collections::{BTreeMap, BTreeSet};

type Holders = [Option<ReservationIx>];

/// One reservation's part of the objective.
struct Part {
    /// RRU above which an MSB costs beta each; `None`: eq. 3 does not apply.
    spread_limit: Option<Rru>,
    price: f64,
    /// Position of its priority among all, and what a micro-RRU missing weighs in it.
    level: usize,
    weight: i128,
    /// Datacenter, least and most RRU there, and whether the embedded buffer may come on top.
    affinity: Vec<(usize, Rru, Rru, bool)>,
    /// The most RRU in one MSB by the replica rule.
    msb_max: Option<Rru>,
    /// RRU above which a rack costs beta each; `None`: eq. 2 does not apply.
    rack_limit: Option<Rru>,
    /// By group and number of servers: the least of expressions 1 and 2.
    servers: Vec<Vec<f64>>,
    /// Today's shortfall, what is above the replica rule, and distances from the affinity ranges.
    today: Vec<Rru>,
}

/// What a reservation has.
struct Amounts {
    /// In each MSB.
    by_msb: Vec<Rru>,
    /// The most in a domain of the partitions that it survives besides MSBs.
    in_domain: Rru,
}

/// Knows the objective of phase 1 of one snapshot.
pub struct Phase1<'a> {
    snapshot: &'a RegionSnapshot,
    parts: Vec<Part>,
    /// Available servers of one MSB that every reservation values alike.
    groups: Vec<Vec<usize>>,
}

fn amount(rru: f64) -> Rru {
    Rru::from_f64(rru).expect("worlds are small")
}

/// V of a server, where the type is eligible and the datacenter is one that it is held to.
fn value(snapshot: &RegionSnapshot, server: &Server, of: ReservationIx) -> Rru {
    let of = &snapshot.reservations[of.ix()];
    let rack = &snapshot.racks[server.rack.ix()];
    let datacenter = snapshot.msbs[rack.msb.ix()].datacenter;
    let anywhere = of.allowed_datacenters.is_empty();
    if !(anywhere || of.allowed_datacenters.contains(&datacenter)) {
        return Rru::ZERO;
    }
    let of_type = of.rru.iter().find(|(ty, _)| *ty == server.hardware_type);
    of_type.map_or(Rru::ZERO, |(_, value)| *value)
}

impl<'a> Phase1<'a> {
    pub fn new(snapshot: &'a RegionSnapshot) -> Phase1<'a> {
        let model = Model::new(snapshot);
        let mut phase1 = Phase1 { snapshot, parts: Vec::new(), groups: groups(snapshot) };
        for (number, term) in model.terms.iter().enumerate() {
            let part = phase1.part(ReservationIx::new(number), term.short_price);
            phase1.parts.push(part);
        }
        let today = Targets::unchanged(snapshot);
        let broken: Vec<Vec<Rru>> = (0..phase1.parts.len())
            .map(|number| phase1.broken(number, &phase1.amounts(today.holders())[number]))
            .collect();
        let servers: Vec<Vec<Vec<f64>>> = (0..phase1.parts.len())
            .map(|number| phase1.groups.iter().map(|group| phase1.table(number, group)).collect())
            .collect();
        for ((part, broken), servers) in phase1.parts.iter_mut().zip(broken).zip(servers) {
            (part.today, part.servers) = (broken, servers);
        }
        phase1
    }

    fn part(&self, ix: ReservationIx, price: f64) -> Part {
        let snapshot = self.snapshot;
        let reservation = &snapshot.reservations[ix.ix()];
        let eligible = || {
            let counts = move |s: &&Server| s.available && value(snapshot, s, ix) > Rru::ZERO;
            snapshot.servers.iter().filter(counts)
        };
        let c = reservation.capacity.to_f64();
        let guaranteed = reservation.kind == ReservationKind::Guaranteed;
        let spread_limit = guaranteed.then(|| {
            if let Some(alpha) = reservation.msb_alpha.or(snapshot.weights.msb_alpha) {
                return amount(alpha * c);
            }
            let msbs: BTreeSet<MsbIx> = eligible().map(|s| snapshot.msb_of(s)).collect();
            let even = if msbs.len() <= 1 { c } else { 1.5 * c / (msbs.len() - 1) as f64 };
            let most = eligible().map(|s| value(snapshot, s, ix)).max();
            amount(even).max(most.unwrap_or(Rru::ZERO))
        });
        let rack_limit = guaranteed.then(|| {
            if let Some(alpha) = reservation.rack_alpha.or(snapshot.weights.rack_alpha) {
                return amount(alpha * c);
            }
            let racks: BTreeSet<_> = eligible().map(|s| s.rack).collect();
            let even = if racks.is_empty() { c } else { 2.0 * c / racks.len() as f64 };
            let most = eligible().map(|s| value(snapshot, s, ix)).max();
            amount(even).max(most.unwrap_or(Rru::ZERO))
        });
        let theta = reservation.affinity_theta.unwrap_or(snapshot.weights.affinity_theta);
        let reachable: BTreeSet<usize> =
            eligible().map(|s| snapshot.datacenter_of(s).ix()).collect();
        let affinity = (snapshot.datacenters.iter().enumerate())
            .filter(|(dc, _)| guaranteed && c > 0.0 && reachable.contains(dc))
            .filter_map(|(dc, _)| {
                let share = reservation.share(fleet::DatacenterIx::new(dc))?;
                let low = amount(((share - theta) * c).max(0.0));
                let buffer = reservation.msb_buffer && share > 0.0;
                Some((dc, low, amount((share + theta) * c), buffer))
            })
            .collect();
        let mut levels: Vec<i32> = snapshot.reservations.iter().map(|of| of.priority).collect();
        levels.sort_unstable();
        levels.dedup();
        let level = levels.iter().position(|&level| level == reservation.priority);
        let level = level.expect("it is one of them");
        // 10^18 for the most valuable server that is there.
        let counts = reservation.kind != ReservationKind::Elastic;
        let top = eligible().filter(|_| counts).map(|s| value(snapshot, s, ix).0).max();
        let weight = i128::from((1_000_000_000_000_000_000 / top.unwrap_or(1_000_000)).max(1));
        let rule = reservation.replica_rule.filter(|_| guaranteed && c > 0.0);
        let msb_max = rule.map(|rule| {
            Rru(reservation.capacity.0 * i64::from(rule.per_msb) / i64::from(rule.replicas))
        });
        Part {
            spread_limit,
            price,
            level,
            weight,
            affinity,
            msb_max,
            rack_limit,
            servers: Vec::new(),
            today: Vec::new(),
        }
    }

    /// The least of expressions 1 and 2 for each number of servers of a group: over all numbers on each rack, and
    /// there of servers in use, idle ones and ones it does not hold. Of servers worth nothing to the
    /// reservation, nothing.
    fn table(&self, number: usize, group: &[usize]) -> Vec<f64> {
        let ix = ReservationIx::new(number);
        // Value, and how many it holds in use, idle and not, by rack.
        let mut racks: BTreeMap<_, (Rru, [usize; 3])> = BTreeMap::new();
        for server in group.iter().map(|&at| &self.snapshot.servers[at]) {
            let worth = value(self.snapshot, server, ix);
            let held = server.holder() == Some(ix) && worth > Rru::ZERO;
            let rack = racks.entry(server.rack).or_insert((worth, [0; 3]));
            rack.1[if !held { 2 } else { usize::from(!server.in_use) }] += 1;
        }
        let weights = &self.snapshot.weights;
        let mut least = vec![0.0];
        for (worth, [in_use, idle, other]) in racks.into_values() {
            let mut more = vec![f64::INFINITY; least.len() + in_use + idle + other];
            for (a, b, c) in (0..=in_use)
                .flat_map(|a| (0..=idle).flat_map(move |b| (0..=other).map(move |c| (a, b, c))))
            {
                let here = (0..a + b + c).map(|_| worth).sum();
                let cost = self.rack_excess(number, std::iter::once(here))
                    + weights.move_in_use * (in_use - a) as f64
                    + weights.move_idle * (idle - b) as f64;
                for (before, &known) in least.iter().enumerate() {
                    let both = &mut more[before + a + b + c];
                    *both = both.min(known + cost);
                }
            }
            least = more;
        }
        least
    }

    /// The price of what racks hold above the limit of a reservation.
    fn rack_excess(&self, number: usize, racks: impl Iterator<Item = Rru>) -> f64 {
        let Some(limit) = self.parts[number].rack_limit else { return 0.0 };
        let excess: Rru = racks.map(|amount| (amount - limit).or_zero()).sum();
        self.snapshot.weights.spread_beta * excess.to_f64()
    }

    /// Expressions 1 and 2 as phase 1 sees them.
    fn servers(&self, holders: &Holders) -> f64 {
        let mut cost = 0.0;
        // Servers worth zero to their holder are of no use to it, wherever they stand.
        for (server, &target) in self.snapshot.servers.iter().zip(holders) {
            let holder = server.holder().filter(|_| server.available);
            if holder.is_some_and(|holder| value(self.snapshot, server, holder) == Rru::ZERO) {
                cost += self.leave(server, target);
            }
        }
        for (number, part) in self.parts.iter().enumerate() {
            for (group, least) in self.groups.iter().zip(&part.servers) {
                let ix = Some(ReservationIx::new(number));
                cost += least[group.iter().filter(|&&at| holders[at] == ix).count()];
            }
        }
        cost
    }

    /// Expressions 1 to 4 of the servers chosen, and the price of what is broken; `None` if something is worse
    /// than it is today.
    pub fn whole(&self, holders: &Holders) -> Option<f64> {
        self.cost_of(&self.amounts(holders), self.stability(holders) + self.racks(holders))
    }

    /// Expressions 1 to 4 of the servers chosen.
    pub fn whole_cost(&self, holders: &Holders) -> f64 {
        let standing = self.standing(holders).expect("nothing worse than today").1;
        standing - self.servers(holders) + self.stability(holders) + self.racks(holders)
    }

    /// Expression 2 of the servers chosen.
    fn racks(&self, holders: &Holders) -> f64 {
        let mut racks = vec![BTreeMap::new(); self.parts.len()];
        for (server, holder) in self.snapshot.servers.iter().zip(holders) {
            if let (Some(holder), true) = (holder, server.available) {
                *racks[holder.ix()].entry(server.rack).or_insert(Rru::ZERO) +=
                    value(self.snapshot, server, *holder);
            }
        }
        (racks.into_iter().enumerate())
            .map(|(number, racks)| self.rack_excess(number, racks.into_values()))
            .sum()
    }

    /// The least of expressions 1 to 4 over every assignment that is missing no more than this at any level.
    pub fn whole_in_order(&self, missing: &[i128]) -> f64 {
        let mut best = f64::INFINITY;
        self.each(&mut |holders| {
            let Some((found, _)) = self.standing(holders) else { return };
            if found == missing {
                best = best.min(self.whole_cost(holders));
            }
        });
        best
    }

    /// The least of [`Phase1::whole`] over every assignment.
    pub fn whole_optimum(&self) -> f64 {
        self.whole_optimum_with(&|_| Some(0.0))
    }

    /// The same with what limits cost; `None`: not allowed.
    pub fn whole_optimum_with(&self, limits: &dyn Fn(&Holders) -> Option<f64>) -> f64 {
        let mut best = f64::INFINITY;
        self.each(&mut |holders| {
            let Some(more) = limits(holders) else { return };
            best = best.min(self.whole(holders).map_or(f64::INFINITY, |cost| cost + more));
        });
        best
    }

    /// RRU of each reservation in each MSB, on available servers.
    fn by_msb(&self, holders: &Holders) -> Vec<Vec<Rru>> {
        let mut amounts = vec![vec![Rru::ZERO; self.snapshot.msbs.len()]; self.parts.len()];
        for (server, holder) in self.snapshot.servers.iter().zip(holders) {
            if let (Some(holder), true) = (holder, server.available) {
                let msb = self.snapshot.msb_of(server);
                amounts[holder.ix()][msb.ix()] += value(self.snapshot, server, *holder);
            }
        }
        amounts
    }

    /// What each reservation has, on available servers.
    fn amounts(&self, holders: &Holders) -> Vec<Amounts> {
        let by_msb = self.by_msb(holders).into_iter().enumerate();
        by_msb
            .map(|(number, by_msb)| Amounts { by_msb, in_domain: self.in_domain(number, holders) })
            .collect()
    }

    fn in_domain(&self, number: usize, holders: &Holders) -> Rru {
        let ix = ReservationIx::new(number);
        let mut most = Rru::ZERO;
        for partition in &self.snapshot.reservations[number].survives {
            let partition = &self.snapshot.partitions[partition.ix()];
            for domain in 0..partition.domains.len() {
                let mut sum = Rru::ZERO;
                for (at, server) in self.snapshot.servers.iter().enumerate() {
                    let is_there = partition.of_servers[at].is_some_and(|of| of as usize == domain);
                    if is_there && server.available && holders[at] == Some(ix) {
                        sum += value(self.snapshot, server, ix);
                    }
                }
                most = most.max(sum);
            }
        }
        most
    }

    /// What eq. 6 and 7 are short of.
    fn broken(&self, number: usize, Amounts { by_msb, in_domain }: &Amounts) -> Vec<Rru> {
        let reservation = &self.snapshot.reservations[number];
        let total: Rru = by_msb.iter().copied().sum();
        let top = by_msb.iter().copied().max().unwrap_or(Rru::ZERO);
        let lost = if reservation.msb_buffer { top } else { Rru::ZERO };
        let kept = total - lost.max(*in_domain);
        let mut broken = vec![(whole(reservation) - kept).or_zero()];
        let part = &self.parts[number];
        for &amount in by_msb {
            broken.push(part.msb_max.map_or(Rru::ZERO, |most| (amount - most).or_zero()));
        }
        for &(dc, low, high, with_buffer) in &part.affinity {
            let high = if with_buffer { high + top } else { high };
            let there = (by_msb.iter().zip(&self.snapshot.msbs))
                .filter(|(_, msb)| msb.datacenter.ix() == dc)
                .map(|(amount, _)| *amount)
                .sum::<Rru>();
            broken.extend([(low - there).or_zero(), (there - high).or_zero()]);
        }
        broken
    }

    /// The cost of phase 1 and the price of what is broken; `None` if something is worse than it is today.
    pub fn cost(&self, holders: &Holders) -> Option<f64> {
        self.cost_of(&self.amounts(holders), self.servers(holders))
    }

    /// What is missing at each level, the most important first, and the cost of phase 1; `None` if something is
    /// worse than it is today.
    pub fn standing(&self, holders: &Holders) -> Option<(Vec<i128>, f64)> {
        let (all, servers) = (self.amounts(holders), self.servers(holders));
        let weights = &self.snapshot.weights;
        let most = self.parts.iter().map(|part| part.level).max().unwrap_or(0);
        let (mut missing, mut cost) = (vec![0; most + 1], servers);
        for (number, (part, amounts)) in self.parts.iter().zip(&all).enumerate() {
            let broken = self.broken(number, amounts);
            let amounts = &amounts.by_msb;
            if broken.iter().zip(&part.today).any(|(now, today)| now > today) {
                return None;
            }
            let sum: i128 = broken.iter().map(|amount| i128::from(amount.0)).sum();
            missing[part.level] += sum * part.weight;
            if let Some(limit) = part.spread_limit {
                let excess: Rru = amounts.iter().map(|&z| (z - limit).or_zero()).sum();
                cost += weights.spread_beta * excess.to_f64();
            }
            if self.snapshot.reservations[number].msb_buffer {
                let top = amounts.iter().copied().max().unwrap_or(Rru::ZERO);
                cost += weights.buffer_tau * top.to_f64();
            }
        }
        Some((missing, cost))
    }

    /// The least that can be missing, level by level, and the least cost with that.
    pub fn best_in_order(&self) -> (Vec<i128>, f64) {
        let mut best: Option<(Vec<i128>, f64)> = None;
        self.each(&mut |holders| {
            let Some(found) = self.standing(holders) else { return };
            let better = best
                .as_ref()
                .is_none_or(|best| found.0.cmp(&best.0).then(found.1.total_cmp(&best.1)).is_lt());
            if better {
                best = Some(found);
            }
        });
        best.expect("today's assignment is one of them")
    }

    /// The least that can be missing, level by level, and the least of expressions 1 to 4 and of what limits cost with that.
    /// `limits`: what they cost of an assignment; `None`: it is not allowed.
    pub fn best_whole_with(&self, limits: &dyn Fn(&Holders) -> Option<f64>) -> (Vec<i128>, f64) {
        let mut best: Option<(Vec<i128>, f64)> = None;
        self.each(&mut |holders| {
            let Some(more) = limits(holders) else { return };
            let Some((missing, _)) = self.standing(holders) else { return };
            let found = (missing, self.whole_cost(holders) + more);
            let better = best
                .as_ref()
                .is_none_or(|best| found.0.cmp(&best.0).then(found.1.total_cmp(&best.1)).is_lt());
            if better {
                best = Some(found);
            }
        });
        best.expect("today's assignment is one of them")
    }

    fn stability(&self, holders: &Holders) -> f64 {
        (self.snapshot.servers.iter().zip(holders))
            .map(|(server, &target)| self.leave(server, target))
            .sum()
    }

    fn leave(&self, server: &fleet::Server, target: Option<ReservationIx>) -> f64 {
        let weights = &self.snapshot.weights;
        match server.holder() {
            Some(holder) if Some(holder) != target => {
                if server.in_use {
                    weights.move_in_use
                } else {
                    weights.move_idle
                }
            }
            _ => 0.0,
        }
    }

    fn cost_of(&self, all: &[Amounts], servers: f64) -> Option<f64> {
        let weights = &self.snapshot.weights;
        let mut cost = servers;
        for (number, (part, amounts)) in self.parts.iter().zip(all).enumerate() {
            let broken = self.broken(number, amounts);
            let amounts = &amounts.by_msb;
            if broken.iter().zip(&part.today).any(|(now, today)| now > today) {
                return None;
            }
            cost += part.price * broken.into_iter().sum::<Rru>().to_f64();
            if let Some(limit) = part.spread_limit {
                let excess: Rru = amounts.iter().map(|&z| (z - limit).or_zero()).sum();
                cost += weights.spread_beta * excess.to_f64();
            }
            if self.snapshot.reservations[number].msb_buffer {
                let top = amounts.iter().copied().max().unwrap_or(Rru::ZERO);
                cost += weights.buffer_tau * top.to_f64();
            }
        }
        Some(cost)
    }

    /// The least cost of phase 1 over every assignment, shortfalls priced.
    pub fn optimum(&self) -> f64 {
        let mut best = f64::INFINITY;
        self.each(&mut |holders| best = best.min(self.cost(holders).unwrap_or(f64::INFINITY)));
        best
    }

    /// Tells of every assignment.
    fn each(&self, tell: &mut dyn FnMut(&Holders)) {
        let holders = vec![None; self.snapshot.servers.len()];
        Search { snapshot: self.snapshot, holders, tell }.go(0);
    }
}

/// Available servers of one MSB that every reservation values alike; pinned ones with one holder.
fn groups(snapshot: &RegionSnapshot) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, server) in snapshot.servers.iter().enumerate().filter(|(_, of)| of.available) {
        let of_type = |of: &fleet::Reservation| of.value(server.hardware_type);
        let values: Vec<_> = snapshot.reservations.iter().map(of_type).collect();
        let pinned = server.pinned.then(|| server.holder());
        // Domains tell servers apart that count for a reservation which survives their loss.
        let reservations = snapshot.reservations.iter();
        let counts = |of: &&fleet::Reservation| of.value(server.hardware_type).is_some();
        let survived = reservations.filter(counts).flat_map(|of| &of.survives);
        let domains: BTreeSet<_> =
            survived.map(|of| (*of, snapshot.partitions[of.ix()].of_servers[at])).collect();
        groups.entry((snapshot.msb_of(server), values, pinned, domains)).or_default().push(at);
    }
    groups.into_values().collect()
}

struct Search<'a> {
    snapshot: &'a RegionSnapshot,
    holders: Vec<Option<ReservationIx>>,
    tell: &'a mut dyn FnMut(&Holders),
}

/// C, rounded up to what whole servers can show: a multiple of the largest amount that divides all values.
fn whole(reservation: &Reservation) -> Rru {
    let divisor = |mut a: i64, mut b: i64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let unit = reservation.rru.iter().map(|of| of.1.0).reduce(divisor).unwrap_or(1);
    Rru((reservation.capacity.0 + unit - 1) / unit * unit)
}

impl Search<'_> {
    fn go(&mut self, position: usize) {
        let snapshot = self.snapshot;
        let Some(server) = snapshot.servers.get(position) else {
            return (self.tell)(&self.holders);
        };
        let holder = server.holder();
        if !server.available {
            self.holders[position] = holder;
            return self.go(position + 1);
        }
        let everybody = (0..snapshot.reservations.len()).map(|r| Some(ReservationIx::new(r)));
        for target in std::iter::once(None).chain(everybody) {
            let value = target.map_or(Rru::ZERO, |target| value(snapshot, server, target));
            let elastic = target.is_some_and(|target| {
                snapshot.reservations[target.ix()].kind == ReservationKind::Elastic
            });
            if target.is_some() && target != holder && (elastic || value == Rru::ZERO) {
                continue;
            }
            self.holders[position] = target;
            self.go(position + 1);
        }
    }
}
