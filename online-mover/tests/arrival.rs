//! What a plan says of the arrival of servers is what the mover does: the calendar of `fleet::pace` against
//! the mover's own admission, asked again and again while a clock goes on.

use chrono::{DateTime, TimeDelta, Timelike, Utc};
use decisions::admission::{ContractView, MoveView, admit};
use fleet::MoveOrigin;
use fleet::pace::{Caps, ContractPace, Limits, MoveKind, OpenMoves, Pacing, ScopeLimits};
use proptest::prelude::*;
use std::collections::BTreeMap;

const IDLE_SECONDS: u32 = 300;
const IN_USE_SECONDS: u32 = 900;

fn noon() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::hours(12)
}

fn kind(rack: u8, source: Option<&str>, in_use: bool) -> MoveKind {
    MoveKind {
        rack: format!("k{rack}").into(),
        msb: format!("m{}", rack / 2).into(),
        source: source.map(Into::into),
        in_use: in_use && source.is_some(),
    }
}

/// Moves as the mover sees them, and when each ends.
struct Clockwork {
    now: DateTime<Utc>,
    limits: Limits,
    contract: ContractPace,
    moves: Vec<MoveView<usize>>,
    /// Kind, when it began and when it ends or ended.
    begun: BTreeMap<usize, (MoveKind, DateTime<Utc>)>,
}

impl Clockwork {
    fn open(&mut self, kinds: &[MoveKind], pending: bool) {
        for kind in kinds {
            let id = self.moves.len() + self.begun.len();
            self.moves.push(MoveView {
                id,
                kind: kind.clone(),
                origin: MoveOrigin::Plan,
                pending,
                out_of_service: false,
                opened_at: noon() + TimeDelta::microseconds(id as i64),
            });
            if !pending {
                self.begin(id);
            }
        }
    }

    fn begin(&mut self, id: usize) {
        let of = self.moves.iter_mut().find(|of| of.id == id).expect("it is open");
        of.pending = false;
        let seconds = if of.kind.in_use { IN_USE_SECONDS } else { IDLE_SECONDS };
        let ends = self.now + TimeDelta::seconds(seconds.into());
        self.begun.insert(id, (of.kind.clone(), ends));
    }

    fn is_quiet(&self) -> bool {
        let minute = (self.now.hour() * 60 + self.now.minute()) as u16;
        self.contract.quiet.iter().any(|&(from, until)| {
            if from < until {
                from <= minute && minute < until
            } else {
                minute >= from || minute < until
            }
        })
    }

    /// A minute at a time, until every one of these has ended or a day has gone: when each did.
    fn run(&mut self, ours: &[usize]) -> Vec<Option<DateTime<Utc>>> {
        let until = self.now + TimeDelta::days(1);
        while self.now < until {
            // What has ended is bound.
            let ended = |(_, end): &(MoveKind, DateTime<Utc>)| *end <= self.now;
            self.moves.retain(|of| !self.begun.get(&of.id).is_some_and(ended));
            let window = TimeDelta::seconds(self.limits.window_seconds.into());
            let mut ended: BTreeMap<MoveKind, u64> = BTreeMap::new();
            let mut left = 0;
            for (kind, end) in self.begun.values() {
                if *end <= self.now && *end > self.now - window {
                    *ended.entry(kind.clone()).or_default() += 1;
                }
                let leaves = kind.in_use && kind.source.as_deref() == Some("feed");
                if leaves && *end <= self.now && *end > self.now - self.contract.window {
                    left += 1;
                }
            }
            let ended: Vec<(MoveKind, u64)> = ended.into_iter().collect();
            let allowed = self.contract.allowed;
            let used = ContractView {
                reservation: "feed".into(),
                // There are as many servers in use as the contract allows to leave: all or none may.
                in_use_micro: if left < allowed { 1_000_000 } else { 0 },
                quiet_now: self.is_quiet(),
                in_use: allowed.saturating_sub(left),
                left,
            };
            for id in admit(&self.limits, &[used], &self.moves, &ended).begin {
                self.begin(id);
            }
            if ours.iter().all(|id| self.begun.get(id).is_some_and(|(_, end)| *end <= self.now)) {
                break;
            }
            self.now += TimeDelta::minutes(1);
        }
        ours.iter().map(|id| self.begun.get(id).map(|(_, end)| *end)).collect()
    }
}

