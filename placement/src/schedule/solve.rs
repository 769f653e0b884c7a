//! The fewest phases: iterative deepening over their number, greedy where that takes too long.

use super::board::{Board, OnNode};
use super::position::Position;
use crate::cluster::Amount;
use std::collections::{BTreeMap, BTreeSet};

/// What the legs of a board can do.
#[derive(Clone, Debug)]
pub(super) struct Solved {
    /// Legs by phase.
    pub(super) phases: Vec<Vec<usize>>,
    /// Legs in no phase.
    pub(super) rest: Vec<usize>,
    /// All legs need at least this number of phases. If they need detours, two.
    pub(super) bound: usize,
    /// Phases that the exact search looked at.
    pub(super) steps: u64,
}

/// Phases of a schedule with a detour, at least.
const WITH_DETOUR: usize = 2;

/// Legs of a board that the exact search takes.
const EXACT: usize = 64;

/// Looks for the fewest phases within `steps` phases of the exact search.
pub(super) fn solve(board: &Board, steps: u64) -> Solved {
    let order = Order::of(board);
    let legs = board.legs.len();
    let bound = if order.is_cyclic { WITH_DETOUR } else { order.bound() };
    let greedy = [Taste::LongestFirst, Taste::Patient, Taste::InOrder]
        .map(|taste| greedy(board, &order, taste));
    let fewest = |solved: &&Solved| (solved.rest.len(), solved.phases.len());
    let mut best = greedy.iter().min_by_key(fewest).cloned().unwrap_or(Solved {
        phases: Vec::new(),
        rest: (0..legs).collect(),
        bound,
        steps: 0,
    });
    best.bound = bound;
    if order.is_cyclic || legs > EXACT {
        return best;
    }
    let most = if best.rest.is_empty() { best.phases.len() } else { legs + 1 };
    let mut search =
        Search { board, order: &order, steps, failed: BTreeMap::new(), path: Vec::new() };
    for phases in bound..most {
        search.failed.clear();
        if search.descend(&Position::new(board), 0, phases) {
            let steps = steps - search.steps;
            return Solved { phases: search.path, rest: Vec::new(), bound: phases, steps };
        }
        if search.steps == 0 {
            break;
        }
        best.bound = if phases == legs { WITH_DETOUR } else { phases + 1 };
    }
    best.steps = steps - search.steps;
    best
}

/// Legs that must end before others begin, in any order of the others.
struct Order {
    /// Legs on the longest chain that begins with a leg: it needs at least that number of phases.
    tail: Vec<usize>,
    /// Whether legs wait for each other in a circle.
    is_cyclic: bool,
}

impl Order {
    fn of(board: &Board) -> Order {
        let mut later: Vec<Vec<usize>> = vec![Vec::new(); board.legs.len()];
        for (leg, effect) in board.effects.iter().enumerate() {
            if let Some(before) = effect.after {
                later[before].push(leg);
            }
        }
        Order::by_nodes(board, &mut later);
        Order::by_counters(board, &mut later);
        let mut waits = vec![0_usize; later.len()];
        for leg in later.iter().flatten() {
            waits[*leg] += 1;
        }
        let mut sorted: Vec<usize> = (0..later.len()).filter(|leg| waits[*leg] == 0).collect();
        let mut at = 0;
        while let Some(leg) = sorted.get(at).copied() {
            at += 1;
            for next in &later[leg] {
                waits[*next] -= 1;
                if waits[*next] == 0 {
                    sorted.push(*next);
                }
            }
        }
        let mut tail = vec![1; later.len()];
        for leg in sorted.iter().rev() {
            tail[*leg] = 1 + later[*leg].iter().map(|next| tail[*next]).max().unwrap_or(0);
        }
        Order { tail, is_cyclic: sorted.len() < later.len() }
    }

