//! `ras ops loans`

use super::ask::with_server;
use crate::cli::Loans;
use crate::client::login::Server;
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use anyhow::Result;
use api_types::failures::{Borrowed, Loans as Listed};
use std::collections::{BTreeMap, BTreeSet};

pub(in crate::command) fn run(options: &Loans, context: &Context) -> Result<Verdict> {
    let listed: Listed = with_server(Server::of(&options.server)?, async |client| {
        client.get_all("/ops/v1/loans", "loans").await?.read()
    })?;
    context.answer(|| text(&listed.loans), &listed)?;
    Ok(Verdict::Fine)
}

/// Loans by borrower and owner; their locations are in the JSON.
fn text(loans: &[Borrowed]) -> String {
    if loans.is_empty() {
        return "nothing is lent".to_owned();
    }
    let mut by: BTreeMap<(&str, &str), (u64, BTreeSet<&str>)> = BTreeMap::new();
    for loan in loans {
        let (servers, msbs) = by.entry((&loan.borrower, &loan.owner)).or_default();
        *servers += loan.servers;
        msbs.insert(&loan.msb);
    }
    let mut table = Table::new(&["borrower", "owner", "servers", "MSBs"], 2..4);
    for ((borrower, owner), (servers, msbs)) in by {
        table.add_row([
            borrower.to_owned(),
            owner.to_owned(),
            servers.to_string(),
            msbs.len().to_string(),
        ]);
    }
    table.to_string()
}