fn kinds(rows: &[(u8, u8, bool)]) -> Vec<MoveKind> {
    let source = |owner: u8| match owner {
        0 => None,
        1 => Some("web"),
        _ => Some("feed"),
    };
    rows.iter().map(|&(rack, owner, in_use)| kind(rack, source(owner), in_use)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn planned_arrival_matches_the_movers_admission(
        running in proptest::collection::vec((0_u8..4, 0_u8..3, any::<bool>()), 0..4),
        waiting in proptest::collection::vec((0_u8..4, 0_u8..3, any::<bool>()), 0..6),
        ours in proptest::collection::vec((0_u8..4, 0_u8..3, any::<bool>()), 1..12),
        at_once in proptest::array::uniform4(1_u32..6),
        per_window in proptest::option::of(4_u32..8),
        allowed in 2_u64..6,
        quiet in proptest::option::of((11 * 60_u16..16 * 60, 30_u16..120)),
    ) {
        let pace = |at_once| {
            let caps = Caps { at_once: Some(at_once), per_window: None };
            ScopeLimits { in_use: caps, idle: caps }
        };
        let mut limits = Limits {
            region: pace(at_once[0]),
            msb: pace(at_once[1]),
            rack: pace(at_once[2]),
            reservation: pace(at_once[3]),
            window_seconds: 3_600,
        };
        limits.region.in_use.per_window = per_window;
        let contract = ContractPace {
            reservation: "feed".into(),
            allowed,
            window: TimeDelta::hours(2),
            left: Vec::new(),
            quiet: quiet.iter().map(|&(from, long)| (from, from + long)).collect(),
            ahead_of_utc: 0,
        };
        let (running, mut waiting, ours) = (kinds(&running), kinds(&waiting), kinds(&ours));
        // One queue for each kind that waits, as the broker counts them.
        waiting.sort();
        let mut clockwork = Clockwork {
            now: noon(),
            limits,
            contract: contract.clone(),
            moves: Vec::new(),
            begun: BTreeMap::new(),
        };
        clockwork.open(&running, false);
        clockwork.open(&waiting, true);
        let mut sorted = ours.clone();
        sorted.sort();
        let first = clockwork.moves.len();
        clockwork.open(&sorted, true);
        let ids: Vec<usize> = clockwork.moves[first..].iter().map(|of| of.id).collect();
        let open = |kinds: &[MoveKind], waiting| {
            kinds.iter().map(move |kind| OpenMoves { kind: kind.clone(), waiting, urgent: false, count: 1 })
                .collect::<Vec<_>>()
        };
        let pacing = Pacing {
            now: noon(),
            limits: Some(limits),
            idle_seconds: IDLE_SECONDS,
            in_use_seconds: IN_USE_SECONDS,
            open: [open(&running, false), open(&waiting, true)].concat(),
            begun: Vec::new(),
            contracts: vec![contract],
        };
        let arrival = pacing.arrival(&ours);
        let mut ends: Vec<DateTime<Utc>> = clockwork.run(&ids).into_iter().flatten().collect();
        prop_assert_eq!(ends.len(), ids.len(), "all of them end within a day");
        ends.sort();
        let mut steps: Vec<(DateTime<Utc>, u64)> = Vec::new();
        for (number, end) in (1..).zip(ends) {
            match steps.last_mut() {
                Some(step) if step.0 == end => step.1 = number,
                _ => steps.push((end, number)),
            }
        }
        prop_assert_eq!((&arrival.steps, arrival.later), (&steps, 0));
    }
}

/// The sentence of a plan: 40 servers in use of `feed`, of which ten may leave an hour.
#[test]
fn arrival_names_the_churn_contract() {
    let contract = ContractPace {
        reservation: "feed".into(),
        allowed: 10,
        window: TimeDelta::hours(1),
        left: vec![noon() - TimeDelta::minutes(30); 4],
        quiet: vec![(22 * 60, 6 * 60)],
        ahead_of_utc: 60,
    };
    let pacing = Pacing {
        now: noon(),
        limits: None,
        idle_seconds: IDLE_SECONDS,
        in_use_seconds: IN_USE_SECONDS,
        open: Vec::new(),
        begun: Vec::new(),
        contracts: vec![contract],
    };
    let arrival = pacing.arrival(&vec![kind(0, Some("feed"), true); 40]);
    let said = fleet::quote::QuotedArrival::from(arrival.clone());
    let expected = "by 1970-01-01 16:30 UTC, 40 servers; limit: churn contract of feed";
    assert_eq!(said.to_string(), expected);
    let minutes: Vec<(i64, u64)> =
        arrival.steps.iter().map(|(at, count)| ((*at - noon()).num_minutes(), *count)).collect();
    // Six at once, four when those of half an hour ago count no more, and so on every hour and a quarter.
    assert_eq!(minutes[..3], [(15, 6), (45, 10), (90, 16)]);
}

/// A large region: 20,000 moves wait in 1,000 racks under the limits as they come.
#[test]
fn arrival_of_20_000_moves_is_computed() {
    let kinds: Vec<MoveKind> = (0..20_000_u32)
        .map(|number| MoveKind {
            rack: format!("k{}", number % 1_000).into(),
            msb: format!("m{}", number % 40).into(),
            source: Some(format!("r{}", number % 97).into()),
            in_use: number.is_multiple_of(3),
        })
        .collect();
    let waiting = kinds[..15_000].iter().map(|kind| OpenMoves {
        kind: kind.clone(),
        waiting: true,
        urgent: false,
        count: 1,
    });
    let pacing = Pacing {
        now: noon(),
        limits: Some(Limits::default()),
        idle_seconds: IDLE_SECONDS,
        in_use_seconds: IN_USE_SECONDS,
        open: waiting.collect(),
        begun: Vec::new(),
        contracts: Vec::new(),
    };
    let begun = tokio::time::Instant::now();
    let arrival = pacing.arrival(&kinds[15_000..]);
    println!("{:?}, {} steps", begun.elapsed(), arrival.steps.len());
    assert_eq!((arrival.later, arrival.steps.last().map(|step| step.1)), (0, Some(5_000)));
}
