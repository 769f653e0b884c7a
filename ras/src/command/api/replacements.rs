//! `ras ops replacements`

use super::ask::with_server;
use crate::cli::Replacements;
use crate::client::login::Server;
use crate::client::query;
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::number::seconds;
use crate::tables;
use anyhow::Result;
use api_types::failures::Replacements as Listed;

/// State of a failure for which no spare was found.
const OWED: &str = "owed";

pub(in crate::command) fn run(options: &Replacements, context: &Context) -> Result<Verdict> {
    let mut asked = vec![("limit", options.limit.to_string())];
    asked.extend(options.owed.then(|| ("state", OWED.to_owned())));
    let path = query("/ops/v1/replacements", &asked);
    let listed: Listed =
        with_server(Server::of(&options.server)?, async |client| client.get(&path).await?.read())?;
    context.answer(|| text(&listed), &listed)?;
    let owed = listed.counts.get(OWED).copied().unwrap_or(0);
    Ok(Verdict::fine_if(!options.owed || owed == 0))
}

fn text(listed: &Listed) -> String {
    if listed.counts.is_empty() {
        return "no server of a reservation has failed".to_owned();
    }
    let mut text = String::new();
    for (state, count) in &listed.counts {
        text.push_str(&format!("{state:<14}{count}\n"));
    }
    let times = &listed.seconds;
    if let (Some(p50), Some(p99), Some(most)) = (times.p50, times.p99, times.most) {
        let within: Vec<(f64, usize)> =
            times.at_most.iter().map(|of| (of.seconds, of.count)).collect();
        text.push_str(&format!(
            "\nfrom event to binding: 50 % within {}, 99 % within {}, all within {}\n{}",
            seconds(p50),
            seconds(p99),
            seconds(most),
            tables::histogram(&within, times.count)
        ));
    }
    if listed.replacements.is_empty() {
        return text;
    }
    let header = ["server", "reservation", "state", "since", "spare", "recorded", "event"];
    let mut table = Table::new(&header, 7..7);
    for row in &listed.replacements {
        table.add_row([
            row.server.clone(),
            row.reservation.clone(),
            row.state.clone(),
            row.state_at.format("%F %T").to_string(),
            row.spare.clone().unwrap_or_else(|| "-".to_owned()),
            row.recorded_at.format("%F %T").to_string(),
            row.event.clone(),
        ]);
    }
    text.push_str(&format!("\n{}", table));
    text
}
