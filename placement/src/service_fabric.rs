//! The engine `annealing`: Service Fabric's balancer as its authors describe it, the rival that ours is
//! measured against.
//!
//! Sources: "Service Fabric Cluster Resource Manager, part 2" (the steps of a search, random valid
//! moves, net moves, the score of the start as the limit) and SIL section 2.1 (the score, one constraint
//! mended at a time, random and greedy). Numbers are public settings. The sources leave open what is
//! noted as "chosen" below.

use crate::bound::bound;
use crate::cluster::{
    Amount, Cluster, Evenness, Futures, LevelIx, NodeIx, Objective, ReplicaIx, Role, Rule,
};
use crate::cost::Costs;
use crate::limits::{Limits, Progress};
use crate::neighbours::swap_is_allowed;
use crate::random::Random;
use crate::search::Found;
use crate::state::State;
use std::collections::VecDeque;
use std::time::Duration;

/// Settings of the balancer.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceFabric {
    /// Random moves of a round.
    pub iterations: u32,
    /// What the temperature is multiplied with after a round: 0.8 in fast balancing, 0.98 in slow.
    pub decay: f64,
    /// Random moves that are tried to learn how large a step is.
    pub probes: u32,
    /// The first temperature, in largest steps.
    pub heat: f64,
    /// The largest share of the replicas that balancing moves.
    pub largest_share: f64,
    /// The most replicas that balancing moves within `INTERVAL`.
    pub most_moves: u64,
    /// Moves that were made within the last `INTERVAL`: the caller counts them.
    pub moved_lately: u64,
    /// Time for the placement of new replicas.
    pub placement: Duration,
    /// Time for the constraint check.
    pub constraint_check: Duration,
    /// Time for balancing: 10 s is fast, 120 s slow.
    pub balancing: Duration,
}

impl Default for ServiceFabric {
    fn default() -> ServiceFabric {
        ServiceFabric {
            iterations: 1_000,
            decay: 0.8,
            probes: 50,
            heat: 50.0,
            largest_share: 0.3,
            most_moves: 1_000,
            moved_lately: 0,
            placement: Duration::from_millis(500),
            constraint_check: Duration::from_millis(500),
            balancing: Duration::from_secs(10),
        }
    }
}

impl ServiceFabric {
    /// How long a move counts.
    pub const INTERVAL: Duration = Duration::from_secs(600);

    /// Slow balancing: a temperature that falls slowly, and more time.
    pub fn slow() -> ServiceFabric {
        ServiceFabric {
            decay: 0.98,
            balancing: Duration::from_secs(120),
            ..ServiceFabric::default()
        }
    }

    /// Moves that balancing may make.
    fn allowance(&self, replicas: usize) -> usize {
        let of_share = (replicas as f64 * self.largest_share).floor() as usize;
        let left = self.most_moves.saturating_sub(self.moved_lately);
        of_share.min(usize::try_from(left).unwrap_or(usize::MAX))
    }
}

/// Places new replicas, mends broken constraints, then balances. Balancing never ends above the energy
/// that it began with; the energy is that of `Evenness`, also where the objective of the
/// cluster is another one. One thread. The limits end the whole;
/// each phase has its own time besides, or `Limits::rounds` rounds.
pub fn annealing(cluster: &Cluster, settings: &ServiceFabric, limits: &Limits) -> Found {
    let default = Objective::Balance(Evenness::of(cluster.metrics.len()));
    let objective = match &cluster.objective {
        own @ Objective::Balance(_) => own,
        _ => &default,
    };
    let mut state = State::today(cluster);
    let mut random = Random::new(limits.seed);
    place(&mut state, &mut random, &Phase::begin(limits, settings.placement));
    let phase = Phase::begin(limits, settings.constraint_check);
    check_constraints(&mut state, &mut random, &phase);
    let costs = Costs::of(objective, &state);
    let phase = Phase::begin(limits, settings.balancing);
    let assignment = if cluster.replicas.is_empty() {
        Vec::new()
    } else {
        let mut balancing = Balancing::new(state, costs, settings, random);
        balancing.run(&phase, settings);
        balancing.best.1
    };
    Found::new(cluster, assignment, bound(cluster))
}

