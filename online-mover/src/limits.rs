//! How many moves at once and per hour, and which of those that wait may begin.
//!
//! A move counts for its region, its MSB, its rack and the reservation it leaves; for each of the
//! four, servers in use and idle ones have limits of their own. A move that would break any of them
//! waits; those behind it that break none may pass it.

use crate::contracts::Budgets;
use broker::{BegunOfLate, ContractUse, MoveState, OpenMove};
use fleet::Name;
use fleet::pace::Limits;
use std::collections::BTreeMap;
use uuid::Uuid;

/// What a move counts for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Region,
    Msb(Name),
    Rack(Name),
    Reservation(Name),
}

/// Why a move does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// Its server is out of use and waits for its repair.
    OutOfUse,
    /// A time of the day at which the reservation it leaves is not disturbed.
    Quiet,
    /// As many servers in use have left that reservation within its window as it agreed to.
    Contract,
    /// A limit of the region, its MSB, its rack or the reservation it leaves.
    Limit,
}

impl Wait {
    /// Every reason.
    pub const ALL: [Wait; 4] = [Wait::OutOfUse, Wait::Quiet, Wait::Contract, Wait::Limit];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Wait::OutOfUse => "out_of_use",
            Wait::Quiet => "quiet",
            Wait::Contract => "contract",
            Wait::Limit => "limit",
        }
    }
}

/// What becomes of the moves that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Those that may begin, in the order they should.
    pub begin: Vec<Uuid>,
    /// The others, and why they wait.
    pub wait: BTreeMap<Uuid, Wait>,
}

/// Which of the moves that wait may begin, in the order they should: those somebody is short without
/// (they wait for no limit and no contract, and count), idle servers, then those that have waited
/// longest. What is out of use waits for its repair. `moves` are all moves under way, those that wait
/// included; `contracts` are those of the reservations that servers leave.
pub fn admit(
    limits: &Limits,
    contracts: &[ContractUse],
    moves: &[OpenMove],
    late: &[BegunOfLate],
) -> Admission {
    let mut budgets = Budgets::new(contracts);
    let mut counts = Counts { limits, under_way: BTreeMap::new(), begun: BTreeMap::new() };
    for row in late {
        let scopes = scopes(&row.rack, &row.msb, row.source.as_ref());
        for scope in scopes {
            *counts.begun.entry((scope, row.in_use)).or_default() +=
                u64::try_from(row.count).unwrap_or(0);
        }
    }
    let (mut waiting, begun): (Vec<&OpenMove>, Vec<&OpenMove>) =
        moves.iter().partition(|of| of.state == MoveState::Pending);
    for of in begun {
        counts.add(of);
        budgets.add(of);
    }
    waiting.sort_by_key(|of| (!of.origin.is_urgent(), of.in_use, of.opened_at, of.id));
    let mut admission = Admission::default();
    for of in waiting {
        let wait = match of {
            of if of.out_of_use => Some(Wait::OutOfUse),
            of if of.origin.is_urgent() => None,
            of => budgets.wait(of).or_else(|| (!counts.allow(of)).then_some(Wait::Limit)),
        };
        if let Some(wait) = wait {
            admission.wait.insert(of.id, wait);
        } else {
            counts.add(of);
            budgets.add(of);
            admission.begin.push(of.id);
        }
    }
    admission
}

fn scopes(rack: &Name, msb: &Name, source: Option<&Name>) -> impl Iterator<Item = Scope> {
    let places = [Scope::Region, Scope::Msb(msb.clone()), Scope::Rack(rack.clone())];
    places.into_iter().chain(source.cloned().map(Scope::Reservation))
}

struct Counts<'a> {
    limits: &'a Limits,
    /// By scope and use.
    under_way: BTreeMap<(Scope, bool), u64>,
    /// Under way, or ended within the window after they had begun.
    begun: BTreeMap<(Scope, bool), u64>,
}

