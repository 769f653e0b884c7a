//! When servers arrive that must first be moved.
//!
//! The limits and contracts of the mover are played through on a calendar, move by move, in the order in
//! which it lets them begin. Every move takes as long as such moves took lately.

use super::{MoveKind, OpenMoves, Pacing, Scope};
use crate::id::Name;
use chrono::{DateTime, TimeDelta, Utc};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;

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
    Contract(Name),
    /// A quiet time of a reservation.
    QuietTime(Name),
}

impl fmt::Display for Holdup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holdup::Limit(Scope::Region) => write!(out, "limit of moves in the region"),
            Holdup::Limit(Scope::Msb(name)) => write!(out, "limit of moves in MSB {name}"),
            Holdup::Limit(Scope::Rack(name)) => write!(out, "limit of moves in rack {name}"),
            Holdup::Limit(Scope::Reservation(name)) => write!(out, "limit of moves out of {name}"),
            Holdup::Contract(name) => write!(out, "churn contract of {name}"),
            Holdup::QuietTime(name) => write!(out, "quiet time of {name}"),
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
    /// They count no more for a window of the limits.
    OutOfWindow { queue: usize, count: u64 },
    /// A server that left counts no more for a contract.
    OutOfContract { contract: usize, count: u64 },
    /// A quiet time begins or ends.
    Look,
}

struct Queue {
    kind: MoveKind,
    ours: bool,
    urgent: bool,
    waiting: u64,
}

struct Play<'a> {
    pacing: &'a Pacing,
    queues: Vec<Queue>,
    running: BTreeMap<(Scope, bool), u64>,
    /// Running, or done within the window.
    in_window: BTreeMap<(Scope, bool), u64>,
    /// By contract: left within its window, or leaving.
    left: Vec<u64>,
    events: BinaryHeap<Reverse<(DateTime<Utc>, Event)>>,
}

impl Pacing {
    /// Puts moves behind all that are open.
    pub fn open(&mut self, moves: Vec<MoveKind>) {
        let waits = |kind| OpenMoves { kind, waiting: true, urgent: false, count: 1 };
        self.open.extend(moves.into_iter().map(waits));
    }

    /// When the servers of these moves arrive, opened now, behind all that are open.
    pub fn arrival(&self, moves: &[MoveKind]) -> Arrival {
        let mut play = Play::new(self, moves);
        play.run()
    }
}