/// The cluster with the energy of Service Fabric's balancer as its objective, metrics in shares of the
/// largest node. With `futures` it is multiplied with one and the violations to expect, if the objective
/// of the cluster knows demands in future: PLB+PrV of SIL section 7.2.
pub fn with_energy(cluster: &Cluster, futures: bool) -> Cluster {
    let largest = |metric: usize| {
        let capacities = cluster.nodes.iter().filter_map(|node| node.capacity[metric]);
        capacities.max().unwrap_or(Amount::MAX).max(1)
    };
    let weights = (0..cluster.metrics.len()).map(|metric| 1e6 / largest(metric) as f64).collect();
    let futures = match &cluster.objective {
        Objective::Failovers(of) if futures => of.futures.clone(),
        _ => None,
    };
    let futures = futures.map(|of| Futures { weight: 1.0, ..of });
    let objective = Objective::Balance(Evenness { weights, moves: 1.0, futures });
    Cluster { objective, ..cluster.clone() }
}

/// When a phase ends.
struct Phase<'l> {
    limits: &'l Limits<'l>,
    end: Duration,
}

impl<'l> Phase<'l> {
    fn begin(limits: &'l Limits<'l>, time: Duration) -> Phase<'l> {
        Phase { limits, end: (limits.elapsed)().saturating_add(time) }
    }

    fn is_over(&self, rounds: u64) -> bool {
        self.limits.share(rounds) >= 1.0 || (self.limits.elapsed)() >= self.end
    }
}

/// Steps of the first two phases between two looks at the clock.
const STEPS: u64 = 1_000;

/// Places new replicas on random valid nodes, those that others must be near first. Chosen: where none of
/// those that are left has a valid node, random replicas make random valid moves between the tries, a
/// new one or any, until one has or the time ends. Moves that help none are taken back, and replicas
/// whose old node still has room return to it.
fn place(state: &mut State, random: &mut Random, phase: &Phase) {
    let follows = followers(state.cluster);
    let mut new = std::mem::take(&mut state.unplaced);
    new.sort_by_key(|replica| follows[*replica as usize]);
    let mut open: VecDeque<u32> = new.iter().copied().collect();
    let (mut failed, mut rounds) = (0, 0);
    let mut last: Option<State> = None;
    while !open.is_empty() && !phase.is_over(rounds) {
        rounds += 1;
        for _ in 0..STEPS {
            let Some(replica) = open.pop_front() else { break };
            if let Some(node) = random_valid_node(state, replica as usize, random) {
                state.put(replica as usize, node);
                (failed, last) = (0, None);
                continue;
            }
            open.push_back(replica);
            failed += 1;
            if failed >= open.len() {
                last.get_or_insert_with(|| state.clone());
                move_any(state, &new, random);
            }
        }
    }
    if let Some(last) = last {
        *state = last;
    }
    state.unplaced = open.into();
    return_home(state);
}

/// Moves replicas back to their nodes of today, as long as there is room.
fn return_home(state: &mut State) {
    let mut returned = true;
    while returned {
        returned = false;
        for replica in 0..state.assignment().len() {
            if let (Some(at), Some(home)) = (state.node_of(replica), state.origin(replica))
                && at != home
                && state.allows(replica, home)
            {
                state.shift(replica, home);
                returned = true;
            }
        }
    }
}

/// A random valid move of one of some replicas, or of any.
fn move_any(state: &mut State, some: &[u32], random: &mut Random) {
    let mover = match random.bits() & 1 {
        0 => some[random.below(some.len())] as usize,
        _ => random.below(state.assignment().len()),
    };
    let to = NodeIx::new(random.below(state.cluster.nodes.len()));
    if state.node_of(mover).is_some_and(|from| from != to) && state.allows(mover, to) {
        state.shift(mover, to);
    }
}

