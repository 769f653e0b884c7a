//! What churn contracts leave: which moves of servers in use must wait for a reservation's sake.
//!
//! What counts is what takes a server in use away from the reservation, whoever wants it: under way, or
//! bound within the window. What waits are moves that a version of the targets wants; nobody is short
//! while they do. So a window never holds more than the contract, unless urgent moves alone do.

use crate::limits::Wait;
use broker::{ContractUse, MoveOrigin, MoveState, OpenMove};
use fleet::Name;
use std::collections::{BTreeMap, BTreeSet};

/// The reservation whose contract a move counts for. Another host profile ends containers as well.
fn disturbed(of: &OpenMove) -> Option<&Name> {
    let disturbs = !of.origin.stays() || of.origin == MoveOrigin::Reconfigure;
    of.source.as_ref().filter(|_| of.in_use && disturbs)
}

/// The reservations whose contracts matter now: others are not asked for.
pub fn concerned(moves: &[OpenMove]) -> Vec<Name> {
    let waiting = moves.iter().filter(|of| of.state == MoveState::Pending);
    let names: BTreeSet<&Name> = waiting.filter_map(disturbed).collect();
    names.into_iter().cloned().collect()
}

struct Budget {
    quiet: bool,
    allowed: u64,
    used: u64,
}

/// What is left of each contract.
pub(crate) struct Budgets<'a>(BTreeMap<&'a Name, Budget>);

impl<'a> Budgets<'a> {
    /// Before anything under way is counted.
    pub(crate) fn new(contracts: &'a [ContractUse]) -> Budgets<'a> {
        let budget = |of: &'a ContractUse| {
            (&of.reservation, Budget { quiet: of.quiet_now, allowed: of.allowed(), used: of.left })
        };
        Budgets(contracts.iter().map(budget).collect())
    }

    /// Counts a move that is under way or begins.
    pub(crate) fn add(&mut self, of: &OpenMove) {
        if let Some(budget) = disturbed(of).and_then(|name| self.0.get_mut(name)) {
            budget.used += 1;
        }
    }

    /// Why a move must wait, if it must.
    pub(crate) fn wait(&self, of: &OpenMove) -> Option<Wait> {
        let budget = self.0.get(disturbed(of)?).filter(|_| {
            let waits = [
                MoveOrigin::Targets,
                MoveOrigin::Plan,
                MoveOrigin::Reconfigure,
                MoveOrigin::Decommission,
            ];
            waits.contains(&of.origin)
        })?;
        if budget.quiet {
            return Some(Wait::Quiet);
        }
        (budget.used >= budget.allowed).then_some(Wait::Contract)
    }
}

#[cfg(test)]
mod tests {
    use super::concerned;
    use crate::limits::tests::open_move;
    use crate::limits::{Wait, admit};
    use broker::{Contract, ContractUse, MoveOrigin, MoveState, OpenMove};
    use chrono::DateTime;
    use fleet::pace::{Caps, Limits, Pace};
    use proptest::prelude::*;
    use std::time::Duration;

    fn contract(in_use_micro: u32, in_use: u64, left: u64, quiet_now: bool) -> ContractUse {
        let window = Duration::from_secs(86_400);
        let zone = "UTC".to_owned();
        ContractUse {
            reservation: "web".into(),
            contract: Contract { in_use_micro, window, quiet: Vec::new(), zone },
            set_by: "ann".to_owned(),
            set_at: DateTime::UNIX_EPOCH,
            quiet_now,
            in_use,
            left,
            leaving: 0,
        }
    }

    fn unlimited() -> Limits {
        let none = Caps::default();
        let none = Pace { in_use: none, idle: none };
        Limits { region: none, msb: none, rack: none, reservation: none, window_seconds: 60 }
    }

    fn in_use(number: u32, source: &str) -> OpenMove {
        OpenMove { in_use: true, ..open_move(number, Some(source), Some("elsewhere")) }
    }

    /// How each of these moves waits.
    fn waits(contract: &ContractUse, moves: &[OpenMove]) -> Vec<Option<Wait>> {
        let admission = admit(&unlimited(), std::slice::from_ref(contract), moves, &[]);
        moves.iter().map(|of| admission.wait.get(&of.id).copied()).collect()
    }

