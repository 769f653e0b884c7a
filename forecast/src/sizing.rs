//! Spares of all hardware types: for an accepted chance of a shortfall, and a given number shared out, beside a
//! fixed share of each type.

use crate::spares::{self, Down, Failures, Outage, OutageError, SpareType, judge, share_out};
use serde::Serialize;
use std::ops::Range;

/// Failures that begin at most this long after the one before are one burst, by default; in seconds.
pub const BURST: i64 = 300;

/// A server out for longer is replaced by an order, by default; in seconds.
pub const LOST_AFTER: i64 = 3 * 86_400;

/// What is known of a hardware type.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeHistory {
    /// Its name.
    pub name: String,
    /// Its servers.
    pub servers: usize,
    /// What one is worth, in RRU: finite and above 0.
    pub rru: f64,
    /// Its failures; of a server none begins within another.
    pub outages: Vec<Outage>,
}

/// How spares are sized.
#[derive(Clone, Debug, PartialEq)]
pub struct SizingTerms {
    /// The time that the failures cover, in seconds.
    pub history: Range<i64>,
    /// Failures that begin at most this long after the one before are one burst, in seconds.
    pub burst: i64,
    /// A server out for longer is lost and replaced by an order, so that its spare is free again; in seconds.
    pub lost_after: i64,
    /// Accepted chance that a type is short at an instant.
    pub chance: f64,
    /// Share of each type that a fixed rule keeps.
    pub fixed_share: f64,
    /// How many spares are shared out; `None`: as many as the fixed rule keeps.
    pub total: Option<usize>,
}

/// The rules that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The same share of each type.
    FixedShare,
    /// A number of spares, each where the expected missing RRU fall most.
    SharedOut,
    /// The fewest of each type that keep the accepted chance.
    Chance,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 3] = [Rule::FixedShare, Rule::SharedOut, Rule::Chance];
}

/// What a rule keeps, and what it does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rated {
    /// The rule.
    pub rule: Rule,
    /// Spares of each type.
    pub spares: Vec<usize>,
    /// All spares.
    pub total: usize,
    /// RRU missing at an instant that are expected, over all types.
    pub expected_missing_rru: f64,
    /// Decided from the first half of the history and judged on the second.
    pub judged: Judged,
}

/// What a rule did in time that it did not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Judged {
    /// Spares kept.
    pub spares: usize,
    /// RRU missing over time, in RRU-hours.
    pub missing_rru_hours: f64,
    /// Share of the time in which a type had enough, on average over types.
    pub covered: f64,
}

/// The failures of a type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeFailures {
    /// The type.
    pub name: String,
    /// Its servers.
    pub servers: usize,
    /// What one is worth, in RRU.
    pub rru: f64,
    /// Its failures in the history.
    pub failures: usize,
    /// Servers down at an instant, on average.
    pub mean_down: f64,
    /// The chance that it is short at an instant, by rule in the order of [`Rule::ALL`].
    pub chance_short: [f64; 3],
    /// RRU missing at an instant that are expected, by rule.
    pub missing_rru: [f64; 3],
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sizing {
    /// The types, in the order given.
    pub types: Vec<TypeFailures>,
    /// The rules, in the order of [`Rule::ALL`].
    pub rules: [Rated; 3],
    /// Numbers of spares, shared out, and the expected missing RRU at an instant with them: rising and falling.
    pub curve: Vec<(usize, f64)>,
}

/// Points of the curve.
const POINTS: usize = 60;

