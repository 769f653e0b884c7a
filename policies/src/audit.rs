//! Policies as plain SQL on a finished assignment. Nothing of the compiler is in it: the library alone
//! plans and runs each query, with WHERE or HAVING turned into its contrary.

use crate::error::{PolicyError, Refused};
use crate::library::{Library, last_filter, on_large_stack};
use crate::source::{Kind, Policies, Policy};
use crate::world::World;

/// What a policy says of an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The policy.
    pub policy: String,
    /// What it is for.
    pub kind: Kind,
    /// The rows that do not pass, as `column=value`.
    pub fails: Vec<String>,
    /// The number of a goal; empty is NULL.
    pub value: Option<String>,
}

impl Finding {
    /// What a soft policy costs: its weight times the rows that fail, or less its weight times its number.
    pub fn cost(&self) -> Option<f64> {
        let Kind::Soft { weight, .. } = self.kind else { return None };
        let worth = match &self.value {
            Some(value) => -value.parse::<f64>().unwrap_or(0.0),
            None => self.fails.len() as f64,
        };
        // Not -0.
        Some(weight as f64 / 1e6 * worth + 0.0)
    }
}

/// Asks each hard and soft policy of a world as it is.
///
/// # Errors
/// If a query cannot be planned or run.
pub fn audit(policies: &Policies, world: &World) -> Result<Vec<Finding>, PolicyError> {
    let Some(first) = policies.statements.first() else { return Ok(Vec::new()) };
    let found = on_large_stack(|| {
        let library = Library::new(world)?;
        let mut findings = Vec::new();
        for policy in &policies.statements {
            match one(policy, &library) {
                Ok(found) => findings.extend(found),
                Err(refused) => return Ok(Err(policy.refused(refused))),
            }
        }
        Ok(Ok(findings))
    });
    found.map_err(|refused| first.refused(refused))?
}

fn one(policy: &Policy, library: &Library) -> Result<Option<Finding>, Refused> {
    let plan = library.plan(&policy.query)?;
    let finding = |fails, value| {
        Some(Finding { policy: policy.name.clone(), kind: policy.kind, fails, value })
    };
    // Aggregates without HAVING are a number; their WHERE chooses what is counted.
    let says_what_holds = policy.says_what_holds() && last_filter(&plan).is_some();
    let contrary = if says_what_holds { policy.contrary() } else { None };
    let found = match (policy.kind, contrary) {
        (Kind::View, _) => None,
        (_, Some(query)) => {
            let contrary = library.plan(&query)?;
            let fields = contrary.schema().fields();
            let mut fails = Vec::new();
            for row in library.rows(&contrary)? {
                let cells = fields.iter().zip(&row);
                let cells: Vec<String> =
                    cells.map(|(field, value)| format!("{}={value}", field.name())).collect();
                fails.push(cells.join(", "));
            }
            fails.sort_unstable();
            finding(fails, None)
        }
        (_, None) => {
            let rows = library.rows(&plan)?;
            let cell = rows.first().and_then(|row| row.first());
            let value =
                cell.map(|value| if value.is_null() { String::new() } else { value.to_string() });
            finding(Vec::new(), value)
        }
    };
    library.define(&policy.name, plan)?;
    Ok(found)
}
