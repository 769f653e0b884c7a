//! `ras result audit`

use crate::cli::Audit;
use crate::context::Context;
use crate::exit::Verdict;
use crate::results::{Solved, read_solved};
use anyhow::{Context as _, Result};
use fleet::audit::audit;
use serde_json::json;

pub(super) fn run(options: &Audit, context: &Context) -> Result<Verdict> {
    let Solved { snapshot, targets, report, .. } = read_solved(&options.snapshot, &options.result)?;
    let found = audit(&snapshot, &targets);
    let claims = (report.claims())
        .with_context(|| format!("cannot check result {}", options.result.display()))?;
    let differences = found.compare(&claims);
    let fine = found.is_clean() && differences.is_empty();
    let json = json!({ "fine": fine, "audit": found, "differences": differences });
    let text = || {
        let mut text = found.to_string();
        if differences.is_empty() {
            text.push_str("the report agrees\n");
        } else {
            text.push_str(&format!("the report differs: {}\n", differences.len()));
        }
        for difference in &differences {
            text.push_str(&format!("  {difference}\n"));
        }
        text
    };
    context.answer(text, &json)?;
    Ok(Verdict::fine_if(fine))
}