/// Sizes the spares of all types.
///
/// # Errors
/// A history of less than two seconds, or an outage that ends before it begins.
pub fn size(types: &[TypeHistory], terms: &SizingTerms) -> Result<Sizing, OutageError> {
    let (start, end) = (terms.history.start, terms.history.end);
    let middle = start.midpoint(end);
    let downs = downs(types, terms, start..end)?;
    let known = self::downs(types, terms, start..middle)?;
    let rate = |rule: Rule| {
        let spares = decide(rule, types, &downs, terms);
        let missing = missing(types, &downs, &spares);
        let judged = judged(types, &decide(rule, types, &known, terms), terms, middle..end)?;
        let total = spares.iter().sum();
        Ok(Rated { rule, spares, total, expected_missing_rru: missing, judged })
    };
    let [fixed, shared, chance] = Rule::ALL.map(rate);
    let rules = [fixed?, shared?, chance?];
    let of_type = |(at, (of, down)): (usize, (&TypeHistory, &Down))| TypeFailures {
        name: of.name.clone(),
        servers: of.servers,
        rru: of.rru,
        failures: of.outages.len(),
        mean_down: down.mean(),
        chance_short: rules.each_ref().map(|rated| down.chance_above(rated.spares[at])),
        missing_rru: rules.each_ref().map(|rated| of.rru * down.expected_above(rated.spares[at])),
    };
    let most = rules.iter().map(|rated| rated.total).max().unwrap_or(0);
    let most = most + most.div_ceil(4);
    let curve = (0..=POINTS)
        .map(|point| most * point / POINTS)
        .fold(Vec::new(), |mut counts: Vec<usize>, count| {
            if counts.last() != Some(&count) {
                counts.push(count);
            }
            counts
        })
        .into_iter()
        .map(|count| {
            (count, missing(types, &downs, &share_out(count, &spare_types(types, &downs))))
        })
        .collect();
    let types = types.iter().zip(&downs).enumerate().map(of_type).collect();
    Ok(Sizing { types, rules, curve })
}

/// The outages as they count: one that outlasts the limit ends there.
fn limited(of: &TypeHistory, terms: &SizingTerms) -> Vec<Outage> {
    let limit = |outage: &Outage| {
        let end = outage.end.min(outage.start.saturating_add(terms.lost_after));
        Outage { end, ..*outage }
    };
    // One that ends before it begins is left as it is, to be refused.
    of.outages.iter().map(limit).collect()
}

/// How alike types are to the fleet: bursts of its kind that each counts as having had.
const LIKENESS: [f64; 3] = [1.0, 10.0, 100.0];

/// How many servers of each type are down at an instant after a history. How alike types are to the fleet the history itself
/// says: what misses least if spares are shared out by a quarter, a half and three quarters of it, and judged on the quarter that
/// follows.
///
/// # Errors
/// A history without a length, or an outage that ends before it begins.
pub fn downs(
    types: &[TypeHistory],
    terms: &SizingTerms,
    history: Range<i64>,
) -> Result<Vec<Down>, OutageError> {
    let outages: Vec<Vec<Outage>> = types.iter().map(|of| limited(of, terms)).collect();
    let failures: Vec<Failures<'_>> = (outages.iter().zip(types))
        .map(|(outages, of)| Failures { outages, servers: of.servers })
        .collect();
    let after = |history: &Range<i64>, likeness: f64| {
        spares::downs(&failures, history, terms.burst, likeness)
    };
    let (start, end) = (history.start, history.end);
    let middle = start.midpoint(end);
    let ends = [start.midpoint(middle), middle, middle.midpoint(end), end];
    let missed = |likeness: f64| {
        let mut missed = 0.0;
        for (known, until) in ends.into_iter().zip(&ends[1..]) {
            if known > start && *until > known {
                let downs = after(&(start..known), likeness)?;
                let spares = decide(Rule::SharedOut, types, &downs, terms);
                missed += judged(types, &spares, terms, known..*until)?.missing_rru_hours;
            }
        }
        Ok(missed)
    };
    let mut best = (f64::INFINITY, LIKENESS[0]);
    for likeness in LIKENESS {
        let missed = missed(likeness)?;
        if missed < best.0 {
            best = (missed, likeness);
        }
    }
    after(&history, best.1)
}

fn spare_types<'a>(types: &[TypeHistory], downs: &'a [Down]) -> Vec<SpareType<'a>> {
    types.iter().zip(downs).map(|(of, down)| SpareType { down, value: of.rru }).collect()
}