/// How many rules make each replica follow others.
fn followers(cluster: &Cluster) -> Vec<u32> {
    let mut follows = vec![0; cluster.replicas.len()];
    for rule in &cluster.rules {
        if let Rule::Near { group, .. } = rule {
            for member in &cluster.groups[group.ix()].members {
                follows[member.ix()] += 1;
            }
        }
    }
    follows
}

fn random_valid_node(state: &State, replica: usize, random: &mut Random) -> Option<NodeIx> {
    let here = state.node_of(replica);
    let nodes = state.cluster.nodes.len();
    let first = random.below(nodes.max(1));
    // A random node, and the next valid one from there.
    let mut nodes = (first..nodes).chain(0..first).map(NodeIx::new);
    nodes.find(|node| {
        Some(*node) != here
            && state.allows(replica, *node)
            && (here.is_none() || state.tallies.mends(state.cluster, replica, here, *node))
    })
}

/// Mends one kind of constraint after the other: where replicas may run, capacity, rules. Chosen: the
/// replicas that break one are taken in random order, and each move goes to a random valid node.
fn check_constraints(state: &mut State, random: &mut Random, phase: &Phase) {
    let replicas = state.assignment().len();
    let mut order: Vec<usize> = (0..replicas).collect();
    let mut rounds = 0;
    loop {
        for last in (1..replicas).rev() {
            order.swap(last, random.below(last + 1));
        }
        let mut moved = 0;
        for mend in [leave_excluded, relieve, keep_rules] {
            for chunk in order.chunks(STEPS as usize) {
                if phase.is_over(rounds) {
                    return;
                }
                rounds += 1;
                moved += chunk.iter().filter(|replica| mend(state, **replica, random)).count();
            }
        }
        if moved == 0 {
            return;
        }
    }
}

fn move_at_random(state: &mut State, replica: usize, random: &mut Random) -> bool {
    let to = random_valid_node(state, replica, random);
    to.map(|to| state.shift(replica, to)).is_some()
}

fn leave_excluded(state: &mut State, replica: usize, random: &mut Random) -> bool {
    let node = state.node_of(replica);
    node.is_some_and(|node| !state.cluster.may_run(ReplicaIx::new(replica), node))
        && move_at_random(state, replica, random)
}

fn relieve(state: &mut State, replica: usize, random: &mut Random) -> bool {
    let Some(node) = state.node_of(replica) else { return false };
    let relieves =
        |(metric, demand): (usize, &i64)| *demand > 0 && state.lack(node.ix(), metric) > 0;
    state.demand(replica).iter().enumerate().any(relieves) && move_at_random(state, replica, random)
}

fn keep_rules(state: &mut State, replica: usize, random: &mut Random) -> bool {
    let Some(node) = state.node_of(replica) else { return false };
    let of = state.tallies.to_move(state.cluster, replica, node, |of| state.node_of(of));
    !of.is_empty() && move_at_random(state, of[random.below(of.len())], random)
}

/// A random neighbour.
enum Step {
    Shift(usize, NodeIx),
    Swap(usize, usize),
}

/// Rounds without a taken move after which a run has frozen. Chosen.
const FROZEN: u32 = 10;
/// Draws of a probe until one is valid. Chosen.
const DRAWS: u32 = 10_000;
/// Rounds between two reports of progress.
const TOLD: u64 = 256;

/// Simulated annealing from one start, run after run.
struct Balancing<'c> {
    start: (State<'c>, Costs<'c>),
    state: State<'c>,
    costs: Costs<'c>,
    random: Random,
    /// Secondaries of the partition of each primary.
    secondaries: Vec<Vec<u32>>,
    moves: Moves,
    best: (f64, Vec<Option<NodeIx>>),
}

