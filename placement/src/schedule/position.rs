//! The state between two phases, and what a phase may do in it.

use super::board::{Board, Effect};
use crate::cluster::Amount;

/// What is on a node: when the phase starts, while it runs, and when it ends.
#[derive(Clone, Debug)]
struct Load {
    start: Vec<Amount>,
    running: Vec<Amount>,
    end: Vec<Amount>,
    /// Whether the node is over its capacity when the phase starts.
    is_over: bool,
}

/// Members in a domain: when the phase starts, while it runs, and when it ends.
#[derive(Clone, Copy, Debug)]
struct Count {
    start: u32,
    running: u32,
    end: u32,
}

/// The state between two phases, with the phase that is being made.
#[derive(Clone, Debug)]
pub(super) struct Position {
    loads: Vec<Load>,
    counts: Vec<Vec<Count>>,
    /// Domains with a member when the phase starts and when it ends, by counter.
    used: Vec<(u32, u32)>,
}

/// What keeps a leg out of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// The node is over its capacity.
    Over { node: usize },
    /// The node lacks some amount of a metric.
    Room { node: usize, metric: usize, lacks: Amount },
    /// The domain would have too many members.
    Crowded { counter: usize, domain: usize },
    /// The domain would have members of both groups.
    Apart { counter: usize, from: usize, domain: usize },
    /// The group would use too few or too many domains.
    Domains { counter: usize },
    /// A member would be without a member of the group that it needs.
    Near { counter: usize, to: usize, domain: usize },
}

fn is_over(board: &Board, node: usize, usage: &[Amount]) -> bool {
    usage.iter().zip(&board.nodes[node].capacity).any(|(used, capacity)| used > capacity)
}

impl Position {
    pub(super) fn new(board: &Board) -> Position {
        let load = |(node, place): (usize, &super::board::Place)| Load {
            start: place.usage.clone(),
            running: place.usage.clone(),
            end: place.usage.clone(),
            is_over: is_over(board, node, &place.usage),
        };
        let count = |members: &u32| Count { start: *members, running: *members, end: *members };
        let counters = board.counters.iter();
        Position {
            loads: board.nodes.iter().enumerate().map(load).collect(),
            counts: counters.clone().map(|of| of.members.iter().map(count).collect()).collect(),
            used: counters.map(|of| (of.used, of.used)).collect(),
        }
    }

    /// Adds a leg to the phase if no limit forbids it, in any order in which the moves end.
    pub(super) fn begin(&mut self, board: &Board, leg: usize) -> Result<(), Obstacle> {
        let effect = &board.effects[leg];
        self.add(effect);
        let found = self.limits(board, effect);
        if found.is_err() {
            self.cancel(board, leg);
        }
        found
    }

    fn add(&mut self, effect: &Effect) {
        for on in &effect.nodes {
            let load = &mut self.loads[on.node];
            for (running, extra) in load.running.iter_mut().zip(&on.extra) {
                *running += extra;
            }
            for (end, change) in load.end.iter_mut().zip(&on.change) {
                *end += change;
            }
        }
        for on in &effect.counters {
            let (counts, used) = (&mut self.counts[on.counter], &mut self.used[on.counter].1);
            counts[on.new].running += 1;
            *used += u32::from(counts[on.new].end == 0);
            counts[on.new].end += 1;
            if let Some(old) = on.old {
                counts[old].end -= 1;
                *used -= u32::from(counts[old].end == 0);
            }
        }
    }

    /// Takes a leg out of the phase.
    pub(super) fn cancel(&mut self, board: &Board, leg: usize) {
        let effect = &board.effects[leg];
        for on in &effect.nodes {
            let load = &mut self.loads[on.node];
            for (running, extra) in load.running.iter_mut().zip(&on.extra) {
                *running -= extra;
            }
            for (end, change) in load.end.iter_mut().zip(&on.change) {
                *end -= change;
            }
        }
        for on in effect.counters.iter().rev() {
            let (counts, used) = (&mut self.counts[on.counter], &mut self.used[on.counter].1);
            if let Some(old) = on.old {
                *used += u32::from(counts[old].end == 0);
                counts[old].end += 1;
            }
            counts[on.new].running -= 1;
            counts[on.new].end -= 1;
            *used -= u32::from(counts[on.new].end == 0);
        }
    }