    #[test]
    fn servers_in_use_wait_and_nothing_else() {
        let mut moves: Vec<OpenMove> = (0..8).map(|n| in_use(n, "web")).collect();
        moves[0].in_use = false;
        moves[1].source = Some("ads".into());
        moves[2].origin = MoveOrigin::Restore;
        moves[3].origin = MoveOrigin::Drain;
        moves[4].out_of_use = true;
        assert_eq!(concerned(&moves), ["ads".into(), "web".into()]);
        let expected = |wait| [None, None, None, None, Some(Wait::OutOfUse), wait, wait, wait];
        assert_eq!(waits(&contract(0, 100, 0, false), &moves), expected(Some(Wait::Contract)));
        assert_eq!(waits(&contract(1_000_000, 100, 0, true), &moves), expected(Some(Wait::Quiet)));
        assert_eq!(waits(&contract(1_000_000, 100, 0, false), &moves), expected(None));
        moves[5].state = MoveState::Preempting;
        moves.truncate(6);
        assert_eq!(concerned(&moves), ["ads".into(), "web".into()]);
        moves.drain(..5);
        assert!(concerned(&moves).is_empty(), "what has begun is not held back");
    }

    #[test]
    fn urgent_moves_do_not_wait_but_count() {
        let mut moves: Vec<OpenMove> = (0..3).map(|n| in_use(n, "web")).collect();
        let two = contract(20_000, 100, 0, false);
        assert_eq!(waits(&two, &moves), [None, None, Some(Wait::Contract)]);
        moves[2].origin = MoveOrigin::GiveWay;
        assert_eq!(waits(&two, &moves), [None, Some(Wait::Contract), None]);
        let none_left = contract(20_000, 98, 2, true);
        assert_eq!(waits(&none_left, &moves), [Some(Wait::Quiet), Some(Wait::Quiet), None]);
        moves[2].state = MoveState::Reconfiguring;
        let one_left = contract(20_000, 98, 1, false);
        assert_eq!(waits(&one_left, &moves)[..2], [Some(Wait::Contract); 2]);
    }

    /// What happens next, and how much later.
    #[derive(Clone, Debug)]
    enum Happens {
        Wanted(u32),
        Done(usize),
        GivenUp(usize),
        Look,
    }

    proptest! {
        /// Whatever order moves come in and end in: no window holds more than the contract, nothing
        /// begins in quiet times, and nothing waits that neither holds back.
        #[test]
        fn no_window_holds_more_than_the_contract(
            in_use_micro in prop_oneof![Just(0_u32), 1_u32..400_000],
            servers in 1_u64..60,
            quiet in 0_u64..60,
            events in prop::collection::vec((0_u64..25, prop_oneof![
                3 => (1_u32..9).prop_map(Happens::Wanted),
                2 => (0_usize..9).prop_map(Happens::Done),
                1 => (0_usize..9).prop_map(Happens::GivenUp),
                3 => Just(Happens::Look),
            ]), 1..80),
        ) {
            const WINDOW: u64 = 100;
            let (mut now, mut number) = (0, 0);
            let mut moves: Vec<OpenMove> = Vec::new();
            let mut bound: Vec<u64> = Vec::new();
            // A server that left is made up for: as many are in use or left of late as ever.
            let most = contract(in_use_micro, servers, 0, false).allowed();
            for (later, happens) in events {
                now += later;
                let begun = |moves: &[OpenMove], nth: usize| {
                    let mut begun = (0..moves.len()).filter(|i| moves[*i].state != MoveState::Pending);
                    begun.nth(nth)
                };
                match happens {
                    Happens::Wanted(count) => for _ in 0..count {
                        moves.push(in_use(number, "web"));
                        number += 1;
                    },
                    Happens::Done(nth) => if let Some(at) = begun(&moves, nth) {
                        moves.remove(at);
                        bound.push(now);
                    },
                    Happens::GivenUp(nth) => if let Some(at) = begun(&moves, nth) {
                        moves.remove(at);
                    },
                    Happens::Look => {}
                }
                let left = bound.iter().filter(|at| **at + WINDOW > now).count() as u64;
                let is_quiet = now % 60 < quiet;
                let used = contract(in_use_micro, servers.saturating_sub(left), left, is_quiet);
                let admission = admit(&unlimited(), &[used], &moves, &[]);
                prop_assert!(!is_quiet || admission.begin.is_empty());
                for of in moves.iter_mut().filter(|of| admission.begin.contains(&of.id)) {
                    of.state = MoveState::Preempting;
                }
                let waiting = moves.iter().filter(|of| of.state == MoveState::Pending).count();
                let used = left + (moves.len() - waiting) as u64;
                prop_assert!(used <= most, "{used} of {most} at {now}");
                prop_assert!(waiting == 0 || is_quiet || used >= most, "{waiting} wait for nothing");
            }
            // Every window there ever was, not only those that end at a look.
            for end in &bound {
                let held = bound.iter().filter(|at| *at <= end && **at + WINDOW > *end).count() as u64;
                prop_assert!(held <= most);
            }
        }
    }
}
