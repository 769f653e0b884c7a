//! `ras policy test`

use super::{parse, text};
use crate::cli::TestPolicies;
use crate::context::Context;
use crate::exit::Verdict;
use crate::highs_process::{HighsProcess, MEMORY_LIMIT_DEFAULT};
use anyhow::{Context as _, Result};
use fleet::number::counted;
use policies::{CaseResult, Effort, TestFile};
use serde::Serialize;
use std::path::Path;

/// What `ras policy test` says of a case.
#[derive(Serialize)]
struct Tested {
    file: String,
    case: String,
    passes: bool,
    /// Lines that differ: `- ` before what is stated, `+ ` before what was found.
    diff: Vec<String>,
}

pub(super) fn run(options: &TestPolicies, context: &Context) -> Result<Verdict> {
    let backend = HighsProcess::of_this_binary(MEMORY_LIMIT_DEFAULT)?;
    let effort = Effort { time_limit: options.deadline, seed: options.seed };
    let mut tested = Vec::new();
    for path in &options.files {
        let name = || path.display().to_string();
        let file = TestFile::parse(&text(path)?).with_context(name)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let policies: Vec<_> = file.policies.iter().map(|policy| folder.join(policy)).collect();
        let results = file.run(&parse(&policies)?, &backend, effort).with_context(name)?;
        tested.extend(results.into_iter().map(|CaseResult { name: case, diff }| Tested {
            file: name(),
            case,
            passes: diff.is_empty(),
            diff,
        }));
    }
    context.answer(|| text_of(&tested), &tested)?;
    Ok(Verdict::fine_if(tested.iter().all(|case| case.passes)))
}

fn text_of(tested: &[Tested]) -> String {
    let mut said = String::new();
    for case in tested.iter().filter(|case| !case.passes) {
        said.push_str(&format!("{}, case {}: fails\n", case.file, case.case));
        for line in &case.diff {
            said.push_str(&format!("  {line}\n"));
        }
    }
    let failed = tested.iter().filter(|case| !case.passes).count();
    let passed = counted(tested.len() - failed, "case");
    format!("{said}passed: {passed}; failed: {}", counted(failed, "case"))
}
