//! The members of `report.json` that the page shows. Reports of older or foreign solvers may lack any
//! member; the page then says so instead of failing.

use serde_json::Value;
use std::collections::BTreeMap;

/// The members of a report that the page shows.
#[derive(Debug, Default)]
pub struct SolveReport {
    /// Expressions 1 to 4, by name, in the order of the paper; only those the report gives.
    pub objective: Vec<(&'static str, f64)>,
    /// Value of the whole objective.
    pub objective_total: Option<f64>,
    /// Cost of the incumbent of phase 1.
    pub primal: Option<f64>,
    /// Proved lower bound of phase 1.
    pub dual_bound: Option<f64>,
    /// Relative gap of the whole objective, racks included.
    pub whole_gap: Option<f64>,
    /// That gap in in-use moves.
    pub whole_gap_in_use_moves: Option<f64>,
    /// Relative gap of phase 1.
    pub gap: Option<f64>,
    /// The gap divided by the price of an in-use move.
    pub gap_in_use_moves: Option<f64>,
    /// Why phase 1 ended (`termination`).
    pub termination: Option<String>,
    /// How the bound was proved.
    pub proof: Option<String>,
    /// Value of the LP relaxation.
    pub lp_value: Option<f64>,
    /// Seconds HiGHS took for the LP.
    pub lp_seconds: Option<f64>,
    /// Cost of shortfalls in `primal`.
    pub shortfall_cost: Option<f64>,
    /// Cost of today's assignment.
    pub initial_primal: Option<f64>,
    /// Rack spread before and after phase 2.
    pub rack_spread: Option<(f64, f64)>,
    /// Surplus servers released: in use, idle.
    pub handed_back: Option<(usize, usize)>,
    /// Wall clock seconds of the solve.
    pub seconds_total: Option<f64>,
    /// Time by step: phase, name, seconds.
    pub steps: Vec<(u64, String, f64)>,
    /// Incumbent and bound over time.
    pub history: Vec<Moment>,
    /// How the run ended (`ending`).
    pub ending: Option<String>,
    /// Largest resident memory of the process.
    pub peak_memory_bytes: Option<f64>,
    /// Largest resident memory of a HiGHS process.
    pub highs_peak_memory_bytes: Option<f64>,
    /// Sizes of the model, by name.
    pub sizes: BTreeMap<String, usize>,
    reasons: BTreeMap<String, Reason>,
}

/// Why a reservation is short.
#[derive(Clone, Debug, PartialEq)]
struct Reason {
    /// The reason, with spaces for underscores.
    token: String,
    /// The reason with its numbers.
    sentence: Option<String>,
}

/// One entry of the history.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Seconds since the solve began.
    pub seconds: f64,
    /// Phase 1 or 2.
    pub phase: u64,
    /// Incumbent of phase 1.
    pub primal: Option<f64>,
    /// Bound of phase 1.
    pub dual_bound: Option<f64>,
}

impl SolveReport {
    /// Reads the members that the report has.
    pub fn read(report: &Value, move_in_use_price: f64) -> SolveReport {
        let at = |pointer: &str| number(report.pointer(pointer));
        let text =
            |pointer: &str| report.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let pair = |pointer: &str| {
            let members = report.pointer(pointer)?;
            Some((whole(members.get("in_use"))?, whole(members.get("idle"))?))
        };
        let (primal, dual_bound) = (at("/phase1/primal"), at("/phase1/dual_bound"));
        let difference = primal.zip(dual_bound).map(|(primal, bound)| primal - bound);
        let relative = primal.zip(difference).map(|(primal, difference)| {
            if difference == 0.0 { 0.0 } else { difference / primal.abs() }
        });
        let in_moves =
            difference.filter(|_| move_in_use_price > 0.0).map(|d| d / move_in_use_price);
        SolveReport {
            objective: ["stability", "rack_spread", "msb_spread", "buffer"]
                .into_iter()
                .filter_map(|term| Some((term, number(report.pointer("/objective")?.get(term))?)))
                .collect(),
            objective_total: at("/objective/total"),
            primal,
            dual_bound,
            whole_gap: at("/whole/gap"),
            whole_gap_in_use_moves: at("/whole/gap_in_use_moves"),
            gap: at("/phase1/gap").or(relative).filter(|gap| gap.is_finite()),
            gap_in_use_moves: at("/phase1/gap_in_use_moves").or(in_moves),
            termination: text("/phase1/termination"),
            proof: text("/phase1/proof").filter(|proof| !proof.is_empty()),
            lp_value: at("/phase1/lp_value"),
            lp_seconds: at("/phase1/lp_seconds"),
            shortfall_cost: at("/phase1/shortfall_cost"),
            initial_primal: at("/phase1/initial_primal"),
            rack_spread: at("/phase2/rack_spread_before").zip(at("/phase2/rack_spread_after")),
            handed_back: pair("/handed_back"),
            seconds_total: at("/seconds/total"),
            steps: list(report, "steps").filter_map(step).collect(),
            history: list(report, "history").filter_map(moment).collect(),
            ending: text("/ending"),
            highs_peak_memory_bytes: at("/highs_peak_memory_bytes").filter(|bytes| *bytes > 0.0),
            peak_memory_bytes: at("/peak_memory_bytes").filter(|bytes| *bytes > 0.0),
            sizes: report.get("sizes").and_then(Value::as_object).map_or_else(
                BTreeMap::new,
                |sizes| {
                    let known = sizes.iter();
                    known
                        .filter_map(|(name, size)| Some((name.clone(), whole(Some(size))?)))
                        .collect()
                },
            ),
            reasons: list(report, "reservations").filter_map(reason).collect(),
        }
    }

