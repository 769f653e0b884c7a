//! When servers arrive that must first be moved.
//!
//! The limits and contracts of the mover are played through on a calendar, move by move, in the order in
//! which it lets them begin. Every move takes as long as such moves took lately.

use super::{MoveKind, OpenMoves, Pacing, Scope};
use crate::id::ReservationName;
use chrono::{DateTime, TimeDelta, Utc};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// How far ahead is looked.
const DAYS_MAX: i64 = 31;
/// The most events that are played through.
const EVENTS_MAX: usize = 200_000;

/// What holds moves up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holdup {
    /// A limit of moves at once or per window.
    Limit(Scope),
    /// The churn contract of a reservation.
    Contract(ReservationName),
    /// A quiet time of a reservation.
    QuietTime(ReservationName),
}

impl Holdup {
    /// What it is, and the reservation whose it is: `churn contract`, and `feed`.
    pub fn into_parts(self) -> (String, Option<ReservationName>) {
        match self {
            Holdup::Limit(Scope::Region) => ("limit of moves in the region".to_owned(), None),
            Holdup::Limit(Scope::Msb(name)) => (format!("limit of moves in MSB {name}"), None),
            Holdup::Limit(Scope::Rack(name)) => (format!("limit of moves in rack {name}"), None),
            Holdup::Limit(Scope::Reservation(name)) => {
                ("limit of moves out".to_owned(), Some(name))
            }
            Holdup::Contract(name) => ("churn contract".to_owned(), Some(name)),
            Holdup::QuietTime(name) => ("quiet time".to_owned(), Some(name)),
        }
    }
}

/// When servers arrive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Instants, and how many servers have arrived by each; both rise.
    pub steps: Vec<(DateTime<Utc>, u64)>,
    /// Servers that do not arrive within 31 days.
    pub later: u64,
    /// What the last of them waited for; `None`: nothing.
    pub holdup: Option<Holdup>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Servers of a queue are bound.
    Bound { queue: usize, count: u64 },
    /// Servers of a queue no longer count for a window of the limits.
    OutOfWindow { queue: usize, count: u64 },
    /// A server that left no longer counts for a contract.
    OutOfContract { contract: usize, count: u64 },
    /// A quiet time begins or ends.
    Look,
}

/// Moves of one kind, one after the other.
struct Queue {
    in_use: bool,
    ours: bool,
    urgent: bool,
    waiting: u64,
    /// Positions of what counts them in [`Play::counts`], and of their contract.
    counts: Vec<usize>,
    contract: Option<usize>,
}

/// What is counted of a place or reservation and use.
struct Count {
    scope: Scope,
    at_once: u64,
    per_window: u64,
    running: u64,
    /// Running, or done within the window.
    in_window: u64,
}

struct Play<'a> {
    pacing: &'a Pacing,
    window: TimeDelta,
    queues: Vec<Queue>,
    counts: Vec<Count>,
    count_at: BTreeMap<(Scope, bool), usize>,
    contract_at: BTreeMap<&'a ReservationName, usize>,
    /// By contract: left within its window, or leaving.
    left: Vec<u64>,
    events: BinaryHeap<Reverse<(DateTime<Utc>, Event)>>,
    /// Of ours: how many have not begun, and not ended.
    ours_waiting: u64,
    ours_running: u64,
}

impl Pacing {
    /// Puts moves behind all that are open.
    pub fn open(&mut self, moves: Vec<MoveKind>) {
        let waits = |kind| OpenMoves { kind, waiting: true, urgent: false, count: 1 };
        self.open.extend(moves.into_iter().map(waits));
    }

    /// When the servers of these moves arrive, opened now, behind all that are open.
    ///
    /// Takes time in proportion to the kinds of moves that wait and the instants at which some end.
    pub fn arrival(&self, moves: &[MoveKind]) -> Arrival {
        Play::new(self, moves).run()
    }
}

