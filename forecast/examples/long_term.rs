//! Rolling back-test of every long-term method on every series of a folder.
//!
//! Run it under `time` for what it costs.
//!
//! `cargo run --release -p forecast --example long_term -- FOLDER [HORIZON] [SEED] [CLUSTERS]`

mod data;

use data::Named;
use forecast::long::score::Score;
use forecast::long::tcn::Training;
use forecast::long::{Backtest, Daily, Method, Networks, Plan, outlook};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: long_term FOLDER [HORIZON] [SEED] [CLUSTERS]")?;
    let horizon = arguments.next().map_or(Ok(28), |text| text.parse())?;
    let seed = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let clusters = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let plan = Plan::new(horizon);
    let all = data::read(folder.as_ref())?;
    let series: Vec<&Named> =
        all.iter().filter(|named| plan.cuts(named.daily.values().len()).is_some()).collect();

    println!("{} series, {horizon} days ahead, seed {seed}, {clusters} clusters", series.len());
    let daily: Vec<&Daily> = series.iter().map(|named| &named.daily).collect();
    let networks = Networks::train(&daily, &plan, |output| Training {
        clusters,
        ..Training::new(output, horizon, seed)
    });
    for model in networks.models() {
        println!("{} version {}", model.name(), &model.version()[..12]);
    }
    println!();
    let mut judged = Vec::new();
    for named in series {
        let result = outlook(&named.daily, &plan, Some(&networks)).backtest.ok_or("too short")?;
        show(named, &result);
        judged.push((named.name.as_str(), result));
    }
    summarise(&judged);
    Ok(())
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

fn coverage(score: &Score) -> String {
    let parts: Vec<String> = score.coverage.iter().map(|c| format!("{:.0}", 100.0 * c)).collect();
    parts.join("/")
}

fn show(named: &Named, result: &Backtest) {
    println!("## {}", named.name);
    for doubt in named.daily.doubts() {
        println!("{doubt}");
    }
    println!(
        "| method | MRE | weighted error | pinball | Q50/60/70/90 cover | pinball, validation |"
    );
    println!("|---|---|---|---|---|---|");
    for (at, method) in result.methods.iter().enumerate() {
        let mark = match (at == result.chosen, at == result.best) {
            (true, true) => " (chosen, best)",
            (true, false) => " (chosen)",
            (false, true) => " (best)",
            (false, false) => "",
        };
        let Score { relative_error, weighted_error, pinball, .. } = method.test;
        println!(
            "| {}{mark} | {} | {} | {:.3} | {} | {:.3} |",
            method.name,
            percent(relative_error),
            percent(weighted_error),
            100.0 * pinball,
            coverage(&method.test),
            100.0 * method.validation.pinball,
        );
    }
    println!();
}

/// Each method over all series: means of losses over those of "same weekday", which has a loss on
/// each series that counts.
fn summarise(judged: &[(&str, Backtest)]) {
    println!("## Series with demand in the test period");
    println!(
        "| series | chosen | MRE | weighted error | cover | pinball over same weekday | best |"
    );
    println!("|---|---|---|---|---|---|---|");
    let used = |result: &Backtest| result.methods.iter().all(|m| m.test.weighted_error.is_some());
    let judged: Vec<_> = judged.iter().filter(|(_, result)| used(result)).collect();
    for (name, result) in &judged {
        let Some(winner) = result.winner() else { continue };
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} |",
            winner.name,
            percent(winner.test.relative_error),
            percent(winner.test.weighted_error),
            coverage(&winner.test),
            result.against("same weekday").map_or("-".to_owned(), |r| format!("{r:.2}")),
            result.methods[result.best].name,
        );
    }
    println!();
    println!(
        "| method | log-mean pinball over same weekday | times chosen | times best | median weighted error | Q50/60/70/90 cover |"
    );
    println!("|---|---|---|---|---|---|");
    let Some((_, first)) = judged.first() else { return };
    let row = |name: &str, of: &dyn Fn(&Backtest) -> usize, chosen: usize, best: usize| {
        let mut logs = Vec::new();
        let mut errors = Vec::new();
        let mut covers = [0.0; 4];
        for (_, result) in &judged {
            let test = &result.methods[of(result)].test;
            let base = &result.methods[1].test;
            if test.pinball > 0.0 && base.pinball > 0.0 {
                logs.push((test.pinball / base.pinball).ln());
            }
            errors.extend(test.weighted_error);
            for (sum, cover) in covers.iter_mut().zip(&test.coverage) {
                *sum += cover / judged.len() as f64;
            }
        }
        errors.sort_by(f64::total_cmp);
        let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        let covers: Vec<String> = covers.iter().map(|c| format!("{:.0}", 100.0 * c)).collect();
        let middle = errors.get(errors.len() / 2).copied();
        let covers = covers.join("/");
        println!("| {name} | {mean:.3} | {chosen} | {best} | {} | {covers} |", percent(middle));
    };
    for at in 0..first.methods.len() {
        let chosen = judged.iter().filter(|(_, result)| result.chosen == at).count();
        let best = judged.iter().filter(|(_, result)| result.best == at).count();
        row(&first.methods[at].name, &|_| at, chosen, best);
    }
    row("**chosen by validation**", &|result| result.chosen, judged.len(), 0);
    row("best in hindsight", &|result| result.best, 0, judged.len());
}
