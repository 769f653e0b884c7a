//! `GET /ops/v1/supply`: how long the servers of each hardware type last in each datacenter.

use crate::http::auth::Caller;
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::{Problem, Site, in_time};
use crate::supply::{QUANTILES, RegionSupply, horizon};
use api_types::supply::{SupplyPage, TypeSupply};
use axum::extract::State;
use axum::response::Response;
use forecast::orders::Supply;
use forecast::orders::supply::QUANTILE;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

pub(crate) const SUPPLY: ListKind =
    ListKind { rows: "supply", key: &["hardware_type", "datacenter"], order: "rank", page: WHOLE };

/// For which demand.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SupplyQuery {
    /// The quantile of demand, the chance that demand stays below it: 0.5, 0.6, 0.7 or 0.9; absent: 0.7.
    #[param(minimum = 0.5, maximum = 0.9)]
    quantile: Option<f64>,
}

/// One of the quantiles that are forecast.
pub(crate) fn quantile(asked: Option<f64>) -> Result<f64, Problem> {
    let asked = asked.unwrap_or(QUANTILE);
    if QUANTILES.contains(&asked) {
        return Ok(asked);
    }
    let known = QUANTILES.map(|of| of.to_string()).join(", ");
    Err(Problem::bad_request("malformed", format!("quantile must be one of {known}")))
}

/// Every place, what runs out first first.
pub(crate) fn views(supply: &RegionSupply, quantile: f64) -> Vec<TypeSupply> {
    let all = supply.by_urgency(quantile).into_iter().enumerate();
    all.map(|(position, (of, lasts))| {
        let outlook = of.outlook.as_ref();
        let winner = outlook.and_then(|of| of.backtest.as_ref()).and_then(|of| of.winner());
        TypeSupply {
            rank: position + 1,
            hardware_type: of.hardware_type.clone(),
            datacenter: of.datacenter.clone(),
            state: lasts.as_str().to_owned(),
            runs_out_on: supply.runs_out_on(lasts),
            days_left: lasts.days(),
            sentence: supply.sentence(of, lasts, quantile),
            servers: of.servers,
            held: of.held,
            free: of.free(),
            on_order: of.expected.on_order,
            next_arrival_on: of.expected.next_on,
            late: of.expected.late,
            highest: of.highest(quantile),
            known_days: of.known_days,
            method: outlook.map(|of| of.method.clone()),
            error: winner
                .filter(|_| lasts != Supply::Unknown)
                .and_then(|winner| winner.test.weighted_error),
            doubts: outlook
                .map_or_else(Vec::new, |of| of.doubts.iter().map(ToString::to_string).collect()),
        }
    })
    .collect()
}

/// How long the servers of each hardware type last in each datacenter
///
/// What reservations hold, by its daily peaks of up to 400 days, is forecast for 28 days and compared with the servers in
/// service and on order, which count from the day on which they are expected; late ones do not. The day on which demand exceeds
/// them is that of `ras forecast orders`. The forecast changes once a day, orders at once.
#[utoipa::path(get, path = "/supply", operation_id = "list_supply",
    params(SupplyQuery, ListQuery),
    responses((status = 200, description = "a page", body = SupplyPage)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest<SupplyQuery>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let quantile = quantile(filters.quantile)?;
    let supply = in_time(site.supply.current(&site.broker, &site.region)).await?;
    let page = list.page_of(SUPPLY, &filters, views(&supply, quantile))?;
    Ok(page.response(&SupplyPage {
        quantile,
        days: horizon(),
        last_day: supply.last_day,
        supply: Vec::new(),
        next_page_token: None,
    }))
}