impl<'a> Play<'a> {
    fn new(pacing: &'a Pacing, moves: &[MoveKind]) -> Play<'a> {
        let window = pacing.limits.as_ref().map_or(0, |limits| limits.window_seconds);
        let contracts = pacing.contracts.iter().enumerate();
        let mut play = Play {
            pacing,
            window: TimeDelta::seconds(window.into()),
            queues: Vec::new(),
            counts: Vec::new(),
            count_at: BTreeMap::new(),
            contract_at: contracts.map(|(at, of)| (&of.reservation, at)).collect(),
            left: vec![0; pacing.contracts.len()],
            events: BinaryHeap::new(),
            ours_waiting: 0,
            ours_running: 0,
        };
        for (kind, count) in &pacing.begun {
            // When in the window they ended is not known: at its end, at the latest.
            let queue = play.queue(kind, false, false, 0);
            play.count(queue, |of| of.in_window += count);
            play.at(pacing.now + play.window, Event::OutOfWindow { queue, count: *count });
        }
        for of in &pacing.open {
            let waiting = if of.waiting { of.count } else { 0 };
            let queue = play.queue(&of.kind, false, of.urgent, waiting);
            if !of.waiting {
                play.begin(queue, of.count, pacing.now);
            }
        }
        let mut ours: BTreeMap<&MoveKind, u64> = BTreeMap::new();
        for kind in moves {
            *ours.entry(kind).or_default() += 1;
        }
        for (kind, count) in ours {
            play.queue(kind, true, false, count);
            play.ours_waiting += count;
        }
        for (contract, of) in pacing.contracts.iter().enumerate() {
            play.left[contract] += of.left.len() as u64;
            for left in &of.left {
                play.at(*left + of.window, Event::OutOfContract { contract, count: 1 });
            }
        }
        play
    }

    fn queue(&mut self, kind: &MoveKind, ours: bool, urgent: bool, waiting: u64) -> usize {
        let in_use = kind.in_use;
        let counts = kind.scopes().map(|scope| self.count_of(scope, in_use)).collect();
        let source = kind.source.as_ref().filter(|_| in_use);
        let contract = source.and_then(|source| self.contract_at.get(source).copied());
        self.queues.push(Queue { in_use, ours, urgent, waiting, counts, contract });
        self.queues.len() - 1
    }

    fn count_of(&mut self, scope: Scope, in_use: bool) -> usize {
        let (pacing, counts) = (self.pacing, &mut self.counts);
        *self.count_at.entry((scope.clone(), in_use)).or_insert_with(|| {
            let caps = pacing.limits.as_ref().map(|of| of.caps(&scope, in_use)).unwrap_or_default();
            let most = |cap: Option<u32>| cap.map_or(u64::MAX, u64::from);
            let (at_once, per_window) = (most(caps.at_once), most(caps.per_window));
            counts.push(Count { scope, at_once, per_window, running: 0, in_window: 0 });
            counts.len() - 1
        })
    }

    fn at(&mut self, at: DateTime<Utc>, event: Event) {
        self.events.push(Reverse((at, event)));
    }

    fn count(&mut self, queue: usize, change: impl Fn(&mut Count)) {
        for &at in &self.queues[queue].counts {
            change(&mut self.counts[at]);
        }
    }

    fn begin(&mut self, queue: usize, count: u64, now: DateTime<Utc>) {
        self.count(queue, |of| {
            of.running += count;
            of.in_window += count;
        });
        let Queue { in_use, ours, contract, .. } = self.queues[queue];
        if let Some(contract) = contract {
            self.left[contract] += count;
        }
        if ours {
            self.ours_waiting -= count;
            self.ours_running += count;
        }
        let seconds = i64::from(self.pacing.seconds(in_use));
        self.at(now + TimeDelta::seconds(seconds), Event::Bound { queue, count });
    }

    /// How many of a queue may begin, and what holds the others up: the contract, or the position of a
    /// count.
    fn room(&self, queue: &Queue, quiet: &[bool]) -> (u64, Option<Blocked>) {
        let mut room = (queue.waiting, None);
        if queue.urgent {
            return room;
        }
        let mut at_most = |most: u64, blocked: Blocked| {
            if most < room.0 {
                room = (most, Some(blocked));
            }
        };
        if let Some(contract) = queue.contract {
            if quiet[contract] {
                at_most(0, Blocked::Quiet(contract));
            }
            let allowed = self.pacing.contracts[contract].allowed;
            at_most(allowed.saturating_sub(self.left[contract]), Blocked::Contract(contract));
        }
        for &at in &queue.counts {
            let of = &self.counts[at];
            at_most(of.at_once.saturating_sub(of.running), Blocked::Count(at));
            at_most(of.per_window.saturating_sub(of.in_window), Blocked::Count(at));
        }
        room
    }

    fn holdup(&self, blocked: Blocked) -> Holdup {
        let name = |contract: usize| self.pacing.contracts[contract].reservation.clone();
        match blocked {
            Blocked::Quiet(contract) => Holdup::QuietTime(name(contract)),
            Blocked::Contract(contract) => Holdup::Contract(name(contract)),
            Blocked::Count(at) => Holdup::Limit(self.counts[at].scope.clone()),
        }
    }

    fn run(&mut self) -> Arrival {
        let mut steps: Vec<(DateTime<Utc>, u64)> = Vec::new();
        let mut blocked = None;
        let mut now = self.pacing.now;
        let until = now + TimeDelta::days(DAYS_MAX);
        // As the mover does: those that are urgent, then idle servers, then in the order they were opened.
        let mut order: Vec<usize> = (0..self.queues.len()).collect();
        order.retain(|&queue| self.queues[queue].waiting > 0);
        order.sort_by_key(|&queue| {
            let of = &self.queues[queue];
            (!of.urgent, of.in_use, of.ours, queue)
        });
        for _ in 0..EVENTS_MAX {
            let contracts = self.pacing.contracts.iter();
            let quiet: Vec<bool> = contracts.map(|of| of.is_quiet(now)).collect();
            for &queue in &order {
                let (room, by) = self.room(&self.queues[queue], &quiet);
                if room > 0 {
                    self.queues[queue].waiting -= room;
                    self.begin(queue, room, now);
                }
                if self.queues[queue].ours && self.queues[queue].waiting > 0 {
                    blocked = by;
                }
            }
            order.retain(|&queue| self.queues[queue].waiting > 0);
            if self.ours_waiting + self.ours_running == 0 {
                break;
            }
            if self.ours_waiting > 0 {
                let changes = self.pacing.contracts.iter().filter_map(|of| of.next_change(now));
                let next = self.events.peek().map(|next| next.0.0);
                if let Some(change) = changes.min()
                    && next.is_none_or(|next| change < next)
                {
                    self.at(change, Event::Look);
                }
            }
            match self.events.peek() {
                Some(Reverse((at, _))) if *at <= until => now = now.max(*at),
                _ => break,
            }
            while self.events.peek().is_some_and(|next| next.0.0 <= now) {
                let Some(Reverse((_, event))) = self.events.pop() else { break };
                let arrived = self.happen(event, now);
                match steps.last_mut() {
                    _ if arrived == 0 => {}
                    Some(step) if step.0 == now => step.1 += arrived,
                    last => {
                        let before = last.map_or(0, |step| step.1);
                        steps.push((now, before + arrived));
                    }
                }
            }
        }
        let later = self.ours_waiting + self.ours_running;
        Arrival { steps, later, holdup: blocked.map(|blocked| self.holdup(blocked)) }
    }

    /// Gives how many of our servers arrive with it.
    fn happen(&mut self, event: Event, now: DateTime<Utc>) -> u64 {
        match event {
            Event::Look => {}
            Event::OutOfContract { contract, count } => self.left[contract] -= count,
            Event::OutOfWindow { queue, count } => self.count(queue, |of| of.in_window -= count),
            Event::Bound { queue, count } => {
                self.count(queue, |of| of.running -= count);
                self.at(now + self.window, Event::OutOfWindow { queue, count });
                if let Some(contract) = self.queues[queue].contract {
                    let window = self.pacing.contracts[contract].window;
                    self.at(now + window, Event::OutOfContract { contract, count });
                }
                if self.queues[queue].ours {
                    self.ours_running -= count;
                    return count;
                }
            }
        }
        0
    }
}

/// What holds moves up, by position.
#[derive(Clone, Copy)]
enum Blocked {
    Quiet(usize),
    Contract(usize),
    Count(usize),
}