    /// Why a reservation is short.
    pub fn reason(&self, reservation: &str) -> &str {
        self.reasons.get(reservation).map_or("not in the report", |reason| &reason.token)
    }

    /// Why a reservation is short, with numbers.
    pub fn why(&self, reservation: &str) -> Option<&str> {
        self.reasons.get(reservation)?.sentence.as_deref()
    }

    /// Value of an expression of the objective.
    pub fn term(&self, name: &str) -> Option<f64> {
        self.objective.iter().find(|(term, _)| *term == name).map(|(_, value)| *value)
    }
}

fn list<'a>(report: &'a Value, member: &str) -> impl Iterator<Item = &'a Value> {
    report.get(member).and_then(Value::as_array).into_iter().flatten()
}

fn number(value: Option<&Value>) -> Option<f64> {
    value.and_then(Value::as_f64).filter(|number| number.is_finite())
}

fn whole(value: Option<&Value>) -> Option<usize> {
    value.and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok())
}

fn step(entry: &Value) -> Option<(u64, String, f64)> {
    let name = entry.get("step")?.as_str()?.to_owned();
    let seconds = number(entry.get("seconds")).filter(|seconds| *seconds >= 0.0)?;
    Some((entry.get("phase")?.as_u64()?, name, seconds))
}

fn moment(entry: &Value) -> Option<Moment> {
    Some(Moment {
        seconds: number(entry.get("seconds")).filter(|seconds| *seconds >= 0.0)?,
        phase: entry.get("phase").and_then(Value::as_u64).unwrap_or(1),
        primal: number(entry.get("primal")),
        dual_bound: number(entry.get("dual_bound")),
    })
}

fn reason(entry: &Value) -> Option<(String, Reason)> {
    let id = entry.get("reservation_id")?.as_str()?;
    let token = entry.get("reason")?.as_str()?.replace('_', " ");
    let sentence = entry.get("why").and_then(Value::as_str).map(str::to_owned);
    Some((id.to_owned(), Reason { token, sentence }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn report_may_lack_every_member() {
        for report in [json!(null), json!({}), json!([1]), json!({"phase1": 3, "steps": "no"})] {
            let solve = SolveReport::read(&report, 10.0);
            assert_eq!(solve.gap, None);
            assert!(solve.steps.is_empty() && solve.history.is_empty());
        }
    }

    #[test]
    fn missing_gap_is_computed_from_incumbent_and_bound() {
        let report = json!({"phase1": {"primal": 200.0, "dual_bound": 150.0}});
        let solve = SolveReport::read(&report, 10.0);
        assert_eq!(solve.gap, Some(0.25));
        assert_eq!(solve.gap_in_use_moves, Some(5.0));
    }

    #[test]
    fn reasons_are_read_with_and_without_numbers() {
        let report = json!({"reservations": [
            {"reservation_id": "a", "reason": "msb_buffer", "why": "3 of 4"},
            {"reservation_id": "b", "reason": "affinity"},
            {"reservation_id": "c", "reason": null},
        ]});
        let solve = SolveReport::read(&report, 10.0);
        assert_eq!(
            ["a", "b", "c"].map(|id| solve.reason(id)),
            ["msb buffer", "affinity", "not in the report"]
        );
        assert_eq!(["a", "b"].map(|id| solve.why(id)), [Some("3 of 4"), None]);
    }
}
