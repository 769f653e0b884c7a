use super::{ContractView, concerned};
use crate::admission::tests::{pending, unlimited};
use crate::admission::{MoveView, Wait, admit};
use fleet::MoveOrigin;
use fleet::pace::contract_allowance;
use proptest::prelude::*;

fn contract(in_use_micro: u32, in_use: u64, left: u64, quiet_now: bool) -> ContractView {
    ContractView { reservation: "web".into(), in_use_micro, quiet_now, in_use, left }
}

fn in_use(number: u32, source: &str) -> MoveView<u32> {
    let mut of = pending(number, Some(source));
    of.kind.in_use = true;
    of
}

#[test]
fn allowance_is_rounded_down_but_at_least_one() {
    for (in_use_micro, in_use, left, allowed, why) in [
        (20_000, 100, 0, 2, "exactly"),
        (20_000, 149, 0, 2, "rounded down"),
        (20_000, 98, 2, 2, "servers that left are part of the base"),
        (20_000, 49, 0, 1, "a small reservation is not frozen"),
        (290_000, 100, 0, 29, "no error of binary fractions"),
        (0, 1_000, 0, 0, "a share of zero forbids all"),
        (1_000_000, 7, 0, 7, "all"),
    ] {
        assert_eq!(contract_allowance(in_use_micro, in_use, left), allowed, "{why}");
    }
}

/// The reason for which each of these moves waits.
fn waits(contract: &ContractView, moves: &[MoveView<u32>]) -> Vec<Option<Wait>> {
    let admission = admit(&unlimited(), std::slice::from_ref(contract), moves, &[]);
    moves.iter().map(|of| admission.wait.get(&of.id).copied()).collect()
}

#[test]
fn contract_holds_back_servers_in_use_only() {
    let mut moves: Vec<_> = (0..8).map(|n| in_use(n, "web")).collect();
    moves[0].kind.in_use = false;
    moves[1].kind.source = Some("ads".into());
    moves[2].origin = MoveOrigin::Restore;
    moves[3].origin = MoveOrigin::Drain;
    moves[4].out_of_service = true;
    assert_eq!(concerned(&moves), ["ads".into(), "web".into()]);
    let expected = |wait| [None, None, None, None, Some(Wait::OutOfService), wait, wait, wait];
    assert_eq!(waits(&contract(0, 100, 0, false), &moves), expected(Some(Wait::Contract)));
    let quiet = contract(1_000_000, 100, 0, true);
    assert_eq!(waits(&quiet, &moves), expected(Some(Wait::QuietTime)));
    assert_eq!(waits(&contract(1_000_000, 100, 0, false), &moves), expected(None));
    moves[5].pending = false;
    moves.truncate(6);
    assert_eq!(concerned(&moves), ["ads".into(), "web".into()]);
    moves.drain(..5);
    assert!(concerned(&moves).is_empty(), "a move that has begun is not held back");
}

#[test]
fn urgent_moves_count_but_are_not_held_back() {
    let mut moves: Vec<_> = (0..3).map(|n| in_use(n, "web")).collect();
    let two = contract(20_000, 100, 0, false);
    assert_eq!(waits(&two, &moves), [None, None, Some(Wait::Contract)]);
    moves[2].origin = MoveOrigin::GiveWay;
    assert_eq!(waits(&two, &moves), [None, Some(Wait::Contract), None]);
    let none_left = contract(20_000, 98, 2, true);
    assert_eq!(waits(&none_left, &moves), [Some(Wait::QuietTime), Some(Wait::QuietTime), None]);
    moves[2].pending = false;
    let one_left = contract(20_000, 98, 1, false);
    assert_eq!(waits(&one_left, &moves)[..2], [Some(Wait::Contract); 2]);
}

#[test]
fn contract_applies_to_origins_that_can_wait() {
    for origin in MoveOrigin::ALL {
        let mut of = in_use(1, "web");
        of.origin = origin;
        let held_back = matches!(
            origin,
            MoveOrigin::Targets
                | MoveOrigin::Plan
                | MoveOrigin::Reconfigure
                | MoveOrigin::Decommission
        );
        let expected = held_back.then_some(Wait::Contract);
        assert_eq!(waits(&contract(0, 100, 0, false), &[of]), [expected], "{origin:?}");
    }
}

/// An event of the simulation below.
#[derive(Clone, Debug)]
enum Event {
    Opened(u32),
    Bound(usize),
    GivenUp(usize),
    Look,
}

proptest! {
    /// For any order of moves that open, end or fail: no window exceeds the contract, no move begins in
    /// a quiet time, and none waits that neither holds back.
    #[test]
    fn no_window_exceeds_the_contract(
        in_use_micro in prop_oneof![Just(0_u32), 1_u32..400_000],
        servers in 1_u64..60,
        quiet in 0_u64..60,
        events in prop::collection::vec((0_u64..25, prop_oneof![
            3 => (1_u32..9).prop_map(Event::Opened),
            2 => (0_usize..9).prop_map(Event::Bound),
            1 => (0_usize..9).prop_map(Event::GivenUp),
            3 => Just(Event::Look),
        ]), 1..80),
    ) {
        const WINDOW: u64 = 100;
        let (mut now, mut number) = (0, 0);
        let mut moves: Vec<MoveView<u32>> = Vec::new();
        let mut bound: Vec<u64> = Vec::new();
        // Servers that left are replaced, so the sum of servers in use and servers that left is constant.
        let most = contract_allowance(in_use_micro, servers, 0);
        for (later, event) in events {
            now += later;
            let begun = |moves: &[MoveView<u32>], nth: usize| {
                (0..moves.len()).filter(|i| !moves[*i].pending).nth(nth)
            };
            match event {
                Event::Opened(count) => for _ in 0..count {
                    moves.push(in_use(number, "web"));
                    number += 1;
                },
                Event::Bound(nth) => if let Some(at) = begun(&moves, nth) {
                    moves.remove(at);
                    bound.push(now);
                },
                Event::GivenUp(nth) => if let Some(at) = begun(&moves, nth) {
                    moves.remove(at);
                },
                Event::Look => {}
            }
            let left = bound.iter().filter(|at| **at + WINDOW > now).count() as u64;
            let is_quiet = now % 60 < quiet;
            let used = contract(in_use_micro, servers.saturating_sub(left), left, is_quiet);
            let admission = admit(&unlimited(), &[used], &moves, &[]);
            prop_assert!(!is_quiet || admission.begin.is_empty());
            for of in moves.iter_mut().filter(|of| admission.begin.contains(&of.id)) {
                of.pending = false;
            }
            let waiting = moves.iter().filter(|of| of.pending).count();
            let used = left + (moves.len() - waiting) as u64;
            prop_assert!(used <= most, "{used} of {most} at {now}");
            prop_assert!(waiting == 0 || is_quiet || used >= most, "{waiting} wait without need");
        }
        // Every window, not only those that end at a look.
        for end in &bound {
            let held = bound.iter().filter(|at| *at <= end && **at + WINDOW > *end).count() as u64;
            prop_assert!(held <= most);
        }
    }
}