/// The spares of each type by a rule, from how many servers are down at an instant ([`downs`]).
pub fn decide(
    rule: Rule,
    types: &[TypeHistory],
    downs: &[Down],
    terms: &SizingTerms,
) -> Vec<usize> {
    let fixed = || -> Vec<usize> {
        let share = |of: &TypeHistory| (terms.fixed_share * of.servers as f64).round() as usize;
        types.iter().map(share).collect()
    };
    match rule {
        Rule::FixedShare => fixed(),
        Rule::SharedOut => {
            let total = terms.total.unwrap_or_else(|| fixed().iter().sum());
            share_out(total, &spare_types(types, downs))
        }
        Rule::Chance => downs.iter().map(|down| down.quantile(1.0 - terms.chance)).collect(),
    }
}

/// RRU missing at an instant that are expected.
fn missing(types: &[TypeHistory], downs: &[Down], spares: &[usize]) -> f64 {
    let of_type = |((of, down), spares): ((&TypeHistory, &Down), &usize)| {
        of.rru * down.expected_above(*spares)
    };
    types.iter().zip(downs).zip(spares).map(of_type).sum()
}

/// What spares did in a range of time.
///
/// # Errors
/// An outage that ends before it begins.
pub fn judged(
    types: &[TypeHistory],
    spares: &[usize],
    terms: &SizingTerms,
    range: Range<i64>,
) -> Result<Judged, OutageError> {
    let mut found = Judged { spares: spares.iter().sum(), ..Judged::default() };
    for (of, spares) in types.iter().zip(spares) {
        let outcome = judge(&limited(of, terms), range.clone(), *spares)?;
        found.missing_rru_hours += of.rru * outcome.missing_hours;
        found.covered += outcome.coverage() / types.len() as f64;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600;

    /// Ten days in which one of five servers in turn is down for an hour of each `every` hours.
    fn of_type(name: &str, rru: f64, every: i64) -> TypeHistory {
        let outage = |n: i64| Outage {
            server: (n % 5) as u32,
            start: n * every * HOUR,
            end: (n * every + 1) * HOUR,
        };
        let outages = (0..240 / every).map(outage).collect();
        TypeHistory { name: name.to_owned(), servers: 100, rru, outages }
    }

    fn terms() -> SizingTerms {
        SizingTerms {
            history: 0..240 * HOUR,
            burst: 60,
            lost_after: 72 * HOUR,
            chance: 0.01,
            fixed_share: 0.02,
            total: None,
        }
    }

    #[test]
    fn spares_go_where_failures_are() {
        let types = [of_type("calm", 1.0, 240), of_type("busy", 1.0, 2)];
        let sizing = size(&types, &terms()).expect("valid outages");
        let [fixed, shared, chance] = &sizing.rules;
        assert_eq!((&fixed.spares[..], shared.total), (&[2, 2][..], 4));
        assert!(shared.spares[1] > shared.spares[0], "{shared:?}");
        assert!(shared.expected_missing_rru < fixed.expected_missing_rru);
        // Half of the time one is down, at random: Poisson of mean a half, of which 98.6 % are at most 2.
        assert_eq!(chance.spares[1], 3, "{chance:?}");
        assert!(sizing.types.iter().all(|of| of.chance_short[2] <= 0.01));
        assert!(
            sizing.curve.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1)
        );
        // One of "busy" is down at a time, so any rule with a spare of it misses nothing.
        assert_eq!((fixed.judged.missing_rru_hours, fixed.judged.covered), (0.0, 1.0));
    }

    #[test]
    fn lost_servers_give_their_spare_back() {
        let outages = vec![Outage { server: 0, start: 0, end: 240 * HOUR }];
        let lost = TypeHistory { name: "lost".to_owned(), servers: 10, rru: 2.0, outages };
        let all = size(&[lost], &terms()).expect("valid outages");
        assert!((all.types[0].mean_down - 0.3).abs() < 0.01, "{:?}", all.types);
        assert_eq!(all.rules[0].judged.missing_rru_hours, 0.0, "lost on the third day");
        let reversed = TypeHistory {
            name: "wrong".to_owned(),
            servers: 1,
            rru: 1.0,
            outages: vec![Outage { server: 0, start: 5, end: 4 }],
        };
        assert!(size(&[reversed], &terms()).is_err());
    }
}