impl<'a> Play<'a> {
    fn new(pacing: &'a Pacing, moves: &[MoveKind]) -> Play<'a> {
        let mut ours: BTreeMap<&MoveKind, u64> = BTreeMap::new();
        for kind in moves {
            *ours.entry(kind).or_default() += 1;
        }
        let mut play = Play {
            pacing,
            queues: Vec::new(),
            running: BTreeMap::new(),
            in_window: BTreeMap::new(),
            left: vec![0; pacing.contracts.len()],
            events: BinaryHeap::new(),
        };
        let window = pacing.limits.as_ref().map(|limits| limits.window()).unwrap_or_default();
        let window = TimeDelta::from_std(window).unwrap_or_default();
        for (kind, count) in &pacing.begun {
            // When in the window they ended is not known: at its end, at the latest.
            let queue = play.queue(kind, false, false, 0);
            play.count_window(queue, *count);
            play.at(pacing.now + window, Event::OutOfWindow { queue, count: *count });
        }
        for of in &pacing.open {
            let waiting = if of.waiting { of.count } else { 0 };
            let queue = play.queue(&of.kind, false, of.urgent, waiting);
            if !of.waiting {
                play.begin(queue, of.count, pacing.now);
            }
        }
        for (kind, count) in ours {
            play.queue(kind, true, false, count);
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
        self.queues.push(Queue { kind: kind.clone(), ours, urgent, waiting });
        self.queues.len() - 1
    }

    fn at(&mut self, at: DateTime<Utc>, event: Event) {
        self.events.push(Reverse((at, event)));
    }

    fn count_window(&mut self, queue: usize, count: u64) {
        let kind = &self.queues[queue].kind;
        for scope in kind.scopes() {
            *self.in_window.entry((scope, kind.in_use)).or_default() += count;
        }
    }

    /// The contract that moves of a queue count for.
    fn contract(&self, queue: usize) -> Option<usize> {
        let kind = &self.queues[queue].kind;
        let source = kind.source.as_ref().filter(|_| kind.in_use)?;
        self.pacing.contracts.iter().position(|of| of.reservation == *source)
    }

    fn begin(&mut self, queue: usize, count: u64, now: DateTime<Utc>) {
        let in_use = self.queues[queue].kind.in_use;
        let scopes: Vec<Scope> = self.queues[queue].kind.scopes().collect();
        for scope in scopes {
            *self.running.entry((scope, in_use)).or_default() += count;
        }
        self.count_window(queue, count);
        if let Some(contract) = self.contract(queue) {
            self.left[contract] += count;
        }
        let seconds = i64::from(self.pacing.seconds(in_use));
        self.at(now + TimeDelta::seconds(seconds), Event::Bound { queue, count });
    }

    /// How many of a queue may begin, and what holds the others up.
    fn room(&self, queue: usize, now: DateTime<Utc>) -> (u64, Option<Holdup>) {
        let of = &self.queues[queue];
        let mut room = (of.waiting, None);
        if of.urgent {
            return room;
        }
        let mut at_most = |most: u64, holdup: Holdup| {
            if most < room.0 {
                room = (most, Some(holdup));
            }
        };
        if let Some(contract) = self.contract(queue) {
            let terms = &self.pacing.contracts[contract];
            if terms.is_quiet(now) {
                at_most(0, Holdup::QuietTime(terms.reservation.clone()));
            }
            let left = terms.allowed.saturating_sub(self.left[contract]);
            at_most(left, Holdup::Contract(terms.reservation.clone()));
        }
        for scope in of.kind.scopes() {
            let Some(limits) = &self.pacing.limits else { break };
            let caps = limits.caps(&scope, of.kind.in_use);
            let key = (scope, of.kind.in_use);
            for (cap, counts) in [(caps.at_once, &self.running), (caps.per_window, &self.in_window)]
            {
                if let Some(cap) = cap {
                    let used = counts.get(&key).copied().unwrap_or(0);
                    at_most(u64::from(cap).saturating_sub(used), Holdup::Limit(key.0.clone()));
                }
            }
        }
        room
    }

    fn run(&mut self) -> Arrival {
        let mut arrival = Arrival::default();
        let mut now = self.pacing.now;
        let until = now + TimeDelta::days(DAYS_MAX);
        // As the mover does: those that are urgent, then idle servers, then in the order they were opened.
        let mut order: Vec<usize> = (0..self.queues.len()).collect();
        order.sort_by_key(|&queue| {
            let of = &self.queues[queue];
            (!of.urgent, of.kind.in_use, of.ours, queue)
        });
        let mut arrived = 0;
        for _ in 0..EVENTS_MAX {
            for &queue in &order {
                if self.queues[queue].waiting == 0 {
                    continue;
                }
                let (room, holdup) = self.room(queue, now);
                if room > 0 {
                    self.queues[queue].waiting -= room;
                    self.begin(queue, room, now);
                }
                if self.queues[queue].ours && self.queues[queue].waiting > 0 {
                    arrival.holdup = holdup;
                }
            }
            if self.queues.iter().any(|queue| queue.ours && queue.waiting > 0) {
                let changes = self.pacing.contracts.iter().filter_map(|of| of.next_change(now));
                let next = self.events.peek().map(|next| next.0.0);
                if let Some(change) = changes.min()
                    && next.is_none_or(|next| change < next)
                {
                    self.at(change, Event::Look);
                }
            }
            let Some(Reverse((at, event))) = self.events.pop() else { break };
            if at > until {
                break;
            }
            now = now.max(at);
            arrived += self.happen(event, now);
            while self.events.peek().is_some_and(|next| next.0.0 <= now) {
                let Some(Reverse((_, event))) = self.events.pop() else { break };
                arrived += self.happen(event, now);
            }
            if arrived > arrival.steps.last().map_or(0, |step| step.1) {
                arrival.steps.push((now, arrived));
            }
            let waiting = self.queues.iter().filter(|queue| queue.ours).map(|of| of.waiting);
            if waiting.sum::<u64>() == 0 && !self.ours_run() {
                break;
            }
        }
        let all: u64 = self.queues.iter().filter(|queue| queue.ours).map(|of| of.waiting).sum();
        arrival.later = all + self.ours_running();
        arrival
    }

    fn ours_running(&self) -> u64 {
        let count = |Reverse((_, event)): &Reverse<(DateTime<Utc>, Event)>| match event {
            Event::Bound { queue, count } if self.queues[*queue].ours => *count,
            _ => 0,
        };
        self.events.iter().map(count).sum()
    }

    fn ours_run(&self) -> bool {
        self.ours_running() > 0
    }

    /// Gives how many of our servers arrive with it.
    fn happen(&mut self, event: Event, now: DateTime<Utc>) -> u64 {
        match event {
            Event::Look => 0,
            Event::OutOfContract { contract, count } => {
                self.left[contract] = self.left[contract].saturating_sub(count);
                0
            }
            Event::OutOfWindow { queue, count } => {
                let kind = &self.queues[queue].kind;
                for scope in kind.scopes() {
                    if let Some(counts) = self.in_window.get_mut(&(scope, kind.in_use)) {
                        *counts = counts.saturating_sub(count);
                    }
                }
                0
            }
            Event::Bound { queue, count } => {
                let kind = self.queues[queue].kind.clone();
                for scope in kind.scopes() {
                    if let Some(counts) = self.running.get_mut(&(scope, kind.in_use)) {
                        *counts = counts.saturating_sub(count);
                    }
                }
                if let Some(limits) = &self.pacing.limits {
                    let window = TimeDelta::seconds(limits.window_seconds.into());
                    self.at(now + window, Event::OutOfWindow { queue, count });
                }
                if let Some(contract) = self.contract(queue) {
                    let window = self.pacing.contracts[contract].window;
                    self.at(now + window, Event::OutOfContract { contract, count });
                }
                if self.queues[queue].ours { count } else { 0 }
            }
        }
    }
}