    /// A leg waits for one that leaves its node if both do not fit beside what never leaves.
    fn by_nodes(board: &Board, later: &mut [Vec<usize>]) {
        let mut on_node: Vec<Vec<(usize, &OnNode)>> = vec![Vec::new(); board.nodes.len()];
        for (leg, effect) in board.effects.iter().enumerate() {
            effect.nodes.iter().for_each(|on| on_node[on.node].push((leg, on)));
        }
        let leaves = |leg: usize| board.effects[leg].after.is_none();
        for (place, on_node) in board.nodes.iter().zip(&on_node) {
            let legs = || on_node.iter().copied();
            let mut stays = place.usage.clone();
            for (_, on) in legs().filter(|(leg, _)| leaves(*leg)) {
                for (stays, change) in stays.iter_mut().zip(&on.change) {
                    *stays += (*change).min(0);
                }
            }
            let arriving: Vec<_> = legs().filter(|(_, on)| on.puts).collect();
            for (leaver, of) in legs().filter(|(leg, _)| leaves(*leg)) {
                for (leg, on) in arriving.iter().filter(|(leg, _)| *leg != leaver) {
                    let waits = (0..stays.len()).any(|metric| {
                        let with = stays[metric] - of.change[metric].min(0);
                        let overlap = if board.overlaps[metric] { on.extra[metric] } else { 0 };
                        of.change[metric] < 0
                            && with.saturating_add(overlap) > place.capacity[metric]
                    });
                    if waits {
                        later[leaver].push(*leg);
                    }
                }
            }
        }
    }

    /// A leg waits for a member that leaves its domain if the domain cannot have both.
    fn by_counters(board: &Board, later: &mut [Vec<usize>]) {
        let mut leaving: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (leg, effect) in board.effects.iter().enumerate() {
            for on in effect.counters.iter().filter(|_| effect.after.is_none()) {
                if let Some(old) = on.old {
                    leaving.entry((on.counter, old)).or_default().push(leg);
                }
            }
        }
        let none = Vec::new();
        for (leg, effect) in board.effects.iter().enumerate() {
            for on in &effect.counters {
                let of = &board.counters[on.counter];
                let leavers = leaving.get(&(on.counter, on.new)).unwrap_or(&none);
                let stay = u64::from(of.members[on.new]) - leavers.len() as u64;
                let crowded = if stay + 2 > u64::from(of.per_domain) { leavers } else { &none };
                let apart = of.apart.iter().filter_map(|from| leaving.get(&(*from, on.new)));
                for before in crowded.iter().chain(apart.flatten()).filter(|at| **at != leg) {
                    later[*before].push(leg);
                }
            }
        }
    }

    fn bound(&self) -> usize {
        self.tail.iter().copied().max().unwrap_or(0)
    }
}

/// Which legs a greedy phase takes first.
#[derive(Clone, Copy, PartialEq)]
enum Taste {
    /// Those that others wait for.
    LongestFirst,
    /// Those that are in no other leg's way, or that others wait for; the rest only if none of these can go.
    Patient,
    /// In the order of the replicas.
    InOrder,
}

fn greedy(board: &Board, order: &Order, taste: Taste) -> Solved {
    let mut position = Position::new(board);
    let mut rest: Vec<usize> = (0..board.legs.len()).collect();
    if taste != Taste::InOrder {
        rest.sort_by_key(|leg| (std::cmp::Reverse(order.tail[*leg]), *leg));
    }
    let mut arrivals = Arrivals::of(board, &rest);
    let mut waiting = Waiting::new(board, &rest);
    let mut done = vec![false; rest.len()];
    let mut phases = Vec::new();
    loop {
        let ready = |leg: &usize| board.effects[*leg].after.is_none_or(|before| done[before]);
        let eager = |leg: usize| {
            taste != Taste::Patient
                || order.tail[leg] > 1
                || arrivals.have_room(board, &position, leg)
        };
        let are_patient = waiting.be_patient(|leg| !eager(leg));
        let first: Vec<usize> = waiting.awake().filter(ready).collect();
        let mut phase = waiting.fill(&mut position, &first);
        if phase.is_empty() && are_patient {
            waiting.wake_patient();
            let all: Vec<usize> = waiting.awake().filter(ready).collect();
            phase = waiting.fill(&mut position, &all);
        }
        if phase.is_empty() {
            break;
        }
        position.close(board, &phase);
        for leg in &phase {
            arrivals.remove(board, *leg);
            done[*leg] = true;
        }
        phase.sort_unstable();
        phases.push(phase);
    }
    rest.retain(|leg| !done[*leg]);
    rest.sort_unstable();
    Solved { phases, rest, bound: 0, steps: 0 }
}