    /// Limits that hold while a phase runs: fewer legs never break them.
    fn limits(&self, board: &Board, effect: &Effect) -> Result<(), Obstacle> {
        for on in effect.nodes.iter().filter(|on| on.puts) {
            let (node, load) = (on.node, &self.loads[on.node]);
            if load.is_over {
                return Err(Obstacle::Over { node });
            }
            for (metric, capacity) in board.nodes[node].capacity.iter().enumerate() {
                let lacks = load.running[metric].saturating_sub(*capacity);
                if board.overlaps[metric] && lacks > 0 {
                    return Err(Obstacle::Room { node, metric, lacks });
                }
            }
        }
        for on in &effect.counters {
            let (counter, domain) = (on.counter, on.new);
            let of = &board.counters[counter];
            if self.counts[counter][domain].running > of.per_domain {
                return Err(Obstacle::Crowded { counter, domain });
            }
            let apart = of.apart.iter().find(|from| self.counts[**from][domain].running > 0);
            if let Some(from) = apart {
                return Err(Obstacle::Apart { counter, from: *from, domain });
            }
        }
        Ok(())
    }

    /// What must hold when the phase ends, of what a leg of it changes.
    pub(super) fn end(&self, board: &Board, leg: usize) -> Result<(), Obstacle> {
        let effect = &board.effects[leg];
        for on in &effect.nodes {
            let (node, load) = (on.node, &self.loads[on.node]);
            for (metric, capacity) in board.nodes[node].capacity.iter().enumerate() {
                let lacks = load.end[metric].saturating_sub(*capacity.max(&load.start[metric]));
                if lacks > 0 {
                    return Err(Obstacle::Room { node, metric, lacks });
                }
            }
        }
        for on in &effect.counters {
            let counter = on.counter;
            let of = &board.counters[counter];
            let (before, after) = self.used[counter];
            if after < of.at_least.min(before) || after > of.at_most.max(before) {
                return Err(Obstacle::Domains { counter });
            }
            for to in &of.needs {
                self.near(counter, *to, on.new)?;
            }
            for needing in on.old.iter().flat_map(|_| &of.needed_by) {
                on.old.map_or(Ok(()), |old| self.near(*needing, counter, old))?;
            }
        }
        Ok(())
    }

    /// Whether members of a domain have what they need, unless they are the ones that had it not.
    fn near(&self, counter: usize, to: usize, domain: usize) -> Result<(), Obstacle> {
        let (of, needed) = (self.counts[counter][domain], self.counts[to][domain]);
        let was_broken = of.start > 0 && needed.start == 0 && of.running == of.start;
        let holds = of.end == 0 || needed.end > 0 || was_broken;
        if holds { Ok(()) } else { Err(Obstacle::Near { counter, to, domain }) }
    }

    /// Ends the phase: its legs are where they go.
    pub(super) fn close(&mut self, board: &Board, phase: &[usize]) {
        for leg in phase {
            let effect = &board.effects[*leg];
            for on in &effect.nodes {
                let load = &mut self.loads[on.node];
                load.start.clone_from(&load.end);
                load.running.clone_from(&load.end);
                load.is_over = is_over(board, on.node, &load.end);
            }
            for on in &effect.counters {
                for domain in on.old.into_iter().chain([on.new]) {
                    let count = &mut self.counts[on.counter][domain];
                    count.start = count.end;
                    count.running = count.end;
                }
                self.used[on.counter].0 = self.used[on.counter].1;
            }
        }
    }

    /// Members in a domain when the phase starts.
    pub(super) fn members(&self, counter: usize, domain: usize) -> u32 {
        self.counts[counter][domain].start
    }

    /// Whether there is room for some amounts beside what is on a node when the phase starts.
    pub(super) fn has_room(&self, board: &Board, node: usize, of: &[Amount]) -> bool {
        let load = &self.loads[node];
        !load.is_over
            && (load.start.iter().zip(of).zip(&board.nodes[node].capacity))
                .all(|((start, extra), capacity)| start + extra <= *capacity)
    }
}
