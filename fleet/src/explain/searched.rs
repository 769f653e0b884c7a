//! What a search for one request adds to the reason of a shortfall: a proof that no more is possible, or
//! none within its time.

use super::Shortfall;
use super::limits::{Limit, LimitName};
use super::reason::ShortfallReason;
use super::text::amounts;
use crate::rru::Rru;
use std::time::Duration;

/// The outcome of a search around one reservation that leaves it short.
#[derive(Clone, Copy, Debug)]
pub struct Searched {
    /// C.
    pub capacity: Rru,
    /// What the search found (eq. 6).
    pub found: Rru,
    /// A proved lower bound on what is missing while no other reservation as important ends worse; zero: none.
    pub surely_missing: Rru,
    /// Whether it is proved that no more than was found is possible.
    pub is_most: bool,
    /// Whether what is proved counts on policies: without them more may be possible.
    pub within_policies: bool,
    /// How long it searched; `None`: until it ended by itself.
    pub within: Option<Duration>,
}

impl Shortfall {
    /// Says only what the search has proved: `no_regress` where holdings of others are in the way for any
    /// solver, `not_found_in_time` where more may be possible. Reasons that need no search stay.
    pub fn searched(&mut self, of: &Searched) {
        let needs_proof = matches!(
            self.reason,
            ShortfallReason::NoRegress
                | ShortfallReason::NotFoundInTime
                | ShortfallReason::Priority
        );
        let possible = of.capacity - of.surely_missing;
        let [found, possible, capacity] = amounts([of.found, possible, of.capacity]);
        let within = if of.within_policies { " within policies" } else { "" };
        let time = match of.within {
            Some(within) => format!(" within {} s", seconds(within)),
            None => String::new(),
        };
        if !needs_proof {
            // Hardware is why not all is possible. It is not why no more than this was found.
            if of.within.is_some() && !of.is_most {
                let most = if of.surely_missing > Rru::ZERO {
                    format!("proved: no more than {possible} RRU can be granted{within}")
                } else {
                    "more may be possible".to_owned()
                };
                self.sentence
                    .push_str(&format!("; {found} of {capacity} RRU were found{time}; {most}"));
            }
            return;
        }
        if of.surely_missing <= Rru::ZERO {
            self.reason = ShortfallReason::NotFoundInTime;
            self.sentence = format!(
                "{found} of {capacity} RRU were found{time}; more may be possible by exchanges with other \
                 reservations: a longer search may find it"
            );
            return;
        }
        let kept = match self.reason {
            ShortfallReason::Priority => &*self.sentence,
            _ => {
                self.reason = ShortfallReason::NoRegress;
                &format!(
                    "other reservations hold servers of its types and cannot do without them{within}"
                )
            }
        };
        self.sentence = if of.is_most {
            format!(
                "{kept}; proved: no more than {found} of {capacity} RRU can be granted{within} without taking capacity from \
                 them"
            )
        } else {
            format!(
                "{kept}; proved: no more than {possible} of {capacity} RRU can be granted{within} without taking \
                 capacity from them; {found} RRU were found{time}"
            )
        };
    }
}

impl Shortfall {
    /// Says that groups of policies leave too little room for more: others would leave more, or none is proved to be
    /// possible within policies. `full`: those groups.
    pub fn lack_of_room(&mut self, full: &[Limit], of: &Searched) {
        const NAMED: usize = 5;
        let Some(first) = full.first() else { return };
        let mut named: Vec<&str> = full.iter().take(NAMED).map(|of| &*of.sentence).collect();
        let more = (full.len() > NAMED).then(|| format!("{} more", full.len() - NAMED));
        named.extend(more.as_deref());
        let named = named.join("; ");
        let possible = of.capacity - of.surely_missing;
        let [found, without, possible, capacity] =
            amounts([of.found, first.without, possible, of.capacity]);
        self.reason = ShortfallReason::Policy;
        self.sentence = if first.without > of.found {
            format!(
                "too little room is left in {named}; {found} of {capacity} RRU can be granted, {without} without \
                 policies"
            )
        } else {
            format!(
                "too little room is left in {named}; proved: no more than {possible} of {capacity} RRU can be granted \
                 within policies without taking capacity from other reservations; {found} RRU were found"
            )
        };
    }
}

impl Limit {
    /// Says that others' servers are in the way by a proof, not because the search found no others for them.
    pub fn proved(&mut self) {
        if self.limit == LimitName::HeldByOthers {
            let end = self.sentence.find(", for which no other").unwrap_or(self.sentence.len());
            self.sentence.truncate(end);
            self.sentence.push_str(", which need them");
        }
    }
}

/// Seconds without needless decimals: 5, 0.5.
fn seconds(of: Duration) -> f64 {
    (of.as_secs_f64() * 10.0).round() / 10.0
}
