//! Thrash: moves that a chain of solves undoes or repeats.
//!
//! Each solve is cheap in moves by itself (eq. 1), and yet a chain could move a server away in one hour and
//! back in the next. Thrash counts the moves beyond those that the net difference needs.

use std::collections::BTreeMap;

/// One move of a server in a chain of solves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved<S, H> {
    /// The server.
    pub server: S,
    /// Hour of the chain.
    pub hour: u32,
    /// Holder before; `None`: free.
    pub from: Option<H>,
    /// Holder after; `None`: free.
    pub to: Option<H>,
    /// Whether something outside the solver asked for it: the server failed or returned, or a request
    /// of either holder changed.
    pub caused: bool,
}

/// Thrash of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Thrash {
    /// Moves without a cause.
    pub moves: usize,
    /// Of these, the moves beyond the net difference.
    pub excess: usize,
    /// `excess` per 1,000 servers and hour.
    pub per_thousand_hour: f64,
}

/// Counts the thrash of a chain of `hours` solves of a region of `servers` servers.
///
/// The moves of a server without a cause form runs: each follows the one before within `window`
/// hours, and no move with a cause lies between. A run of n moves needs one if it ends at another
/// holder than it began at, and none if it ends where it began; the rest is excess. `moves` are in
/// the order in which they happened.
///
/// ```
/// use report::thrash::{Moved, thrash};
///
/// let step = |hour, from, to| Moved { server: "s1", hour, from, to, caused: false };
/// let there_and_back = [step(1, None, Some("web")), step(2, Some("web"), None)];
/// assert_eq!(thrash(&there_and_back, 24, 1_000, 4).per_thousand_hour, 0.5);
/// assert_eq!(thrash(&there_and_back[..1], 24, 1_000, 4).excess, 0);
/// ```
pub fn thrash<S: Ord, H: PartialEq>(
    moves: &[Moved<S, H>],
    window: u32,
    servers: usize,
    hours: u32,
) -> Thrash {
    let mut by_server: BTreeMap<&S, Vec<&Moved<S, H>>> = BTreeMap::new();
    for of in moves {
        by_server.entry(&of.server).or_default().push(of);
    }
    let excess = by_server.values().flat_map(|of| runs(of, window)).map(excess).sum();
    let per = servers as f64 / 1_000.0 * f64::from(hours);
    Thrash {
        moves: moves.iter().filter(|of| !of.caused).count(),
        excess,
        per_thousand_hour: if per > 0.0 { excess as f64 / per } else { 0.0 },
    }
}

/// Runs of moves of one server.
fn runs<'a, S, H>(
    moves: &'a [&'a Moved<S, H>],
    window: u32,
) -> impl Iterator<Item = &'a [&'a Moved<S, H>]> {
    let joined = move |a: &&Moved<S, H>, b: &&Moved<S, H>| {
        !a.caused && !b.caused && b.hour.saturating_sub(a.hour) <= window
    };
    moves.chunk_by(joined).filter(|run| run.iter().all(|of| !of.caused))
}

fn excess<S, H: PartialEq>(run: &[&Moved<S, H>]) -> usize {
    let needed = run.first().zip(run.last()).is_some_and(|(first, last)| first.from != last.to);
    run.len() - usize::from(needed)
}

#[cfg(test)]
mod tests {
    use super::{Moved, thrash};

    type Step = (&'static str, u32, &'static str, &'static str, bool);

    /// Excess of moves: server, hour, holder before and after, whether it has a cause.
    fn excess(steps: &[Step]) -> usize {
        let holder = |name: &'static str| (name != "-").then_some(name);
        let moves: Vec<Moved<&str, &str>> = (steps.iter())
            .map(|&(server, hour, from, to, caused)| {
                let (from, to) = (holder(from), holder(to));
                Moved { server, hour, from, to, caused }
            })
            .collect();
        let found = thrash(&moves, 3, 500, 10);
        assert_eq!(found.moves, steps.iter().filter(|step| !step.4).count());
        assert!((found.per_thousand_hour - found.excess as f64 / 5.0).abs() < 1e-9);
        found.excess
    }

    #[test]
    fn one_move_of_each_server_is_no_thrash() {
        assert_eq!(excess(&[]), 0);
        assert_eq!(excess(&[("s1", 1, "-", "web", false), ("s2", 2, "web", "ads", false)]), 0);
    }

    #[test]
    fn there_and_back_is_two_moves_too_many() {
        assert_eq!(excess(&[("s1", 1, "-", "web", false), ("s1", 2, "web", "-", false)]), 2);
    }

    #[test]
    fn a_detour_is_one_move_too_many() {
        assert_eq!(excess(&[("s1", 1, "-", "web", false), ("s1", 2, "web", "ads", false)]), 1);
    }

    #[test]
    fn a_cause_ends_a_run_and_is_not_counted() {
        let failure = ("s1", 2, "web", "-", true);
        assert_eq!(excess(&[("s1", 1, "-", "web", false), failure]), 0);
        let after = ("s1", 3, "-", "web", false);
        assert_eq!(excess(&[("s1", 1, "-", "web", false), failure, after]), 0);
    }

    #[test]
    fn moves_further_apart_than_the_window_are_no_thrash() {
        assert_eq!(excess(&[("s1", 1, "-", "web", false), ("s1", 4, "web", "-", false)]), 2);
        assert_eq!(excess(&[("s1", 1, "-", "web", false), ("s1", 5, "web", "-", false)]), 0);
    }
}