/// Legs in no phase yet. A leg that could not begin sleeps until something changes where it goes, so a long
/// schedule costs what changes and not all legs in each phase.
struct Waiting<'b, 'c> {
    board: &'b Board<'c>,
    /// Legs by rank: the order in which they are tried.
    by_rank: Vec<usize>,
    rank: Vec<usize>,
    /// Ranks of the legs that may be able to begin.
    awake: BTreeSet<usize>,
    /// Ranks of the legs that may be able to begin, but would be in another's way.
    patient: BTreeSet<usize>,
    /// By leg.
    is_asleep: Vec<bool>,
    places: Places,
    /// Legs by the places that they read.
    readers: Vec<Vec<usize>>,
}

/// Nodes, and domains of counters, by number.
struct Places {
    /// The number of the first domain of each counter.
    domains: Vec<usize>,
    count: usize,
}

impl Places {
    fn of(board: &Board) -> Places {
        let mut count = board.nodes.len();
        let mut domains = Vec::with_capacity(board.counters.len());
        for counter in &board.counters {
            domains.push(count);
            count += counter.domains.len();
        }
        Places { domains, count }
    }

    /// What says whether a leg can begin.
    fn read<'b>(&'b self, board: &'b Board, leg: usize) -> impl Iterator<Item = usize> + 'b {
        let effect = &board.effects[leg];
        let counters = effect.counters.iter().flat_map(|on| {
            let apart = board.counters[on.counter].apart.iter();
            apart.chain([&on.counter]).map(|of| self.domains[*of] + on.new)
        });
        effect.nodes.iter().map(|on| on.node).chain(counters)
    }

    /// What changes when a leg ends.
    fn written<'b>(&'b self, board: &'b Board, leg: usize) -> impl Iterator<Item = usize> + 'b {
        let effect = &board.effects[leg];
        let counters = effect.counters.iter().flat_map(|on| {
            on.old.into_iter().chain([on.new]).map(|domain| self.domains[on.counter] + domain)
        });
        effect.nodes.iter().map(|on| on.node).chain(counters)
    }
}

impl<'b, 'c> Waiting<'b, 'c> {
    fn new(board: &'b Board<'c>, by_rank: &[usize]) -> Waiting<'b, 'c> {
        let mut rank = vec![0; by_rank.len()];
        by_rank.iter().enumerate().for_each(|(at, leg)| rank[*leg] = at);
        let places = Places::of(board);
        let mut readers = vec![Vec::new(); places.count];
        for leg in 0..by_rank.len() {
            places.read(board, leg).for_each(|place| readers[place].push(leg));
        }
        Waiting {
            board,
            awake: (0..by_rank.len()).collect(),
            by_rank: by_rank.to_vec(),
            rank,
            patient: BTreeSet::new(),
            is_asleep: vec![false; by_rank.len()],
            places,
            readers,
        }
    }

    /// Legs that may be able to begin, in their order.
    fn awake(&self) -> impl Iterator<Item = usize> {
        self.awake.iter().map(|rank| self.by_rank[*rank])
    }

    /// Puts aside the legs that would be in another's way. Whether there are any.
    fn be_patient(&mut self, would: impl Fn(usize) -> bool) -> bool {
        let (patient, awake) = std::mem::take(&mut self.awake)
            .into_iter()
            .partition::<BTreeSet<usize>, _>(|rank| would(self.by_rank[*rank]));
        self.patient.extend(patient);
        self.awake = awake;
        !self.patient.is_empty()
    }

