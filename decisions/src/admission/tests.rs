use super::{Limits, MoveKind, MoveView, Wait, admit};
use chrono::{DateTime, TimeDelta};
use fleet::MoveOrigin;
use fleet::pace::{Caps, ScopeLimits};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A pending move; higher numbers were opened later.
pub(crate) fn pending(number: u32, source: Option<&str>) -> MoveView<u32> {
    MoveView {
        id: number,
        kind: MoveKind {
            rack: format!("rack{}", number % 4).into(),
            msb: format!("msb{}", number % 2).into(),
            source: source.map(Into::into),
            in_use: false,
        },
        origin: MoveOrigin::Targets,
        pending: true,
        out_of_service: false,
        opened_at: DateTime::UNIX_EPOCH + TimeDelta::seconds(number.into()),
    }
}

fn at_once(most: u32) -> ScopeLimits {
    let caps = Caps { at_once: Some(most), per_window: None };
    ScopeLimits { in_use: caps, idle: caps }
}

/// No limits.
pub(crate) fn unlimited() -> Limits {
    let none = ScopeLimits::default();
    Limits { region: none, msb: none, rack: none, reservation: none, window_seconds: 3_600 }
}

fn admitted(limits: &Limits, moves: &[MoveView<u32>], ended: &[(MoveKind, u64)]) -> Vec<u32> {
    let admission = admit(limits, &[], moves, ended);
    assert!(admission.wait.values().all(|wait| *wait == Wait::Limit));
    admission.begin
}

#[test]
fn idle_servers_begin_first_and_the_oldest_of_them() {
    let mut moves: Vec<_> = (0..4).map(|n| pending(n, Some("a"))).collect();
    moves[0].kind.in_use = true;
    assert_eq!(admitted(&unlimited(), &moves, &[]), [1, 2, 3, 0]);
}

#[test]
fn moves_within_limits_pass_a_move_that_waits() {
    let mut moves: Vec<_> = (0..8).map(|n| pending(n, Some("a"))).collect();
    let racks = Limits { rack: at_once(1), ..unlimited() };
    assert_eq!(admitted(&racks, &moves, &[]), [0, 1, 2, 3]);
    let msbs = Limits { msb: at_once(1), ..unlimited() };
    assert_eq!(admitted(&msbs, &moves, &[]), [0, 1]);
    let region = Limits { region: at_once(3), ..unlimited() };
    assert_eq!(admitted(&region, &moves, &[]), [0, 1, 2]);
    moves[7].kind.source = Some("b".into());
    moves[5].kind.source = None;
    let reservations = Limits { reservation: at_once(1), ..unlimited() };
    assert_eq!(admitted(&reservations, &moves, &[]), [0, 5, 7], "free servers have no limit");
    moves[0].pending = false;
    assert_eq!(admitted(&reservations, &moves, &[]), [5, 7], "one of a is under way");
}

#[test]
fn window_limit_counts_moves_that_ended_within_it() {
    let caps = Caps { at_once: None, per_window: Some(3) };
    let reservation = ScopeLimits { in_use: caps, idle: Caps::default() };
    let mut limits = Limits { reservation, ..unlimited() };
    assert!(limits.looks_back() && !unlimited().looks_back());
    let mut moves: Vec<_> = (0..4).map(|n| pending(n, Some("a"))).collect();
    moves.iter_mut().for_each(|of| of.kind.in_use = true);
    let ended = |in_use, count| {
        let (rack, msb) = ("rack9".into(), "msb9".into());
        [(MoveKind { rack, msb, source: Some("a".into()), in_use }, count)]
    };
    assert_eq!(admitted(&limits, &moves, &ended(true, 2)), [0]);
    assert_eq!(admitted(&limits, &moves, &ended(false, 2)), [0, 1, 2]);
    moves[3].pending = false;
    assert_eq!(admitted(&limits, &moves, &ended(true, 1)), [0]);
    limits.reservation.in_use.per_window = Some(0);
    assert_eq!(admitted(&limits, &moves, &[]), [0; 0]);
}

/// Every kind of move that waits or does not, in one table: origin, in use, out of service, and the
/// reason with a reached limit.
#[test]
fn reached_limit_holds_back_all_but_urgent_moves() {
    let none = Limits { region: at_once(0), ..unlimited() };
    for origin in MoveOrigin::ALL {
        for in_use in [false, true] {
            for out_of_service in [false, true] {
                let mut of = pending(1, Some("a"));
                (of.origin, of.kind.in_use, of.out_of_service) = (origin, in_use, out_of_service);
                let expected = match (out_of_service, origin.is_urgent()) {
                    (true, _) => Some(Wait::OutOfService),
                    (false, true) => None,
                    (false, false) => Some(Wait::Limit),
                };
                let admission = admit(&none, &[], &[of.clone()], &[]);
                assert_eq!(admission.wait.get(&1).copied(), expected, "{of:?}");
                assert_eq!(admission.begin.is_empty(), expected.is_some(), "{of:?}");
            }
        }
    }
}

proptest! {
    /// No limit is exceeded, and no move waits that exceeds none.
    #[test]
    fn admission_fills_limits_and_exceeds_none(
        caps in proptest::array::uniform4(0_u32..6),
        rows in proptest::collection::vec((0_u8..3, any::<bool>(), any::<bool>()), 0..40),
    ) {
        let [region, msb, rack, reservation] = caps.map(at_once);
        let limits = Limits { region, msb, rack, reservation, window_seconds: 60 };
        let mut moves = Vec::new();
        for (number, (owner, in_use, waits)) in (0..).zip(rows) {
            let mut of = pending(number, Some(&format!("r{owner}")));
            of.kind.in_use = in_use;
            of.pending = waits;
            moves.push(of);
        }
        let admitted = admit(&limits, &[], &moves, &[]).begin;
        let begun = |of: &&MoveView<u32>| !of.pending || admitted.contains(&of.id);
        type Key = fn(&MoveKind) -> Option<String>;
        let keys: [(Key, u32); 4] = [
            (|_| Some(String::new()), caps[0]),
            (|of| Some(of.msb.to_string()), caps[1]),
            (|of| Some(of.rack.to_string()), caps[2]),
            (|of| of.source.as_ref().map(ToString::to_string), caps[3]),
        ];
        let full = |of: &MoveKind| keys.iter().any(|(key, cap)| {
            let like = moves.iter().filter(begun);
            let like = like.filter(|o| o.kind.in_use == of.in_use && key(&o.kind) == key(of));
            like.count() >= *cap as usize
        });
        for of in moves.iter().filter(|of| !begun(of)) {
            prop_assert!(full(&of.kind), "move {} waits without need", of.id);
        }
        for (key, cap) in keys {
            let mut counts: BTreeMap<_, [usize; 2]> = BTreeMap::new();
            for of in moves.iter().filter(begun) {
                counts.entry((key(&of.kind), of.kind.in_use)).or_default()
                    [usize::from(admitted.contains(&of.id))] += 1;
            }
            for [before, ours] in counts.into_values() {
                prop_assert!(ours == 0 || before + ours <= cap as usize);
            }
        }
    }
}