/// The replicas that have moved, net: one that is back has not. Chosen: the throttle counts what
/// balancing adds to the moves of the constraint check.
#[derive(Clone)]
struct Moves {
    most: usize,
    count: usize,
    /// Replicas whose next move adds none: moved ones and new ones; and the place of each in this list.
    free: Vec<u32>,
    place: Vec<Option<u32>>,
}

impl Moves {
    fn new(state: &State, allowance: usize) -> Moves {
        let replicas = state.assignment().len();
        let mut moves =
            Moves { most: usize::MAX, count: 0, free: Vec::new(), place: vec![None; replicas] };
        for replica in 0..replicas {
            moves.note(state, replica);
        }
        moves.most = moves.count.saturating_add(allowance);
        moves
    }

    /// Whether a replica has moved from its node of today.
    fn is_move(state: &State, replica: usize, node: Option<NodeIx>) -> bool {
        let origin = state.origin(replica);
        origin.is_some() && node != origin
    }

    /// How many moves there are after some replicas have moved.
    fn after(&self, state: &State, shifts: &[(usize, NodeIx)]) -> usize {
        shifts.iter().fold(self.count, |count, (replica, to)| {
            let was = Self::is_move(state, *replica, state.node_of(*replica));
            count + usize::from(Self::is_move(state, *replica, Some(*to))) - usize::from(was)
        })
    }

    /// Notes where a replica is now.
    fn note(&mut self, state: &State, replica: usize) {
        let is_move = Self::is_move(state, replica, state.node_of(replica));
        let is_free = is_move || state.origin(replica).is_none();
        match self.place[replica] {
            None if is_free => {
                self.place[replica] = u32::try_from(self.free.len()).ok();
                self.free.extend(u32::try_from(replica));
                self.count += usize::from(is_move);
            }
            Some(place) if !is_free => {
                self.free.swap_remove(place as usize);
                if let Some(other) = self.free.get(place as usize) {
                    self.place[*other as usize] = Some(place);
                }
                self.place[replica] = None;
                self.count -= 1;
            }
            _ => {}
        }
    }
}