    /// Takes back the legs that were put aside.
    fn wake_patient(&mut self) {
        self.awake.append(&mut self.patient);
    }

    /// Takes the legs of a phase out, and wakes those that read what they change.
    fn done(&mut self, phase: &[usize]) {
        let places = phase.iter().flat_map(|leg| self.places.written(self.board, *leg));
        let places: BTreeSet<usize> = places.collect();
        for leg in places.iter().flat_map(|place| &self.readers[*place]) {
            let rank = self.rank[*leg];
            if std::mem::take(&mut self.is_asleep[*leg]) || self.patient.remove(&rank) {
                self.awake.insert(rank);
            }
        }
        phase.iter().for_each(|leg| {
            self.awake.remove(&self.rank[*leg]);
        });
    }

    /// As many of the legs as can run at once, in their order.
    fn fill(&mut self, position: &mut Position, legs: &[usize]) -> Vec<usize> {
        let board = self.board;
        let mut phase: Vec<usize> = legs.to_vec();
        let mut barred = Vec::new();
        phase.retain(|leg| {
            let begins = position.begin(board, *leg).is_ok();
            if !begins {
                barred.push(*leg);
            }
            begins
        });
        // What one leg may not end with may be another leg that is taken out: until none is.
        let mut cancelled = Vec::new();
        let mut before = usize::MAX;
        while phase.len() < before {
            before = phase.len();
            phase.reverse();
            phase.retain(|leg| {
                let ends = position.end(board, *leg).is_ok();
                if !ends {
                    position.cancel(board, *leg);
                    cancelled.push(*leg);
                }
                ends
            });
            phase.reverse();
        }
        if phase.is_empty() {
            // What fails together may be done alone.
            let alone = legs.iter().copied().find(|leg| {
                let begins = position.begin(board, *leg).is_ok();
                let ends = begins && position.end(board, *leg).is_ok();
                if begins && !ends {
                    position.cancel(board, *leg);
                }
                ends
            });
            phase.extend(alone);
        }
        // A leg that was taken out may have barred others.
        let freed = cancelled.iter().flat_map(|leg| self.places.written(board, *leg));
        let freed: BTreeSet<usize> = freed.collect();
        for leg in barred {
            let may_begin = || self.places.read(board, leg).any(|place| freed.contains(&place));
            if freed.is_empty() || !may_begin() {
                self.is_asleep[leg] = true;
                self.awake.remove(&self.rank[leg]);
            }
        }
        self.done(&phase);
        phase
    }
}

/// What some legs put onto nodes and into domains.
struct Arrivals {
    nodes: Vec<Vec<Amount>>,
    /// Members by counter and domain.
    members: BTreeMap<(usize, usize), u64>,
}

impl Arrivals {
    fn of(board: &Board, legs: &[usize]) -> Arrivals {
        let mut nodes: Vec<Vec<Amount>> =
            board.nodes.iter().map(|place| vec![0; place.usage.len()]).collect();
        let mut members = BTreeMap::new();
        for effect in legs.iter().map(|leg| &board.effects[*leg]) {
            for on in &effect.nodes {
                nodes[on.node].iter_mut().zip(&on.extra).for_each(|(all, extra)| *all += extra);
            }
            for on in &effect.counters {
                *members.entry((on.counter, on.new)).or_default() += 1;
            }
        }
        Arrivals { nodes, members }
    }

    /// Takes out a leg that has arrived.
    fn remove(&mut self, board: &Board, leg: usize) {
        let effect = &board.effects[leg];
        for on in &effect.nodes {
            let arrive = self.nodes[on.node].iter_mut();
            arrive.zip(&on.extra).for_each(|(all, extra)| *all -= extra);
        }
        for on in &effect.counters {
            if let Some(arrive) = self.members.get_mut(&(on.counter, on.new)) {
                *arrive -= 1;
            }
        }
    }

