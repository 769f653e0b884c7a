//! `ras ops contract`

use super::{Context, Verdict};
use crate::cli::{ContractAction, ContractOf, SetContract};
use crate::number::count;
use crate::store::{Need, with_store};
use crate::{quantity, tables};
use anyhow::Result;
use broker::{Contract, ContractUse};
use chrono::SubsecRound;
use serde_json::{Value, json};

pub(super) fn run(options: &ContractOf, context: &Context) -> Result<Verdict> {
    match &options.action {
        ContractAction::Set(options) => set(options, context)?,
        ContractAction::List { store } => {
            let contracts = with_store(store, Need::There, async |opened| {
                Ok(opened.broker.contracts(None).await?)
            })?;
            let json: Vec<Value> = contracts.iter().map(json).collect();
            context.answer(|| text(&contracts), &json!({ "contracts": json }))?;
        }
        ContractAction::Remove { reservation, store } => {
            with_store(store, Need::There, async |opened| {
                Ok(opened.broker.remove_contract(&store.actor, reservation).await?)
            })?;
            let removed = || format!("the churn contract of {reservation} is removed");
            context.answer(removed, &json!({ "removed": reservation }))?;
        }
    }
    Ok(Verdict::Fine)
}

fn set(options: &SetContract, context: &Context) -> Result<()> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share, 0 to 1")]
    let in_use_micro = (options.in_use * 1e6).round() as u32;
    let contract = Contract {
        in_use_micro,
        window: options.per,
        quiet: options.quiet_time.clone(),
        zone: options.zone.clone(),
    };
    let SetContract { reservation, store, .. } = options;
    let all = with_store(store, Need::There, async |opened| {
        let broker = &opened.broker;
        broker.set_contract(&store.actor, reservation, &contract).await?;
        Ok(broker.contracts(Some(&[reservation.as_str().into()])).await?)
    })?;
    context.answer(|| text(&all), &json!({ "contracts": all.iter().map(json).collect::<Vec<_>>() }))
}

/// A share in percent without trailing zeros: `2 %`, `0.25 %`.
fn share(micro: u32) -> String {
    format!("{} %", f64::from(micro) / 1e4)
}

fn text(contracts: &[ContractUse]) -> String {
    if contracts.is_empty() {
        return "no churn contracts; `ras ops contract set` creates one".to_owned();
    }
    let header = [
        "reservation",
        "in use",
        "at most",
        "window",
        "allowed",
        "left",
        "leaving",
        "quiet",
        "now",
    ];
    let mut table = tables::table(&header, 1..7);
    for of in contracts {
        let quiet: Vec<String> = of.contract.quiet.iter().map(ToString::to_string).collect();
        let quiet = if quiet.is_empty() {
            "never".to_owned()
        } else {
            format!("{} {}", quiet.join(", "), of.contract.zone)
        };
        let number = |number: u64| count(usize::try_from(number).unwrap_or(usize::MAX));
        table.add_row([
            of.reservation.to_string(),
            number(of.in_use),
            share(of.contract.in_use_micro),
            quantity::show_window(of.contract.window),
            number(of.allowed()),
            number(of.left),
            number(of.leaving),
            quiet,
            now(of).to_owned(),
        ]);
    }
    table.trim_fmt()
}

fn now(of: &ContractUse) -> &'static str {
    match of {
        of if of.quiet_now => "quiet",
        of if of.left + of.leaving >= of.allowed() => "used up",
        _ => "open",
    }
}

fn json(of: &ContractUse) -> Value {
    let ContractUse { reservation, contract, set_by, set_at, in_use, left, leaving, .. } = of;
    json!({
        "reservation": reservation,
        "in_use_share": f64::from(contract.in_use_micro) / 1e6,
        "window_seconds": contract.window.as_secs(),
        "quiet": contract.quiet.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "zone": contract.zone, "set_by": set_by, "set_at": set_at.trunc_subsecs(6),
        "in_use": in_use, "allowed": of.allowed(), "left": left, "leaving": leaving,
        "quiet_now": of.quiet_now, "now": now(of),
    })
}