impl Counts<'_> {
    fn allow(&self, of: &OpenMove) -> bool {
        scopes(&of.rack, &of.msb, of.source.as_ref()).all(|scope| {
            let pace = match scope {
                Scope::Region => self.limits.region,
                Scope::Msb(_) => self.limits.msb,
                Scope::Rack(_) => self.limits.rack,
                Scope::Reservation(_) => self.limits.reservation,
            };
            let caps = if of.in_use { pace.in_use } else { pace.idle };
            let key = (scope, of.in_use);
            let below = |cap: Option<u32>, counts: &BTreeMap<(Scope, bool), u64>| {
                cap.is_none_or(|cap| counts.get(&key).copied().unwrap_or(0) < u64::from(cap))
            };
            below(caps.at_once, &self.under_way) && below(caps.per_window, &self.begun)
        })
    }

    fn add(&mut self, of: &OpenMove) {
        for scope in scopes(&of.rack, &of.msb, of.source.as_ref()) {
            *self.under_way.entry((scope.clone(), of.in_use)).or_default() += 1;
            *self.begun.entry((scope, of.in_use)).or_default() += 1;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Limits, Wait, admit};
    use broker::{BegunOfLate, MoveOrigin, MoveState, OpenMove, TargetVersion};
    use chrono::{DateTime, TimeDelta};
    use fleet::Name;
    use fleet::pace::{Caps, Pace};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use uuid::Uuid;

    /// A move that waits: the larger its number, the younger.
    pub(crate) fn open_move(number: u32, source: Option<&str>, target: Option<&str>) -> OpenMove {
        let opened_at = DateTime::UNIX_EPOCH + TimeDelta::seconds(number.into());
        OpenMove {
            id: Uuid::from_u128(number.into()),
            server: format!("s{number}").into(),
            rack: format!("rack{}", number % 4).into(),
            msb: format!("msb{}", number % 2).into(),
            source: source.map(Name::from),
            target: target.map(Name::from),
            host_profile: None,
            version: TargetVersion(1),
            state: MoveState::Pending,
            state_at: opened_at,
            opened_at,
            origin: MoveOrigin::Targets,
            in_use: false,
            out_of_use: false,
        }
    }

    fn pace(at_once: u32) -> Pace {
        let caps = Caps { at_once: Some(at_once), per_window: None };
        Pace { in_use: caps, idle: caps }
    }

    const NONE: Limits = Limits {
        region: Pace {
            in_use: Caps { at_once: None, per_window: None },
            idle: Caps { at_once: None, per_window: None },
        },
        msb: Pace {
            in_use: Caps { at_once: None, per_window: None },
            idle: Caps { at_once: None, per_window: None },
        },
        rack: Pace {
            in_use: Caps { at_once: None, per_window: None },
            idle: Caps { at_once: None, per_window: None },
        },
        reservation: Pace {
            in_use: Caps { at_once: None, per_window: None },
            idle: Caps { at_once: None, per_window: None },
        },
        window_seconds: 3_600,
    };

    fn admitted(limits: &Limits, moves: &[OpenMove], late: &[BegunOfLate]) -> Vec<u128> {
        let admission = admit(limits, &[], moves, late);
        assert!(admission.wait.values().all(|wait| *wait == Wait::Limit));
        admission.begin.iter().map(|id| id.as_u128()).collect()
    }

    #[test]
    fn idle_servers_come_first_then_the_oldest() {
        let mut moves: Vec<OpenMove> = (0..4).map(|n| open_move(n, Some("a"), None)).collect();
        moves[0].in_use = true;
        assert_eq!(admitted(&NONE, &moves, &[]), [1, 2, 3, 0]);
    }

    #[test]
    fn one_that_must_wait_is_passed_by_others() {
        let moves: Vec<OpenMove> = (0..8).map(|n| open_move(n, Some("a"), None)).collect();
        let racks = Limits { rack: pace(1), ..NONE };
        assert_eq!(admitted(&racks, &moves, &[]), [0, 1, 2, 3]);
        let msbs = Limits { msb: pace(1), ..NONE };
        assert_eq!(admitted(&msbs, &moves, &[]), [0, 1]);
        let region = Limits { region: pace(3), ..NONE };
        assert_eq!(admitted(&region, &moves, &[]), [0, 1, 2]);
        let mut moves = moves;
        moves[7].source = Some("b".into());
        moves[5].source = None;
        let reservations = Limits { reservation: pace(1), ..NONE };
        assert_eq!(admitted(&reservations, &moves, &[]), [0, 5, 7], "nobody's has no limit");
        moves[0].state = MoveState::CleaningUp;
        assert_eq!(admitted(&reservations, &moves, &[]), [5, 7], "one is under way");
    }

    #[test]
    fn a_window_counts_what_was_done_in_it() {
        let caps = Caps { at_once: None, per_window: Some(3) };
        let mut limits =
            Limits { reservation: Pace { in_use: caps, idle: Caps::default() }, ..NONE };
        assert!(limits.looks_back() && !NONE.looks_back());
        let mut moves: Vec<OpenMove> = (0..4).map(|n| open_move(n, Some("a"), None)).collect();
        moves.iter_mut().for_each(|of| of.in_use = true);
        let late = |in_use, count| {
            let (rack, msb) = ("rack9".into(), "msb9".into());
            [BegunOfLate { rack, msb, source: Some("a".into()), in_use, count }]
        };
        assert_eq!(admitted(&limits, &moves, &late(true, 2)), [0]);
        assert_eq!(admitted(&limits, &moves, &late(false, 2)), [0, 1, 2]);
        moves[3].state = MoveState::Preempting;
        assert_eq!(admitted(&limits, &moves, &late(true, 1)), [0]);
        limits.reservation.in_use.per_window = Some(0);
        assert_eq!(admitted(&limits, &moves, &[]), [0; 0]);
    }

    proptest! {
        /// Never beyond a limit, and none is left waiting that breaks none.
        #[test]
        fn limits_are_kept_and_used(
            caps in proptest::array::uniform4(0_u32..6),
            rows in proptest::collection::vec((0_u8..3, any::<bool>(), any::<bool>()), 0..40),
        ) {
            let [region, msb, rack, reservation] = caps.map(pace);
            let limits = Limits { region, msb, rack, reservation, window_seconds: 60 };
            let mut moves: Vec<OpenMove> = Vec::new();
            for (number, (owner, in_use, waits)) in (0..).zip(rows) {
                let owner = format!("r{owner}");
                let mut of = open_move(number, Some(&owner), None);
                of.in_use = in_use;
                if !waits {
                    of.state = MoveState::Preempting;
                }
                moves.push(of);
            }
            let admitted = admit(&limits, &[], &moves, &[]).begin;
            let begun = |of: &&OpenMove| of.state != MoveState::Pending || admitted.contains(&of.id);
            type Key = fn(&OpenMove) -> Option<Name>;
            let keys: [(Key, u32); 4] = [
                (|_| Some("".into()), caps[0]),
                (|of| Some(of.msb.clone()), caps[1]),
                (|of| Some(of.rack.clone()), caps[2]),
                (|of| of.source.clone(), caps[3]),
            ];
            let full = |of: &OpenMove| keys.iter().any(|(key, cap)| {
                let like = moves.iter().filter(begun);
                let like = like.filter(|o| o.in_use == of.in_use && key(o) == key(of)).count();
                like >= *cap as usize
            });
            for of in moves.iter().filter(|of| !begun(of)) {
                prop_assert!(full(of), "{} waits for nothing", of.server);
            }
            for (key, cap) in keys {
                let mut counts: BTreeMap<_, [usize; 2]> = BTreeMap::new();
                for of in moves.iter().filter(begun) {
                    counts.entry((key(of), of.in_use)).or_default()
                        [usize::from(admitted.contains(&of.id))] += 1;
                }
                for [before, ours] in counts.into_values() {
                    prop_assert!(ours == 0 || before + ours <= cap as usize);
                }
            }
        }
    }
}
