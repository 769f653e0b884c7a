//! `ras ops loans`

use super::{Context, Verdict};
use crate::cli::Loans;
use crate::store::{Need, with_store};
use crate::tables;
use anyhow::Result;
use broker::loan_json;
use decisions::elastic::Loan;
use serde_json::json;
use std::collections::BTreeMap;

pub(super) fn run(options: &Loans, context: &Context) -> Result<Verdict> {
    let loans =
        with_store(&options.store, Need::There, async |store| Ok(store.broker.loans().await?))?;
    let rows: Vec<_> = loans.iter().map(loan_json).collect();
    context.answer(|| text(&loans), &json!({ "loans": rows }))?;
    Ok(Verdict::Fine)
}

/// Loans by borrower and owner; their locations are in the JSON.
fn text(loans: &[Loan]) -> String {
    if loans.is_empty() {
        return "nothing is lent".to_owned();
    }
    let mut by: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    let mut msbs: BTreeMap<(&str, &str), std::collections::BTreeSet<&str>> = BTreeMap::new();
    for loan in loans {
        let key = (loan.borrower.as_ref(), loan.owner.as_ref());
        by.entry(key).or_default().0 += loan.count;
        msbs.entry(key).or_default().insert(&loan.msb);
    }
    for (key, msbs) in &msbs {
        by.entry(*key).or_default().1 = msbs.len() as u64;
    }
    let mut table = tables::table(&["borrower", "owner", "servers", "MSBs"], 2..4);
    for ((borrower, owner), (servers, msbs)) in by {
        table.add_row([
            borrower.to_owned(),
            owner.to_owned(),
            servers.to_string(),
            msbs.to_string(),
        ]);
    }
    table.trim_fmt()
}