    /// Whether a leg that starts now can never be in the way of the others: where it goes there is room for
    /// all that go there, without any leaving.
    fn have_room(&self, board: &Board, position: &Position, leg: usize) -> bool {
        let effect = &board.effects[leg];
        let mut nodes = effect.nodes.iter().filter(|on| on.puts);
        let members = |counter: usize, domain: usize| {
            let arrive = self.members.get(&(counter, domain)).copied().unwrap_or(0);
            arrive + u64::from(position.members(counter, domain))
        };
        nodes.all(|on| position.has_room(board, on.node, &self.nodes[on.node]))
            && effect.counters.iter().all(|on| {
                let of = &board.counters[on.counter];
                of.at_least == 0
                    && of.at_most == u32::MAX
                    && of.needs.is_empty()
                    && of.needed_by.is_empty()
                    && members(on.counter, on.new) <= u64::from(of.per_domain)
                    && of.apart.iter().all(|from| members(*from, on.new) == 0)
            })
    }
}

/// A depth-first search over the legs of one phase after another.
struct Search<'s, 'c> {
    board: &'s Board<'c>,
    order: &'s Order,
    steps: u64,
    /// The number of phases within which the legs that are left are known not to end, by the legs that
    /// are done: without detours, these say where everything is.
    failed: BTreeMap<u64, usize>,
    path: Vec<Vec<usize>>,
}

impl Search<'_, '_> {
    /// Whether the legs that are not done can end within some phases: if so, `path` has them.
    fn descend(&mut self, position: &Position, done: u64, phases: usize) -> bool {
        let rest: Vec<usize> =
            (0..self.board.legs.len()).filter(|leg| done >> leg & 1 == 0).collect();
        if rest.is_empty() {
            return true;
        }
        let known = self.failed.get(&done).is_some_and(|failed| *failed >= phases);
        if known || rest.iter().any(|leg| self.order.tail[*leg] > phases) {
            return false;
        }
        let ready = |leg: &usize| {
            self.board.effects[*leg].after.is_none_or(|before| done >> before & 1 == 1)
        };
        let arrivals = Arrivals::of(self.board, &rest);
        let forced = |leg: usize| {
            self.order.tail[leg] == phases || arrivals.have_room(self.board, position, leg)
        };
        let mut options: Vec<(usize, bool)> =
            rest.iter().copied().filter(ready).map(|leg| (leg, forced(leg))).collect();
        options
            .sort_by_key(|(leg, forced)| (!forced, std::cmp::Reverse(self.order.tail[*leg]), *leg));
        // In the last phase all must go.
        if phases == 1 {
            options.iter_mut().for_each(|option| option.1 = true);
            if options.len() < rest.len() {
                return false;
            }
        }
        let found = self.choose(&mut position.clone(), &options, &mut Vec::new(), done, phases);
        if !found && self.steps > 0 {
            self.failed.insert(done, phases);
        }
        found
    }

    fn choose(
        &mut self,
        position: &mut Position,
        options: &[(usize, bool)],
        phase: &mut Vec<usize>,
        done: u64,
        phases: usize,
    ) -> bool {
        if self.steps == 0 {
            return false;
        }
        let Some(((leg, forced), others)) = options.split_first() else {
            self.steps -= 1;
            if phase.is_empty() || phase.iter().any(|leg| position.end(self.board, *leg).is_err()) {
                return false;
            }
            let mut next = position.clone();
            next.close(self.board, phase);
            let after = phase.iter().fold(done, |done, leg| done | 1 << leg);
            let mut sorted = phase.clone();
            sorted.sort_unstable();
            self.path.push(sorted);
            if self.descend(&next, after, phases - 1) {
                return true;
            }
            self.path.pop();
            return false;
        };
        if position.begin(self.board, *leg).is_ok() {
            phase.push(*leg);
            if self.choose(position, others, phase, done, phases) {
                return true;
            }
            phase.pop();
            position.cancel(self.board, *leg);
        }
        !forced && self.choose(position, others, phase, done, phases)
    }
}
