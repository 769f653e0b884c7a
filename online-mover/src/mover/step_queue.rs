//! Moves with a step to do: those whose host is being asked, those that wait for their turn, and those
//! that pause before a retry.

use broker::{MoveId, MoveState, OpenMove};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tokio::time::Instant;

/// A step that is requested again.
struct Retry {
    /// Requests so far.
    tries: u32,
    not_before: Instant,
}

/// The queue of steps.
#[derive(Default)]
pub(super) struct StepQueue {
    in_flight: BTreeSet<MoveId>,
    ready: VecDeque<MoveId>,
    retries: BTreeMap<MoveId, Retry>,
}

impl StepQueue {
    /// Adds moves that have begun and are neither queued, nor in flight, nor paused.
    pub(super) fn enqueue_ready(&mut self, moves: &BTreeMap<MoveId, OpenMove>, now: Instant) {
        let queued: BTreeSet<MoveId> = self.ready.iter().copied().collect();
        for of in moves.values().filter(|of| of.state != MoveState::Pending) {
            let paused = self.retries.get(&of.id).is_some_and(|retry| retry.not_before > now);
            if !paused && !self.in_flight.contains(&of.id) && !queued.contains(&of.id) {
                self.ready.push_back(of.id);
            }
        }
    }

    /// Takes the next move whose host is to be asked, and the number of requests for its step so far.
    /// At most `most` moves are in flight.
    pub(super) fn next(
        &mut self,
        moves: &BTreeMap<MoveId, OpenMove>,
        most: usize,
    ) -> Option<(MoveId, u32)> {
        while self.in_flight.len() < most {
            let id = self.ready.pop_front()?;
            if moves.get(&id).is_some_and(|of| of.state != MoveState::Pending) {
                self.in_flight.insert(id);
                return Some((id, self.retries.get(&id).map_or(0, |retry| retry.tries)));
            }
        }
        None
    }

    /// The host of a move has answered.
    pub(super) fn answered(&mut self, id: MoveId) {
        self.in_flight.remove(&id);
    }

    /// The step of a move is requested again, not before an instant.
    pub(super) fn retry(&mut self, id: MoveId, tries: u32, not_before: Instant) {
        self.retries.insert(id, Retry { tries, not_before });
    }

    /// The step of a move is done, or the move has ended.
    pub(super) fn reset(&mut self, id: MoveId) {
        self.retries.remove(&id);
    }

    /// Forgets moves that have ended.
    pub(super) fn retain(&mut self, moves: &BTreeMap<MoveId, OpenMove>) {
        self.retries.retain(|id, _| moves.contains_key(id));
        self.ready.retain(|id| moves.contains_key(id));
    }

    /// Requests nothing that is not in flight already.
    pub(super) fn stop(&mut self) {
        self.ready.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::StepQueue;
    use broker::{MoveId, MoveOrigin, MoveState, OpenMove, TargetVersion};
    use chrono::DateTime;
    use std::collections::BTreeMap;
    use std::time::Duration;
    use tokio::time::Instant;

    fn moves(states: &[MoveState]) -> BTreeMap<MoveId, OpenMove> {
        let of = |(number, state): (usize, &MoveState)| {
            let (id, at) = (MoveId::from_u128(number as u128), DateTime::UNIX_EPOCH);
            let of = OpenMove {
                id,
                server: format!("s{number}").into(),
                rack: "rack".into(),
                msb: "msb".into(),
                source: None,
                target: None,
                host_profile: None,
                version: TargetVersion(1),
                state: *state,
                state_at: at,
                opened_at: at,
                origin: MoveOrigin::Targets,
                in_use: false,
                out_of_use: false,
            };
            (id, of)
        };
        states.iter().enumerate().map(of).collect()
    }

    fn taken(queue: &mut StepQueue, moves: &BTreeMap<MoveId, OpenMove>) -> Vec<(u128, u32)> {
        let taken = std::iter::from_fn(|| queue.next(moves, 2));
        taken.map(|(id, tries)| (uuid::Uuid::from(id).as_u128(), tries)).collect()
    }

    #[test]
    fn queue_gives_each_begun_move_once_and_keeps_the_limit() {
        let moves = moves(&[
            MoveState::Preempting,
            MoveState::Pending,
            MoveState::CleaningUp,
            MoveState::Reconfiguring,
        ]);
        let (mut queue, now) = (StepQueue::default(), Instant::now());
        queue.enqueue_ready(&moves, now);
        queue.enqueue_ready(&moves, now);
        assert_eq!(taken(&mut queue, &moves), [(0, 0), (2, 0)], "two at a time");
        queue.answered(MoveId::from_u128(0));
        assert_eq!(taken(&mut queue, &moves), [(3, 0)]);
        queue.enqueue_ready(&moves, now);
        queue.answered(MoveId::from_u128(2));
        assert_eq!(taken(&mut queue, &moves), [(0, 0)], "not answered: 3; not queued again: 2");
    }

    #[test]
    fn retry_waits_for_its_pause_and_counts() {
        let moves = moves(&[MoveState::Preempting]);
        let (mut queue, now, pause) =
            (StepQueue::default(), Instant::now(), Duration::from_secs(5));
        let id = MoveId::from_u128(0);
        queue.retry(id, 3, now + pause);
        queue.enqueue_ready(&moves, now);
        assert_eq!(taken(&mut queue, &moves), []);
        queue.enqueue_ready(&moves, now + pause);
        assert_eq!(taken(&mut queue, &moves), [(0, 3)]);
        queue.answered(id);
        queue.reset(id);
        queue.enqueue_ready(&moves, now);
        assert_eq!(taken(&mut queue, &moves), [(0, 0)], "the next step starts at zero");
    }

    #[test]
    fn stopped_queue_gives_nothing() {
        let moves = moves(&[MoveState::Preempting]);
        let mut queue = StepQueue::default();
        queue.enqueue_ready(&moves, Instant::now());
        queue.stop();
        assert_eq!(taken(&mut queue, &moves), []);
    }
}