impl<'c> Balancing<'c> {
    fn new(
        state: State<'c>,
        costs: Costs<'c>,
        settings: &ServiceFabric,
        random: Random,
    ) -> Balancing<'c> {
        let moves = Moves::new(&state, settings.allowance(state.assignment().len()));
        Balancing {
            secondaries: secondaries(state.cluster),
            best: (costs.total, state.assignment().clone()),
            start: (state.clone(), costs.clone()),
            state,
            costs,
            random,
            moves,
        }
    }

    fn run(&mut self, phase: &Phase, settings: &ServiceFabric) {
        let bound = if phase.is_over(0) { 0.0 } else { bound(self.state.cluster) };
        let heat = settings.heat * self.largest_step(settings.probes);
        let start_moves = self.moves.clone();
        let mut rounds = 0;
        while heat > 0.0 && !phase.is_over(rounds) {
            self.state.clone_from(&self.start.0);
            self.costs.clone_from(&self.start.1);
            self.moves.clone_from(&start_moves);
            let (mut temperature, mut frozen) = (heat, 0);
            while frozen < FROZEN && !phase.is_over(rounds) {
                let taken = (0..settings.iterations).filter(|_| self.step(temperature)).count();
                frozen = if taken == 0 { frozen + 1 } else { 0 };
                if self.costs.total < self.best.0 {
                    self.best.0 = self.costs.total;
                    self.best.1.clone_from(self.state.assignment());
                }
                temperature *= settings.decay;
                rounds += 1;
                if rounds.is_multiple_of(TOLD)
                    && matches!(self.state.cluster.objective, Objective::Balance(_))
                {
                    (phase.limits.progress)(&Progress { value: self.best.0, bound });
                }
            }
        }
    }

    /// The largest change of the energy among some random valid moves.
    fn largest_step(&mut self, probes: u32) -> f64 {
        let mut largest = 0.0_f64;
        for _ in 0..probes {
            // Most moves drawn are invalid where nodes are full.
            if let Some(step) = (0..DRAWS).find_map(|_| self.neighbour()) {
                largest = largest.max(self.change(&step).abs());
            }
        }
        largest
    }

    fn change(&self, step: &Step) -> f64 {
        match *step {
            Step::Shift(replica, to) => self.costs.shift(&self.state, replica, to),
            Step::Swap(one, other) => self.costs.swap(&self.state, one, other),
        }
    }

    /// A random valid move: a replica to a random node, or the roles of a primary and a secondary of a
    /// partition exchanged, which changes the nodes of both here. Once balancing has made all moves
    /// that it may, only replicas that have moved have valid moves. `None` if the one drawn is invalid.
    fn neighbour(&mut self) -> Option<Step> {
        let all = self.state.assignment().len();
        let is_full = self.moves.count >= self.moves.most;
        let replica = match self.moves.free.len() {
            0 if is_full => return None,
            free if is_full => self.moves.free[self.random.below(free)] as usize,
            _ => self.random.below(all),
        };
        let from = self.state.node_of(replica)?;
        let secondaries = &self.secondaries[replica];
        if !secondaries.is_empty() && self.random.bits() & 1 == 0 {
            let other = secondaries[self.random.below(secondaries.len())] as usize;
            let to = self.state.node_of(other)?;
            let shifts = [(replica, to), (other, from)];
            let valid = from != to
                && self.moves.after(&self.state, &shifts) <= self.moves.most
                && self.may_swap(replica, other, from, to);
            return valid.then_some(Step::Swap(replica, other));
        }
        let to = NodeIx::new(self.random.below(self.state.cluster.nodes.len()));
        let valid = to != from
            && self.moves.after(&self.state, &[(replica, to)]) <= self.moves.most
            && self.state.allows(replica, to);
        valid.then_some(Step::Shift(replica, to))
    }

    fn may_swap(&mut self, one: usize, other: usize, here: NodeIx, there: NodeIx) -> bool {
        let cluster = self.state.cluster;
        cluster.may_run(ReplicaIx::new(one), there)
            && cluster.may_run(ReplicaIx::new(other), here)
            && self.state.fits(one, there.ix(), Some(other))
            && self.state.fits(other, here.ix(), Some(one))
            && swap_is_allowed(&mut self.state, one, other)
    }

    /// Makes a random move if it is taken: always if it improves the energy, else the less likely the
    /// more it costs.
    fn step(&mut self, temperature: f64) -> bool {
        let Some(step) = self.neighbour() else { return false };
        let change = self.change(&step);
        if change > 0.0 && self.random.unit() >= (-change / temperature).exp() {
            return false;
        }
        match step {
            Step::Shift(replica, to) => {
                self.costs.apply_shift(&mut self.state, replica, to, change);
                self.moves.note(&self.state, replica);
            }
            Step::Swap(one, other) => {
                self.costs.apply_swap(&mut self.state, one, other, change);
                self.moves.note(&self.state, one);
                self.moves.note(&self.state, other);
            }
        }
        true
    }
}

/// The secondaries of the partition of each primary: members of a group that never share a node.
fn secondaries(cluster: &Cluster) -> Vec<Vec<u32>> {
    let mut secondaries = vec![Vec::new(); cluster.replicas.len()];
    for rule in &cluster.rules {
        let Rule::PerDomain { group, level: LevelIx::NODE, most: 1 } = rule else { continue };
        let members = &cluster.groups[group.ix()].members;
        let of_role = |role: Role| {
            members.iter().filter(move |member| cluster.replicas[member.ix()].role == role)
        };
        for primary in of_role(Role::Primary) {
            let service = cluster.replicas[primary.ix()].service;
            let same = |other: &&ReplicaIx| cluster.replicas[other.ix()].service == service;
            let others = of_role(Role::Secondary).filter(same);
            secondaries[primary.ix()] =
                others.filter_map(|other| u32::try_from(other.ix()).ok()).collect();
        }
    }
    secondaries
}
