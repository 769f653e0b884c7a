//! `POST /ops/v1/alertmanager`: the webhook of Prometheus' Alertmanager, version 4.
//!
//! An alert becomes an unavailability event of a server or place. The event is named by the alert's fingerprint and
//! start, so an alert that fires again is another event. Invalid alerts are rejected one by one, and the response is
//! still 200, because a retry would not help. If Postgres is down, the response is 503 and Alertmanager retries.

use super::events::{self, Rejection};
use crate::http::auth::{Caller, Role};
use crate::http::{Problem, Site, body};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use broker::Report;
use chrono::{DateTime, SecondsFormat, Utc};
use fleet::{Scope, UnavailabilityKind};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The supported version.
const VERSION: &str = "4";

/// Labels that name the place of an alert, the smallest first: an alert with the labels `rack` and `msb` concerns
/// the rack.
const PLACES: [(&str, Scope); 4] = [
    ("server", Scope::Server),
    ("rack", Scope::Rack),
    ("msb", Scope::Msb),
    ("datacenter", Scope::Datacenter),
];

/// A notification. Unknown fields are accepted, because new versions of Alertmanager add fields.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AlertmanagerNotification)]
struct Notification {
    /// "4".
    version: String,
    #[serde(default)]
    group_key: String,
    #[serde(default)]
    truncated_alerts: u64,
    /// Each alert is read on its own: an invalid one does not fail the others.
    #[schema(value_type = Vec<Object>)]
    alerts: Vec<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Alert {
    status: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    starts_at: DateTime<Utc>,
    #[serde(default)]
    ends_at: Option<DateTime<Utc>>,
    fingerprint: String,
}

impl Alert {
    fn report(&self) -> Result<Report, Rejection> {
        let ended_at = match self.status.as_str() {
            "firing" => None,
            "resolved" => match self.ends_at.filter(|at| !is_zero(*at)) {
                Some(at) => Some(at),
                None => {
                    return Err(Rejection::new(
                        "malformed",
                        "the alert is resolved but has no endsAt",
                    ));
                }
            },
            other => {
                let reason = format!("status {other:?} is neither firing nor resolved");
                return Err(Rejection::new("malformed", reason));
            }
        };
        if self.fingerprint.is_empty() || is_zero(self.starts_at) {
            return Err(Rejection::new("malformed", "fingerprint or startsAt is missing"));
        }
        let (scope, scope_id) = self.place()?;
        let kind = match self.label("ras_kind") {
            Some(word) => events::kind(word)?,
            None => UnavailabilityKind::RandomFailure,
        };
        let start = self.starts_at.to_rfc3339_opts(SecondsFormat::Micros, true);
        Ok(Report {
            event: format!("alert/{}/{start}", self.fingerprint).into(),
            scope,
            scope_id: scope_id.into(),
            kind,
            started_at: self.starts_at,
            ended_at,
        })
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The server or place that it concerns.
    fn place(&self) -> Result<(Scope, &str), Rejection> {
        match (self.label("ras_scope"), self.label("ras_scope_id")) {
            (Some(word), Some(name)) => {
                let unknown = || {
                    let reason =
                        format!("ras_scope {word:?} is not server, rack, msb or datacenter");
                    Rejection::new("malformed", reason)
                };
                return Ok((Scope::parse(word).ok_or_else(unknown)?, name));
            }
            (None, None) => {}
            _ => {
                let reason = "ras_scope and ras_scope_id must be set together";
                return Err(Rejection::new("malformed", reason));
            }
        }
        let place = PLACES.iter().find_map(|(label, scope)| Some((*scope, self.label(label)?)));
        let instance = || Some((Scope::Server, without_port(self.label("instance")?)));
        place.or_else(instance).ok_or_else(|| {
            let labels = "ras_scope and ras_scope_id, server, rack, msb, datacenter, instance";
            Rejection::new(
                "no_place",
                format!("no label names a server or place; expected one of {labels}"),
            )
        })
    }
}

/// Whether it is the zero time of Go, which means unset.
fn is_zero(at: DateTime<Utc>) -> bool {
    at.timestamp() == -62_135_596_800
}

/// The host of `host:port`; an IPv6 address without its brackets.
fn without_port(instance: &str) -> &str {
    if let Some(rest) = instance.strip_prefix('[') {
        return rest.split_once(']').map_or(instance, |(host, _)| host);
    }
    match instance.rsplit_once(':') {
        Some((host, port))
            if !host.is_empty()
                && !host.contains(':')
                && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            host
        }
        _ => instance,
    }
}

/// Receives a notification of Alertmanager's webhook, version 4
///
/// Invalid alerts are rejected one by one, and the response is still 200, because a retry would not help.
#[utoipa::path(post, path = "/alertmanager", operation_id = "report_alerts",
    request_body = Notification,
    responses(
        (status = 200, description = "the result of each alert", body = events::EventResults),
        (status = 422, description = "the webhook has another version")))]
pub(super) async fn take(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<events::EventResults>, Problem> {
    let actor = caller.needs(Role::Health)?;
    let Notification { version, group_key, truncated_alerts, alerts } = body::any_json(&body)?;
    if version != VERSION {
        let detail = format!("version {version:?} of the webhook is not supported; use {VERSION}");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unknown_version", detail));
    }
    let rows = alerts.into_iter().map(|alert| {
        let alert: Result<Alert, _> = serde_json::from_value(alert);
        alert.map_err(|error| Rejection::new("malformed", error.to_string()))?.report()
    });
    let results = events::store(&site, &actor, rows.collect()).await?;
    if truncated_alerts > 0 {
        tracing::warn!(group_key, truncated_alerts, "Alertmanager truncated alerts");
    }
    if results.refused() > 0 {
        tracing::warn!(group_key, rejected = results.refused(), "alerts rejected");
    }
    Ok(Json(results))
}

#[cfg(test)]
mod tests {
    use super::{Alert, without_port};
    use fleet::Scope;
    use serde_json::json;

    fn place(labels: serde_json::Value) -> Result<(Scope, String), String> {
        let alert: Alert = serde_json::from_value(json!({
            "status": "firing", "labels": labels, "startsAt": "2026-01-05T10:00:00.123456789+01:00",
            "endsAt": "0001-01-01T00:00:00Z", "fingerprint": "ab12", "generatorURL": "http://x",
        }))
        .expect("an alert");
        let report = alert.report().map_err(|rejection| rejection.code.to_owned())?;
        assert_eq!(&*report.event, "alert/ab12/2026-01-05T09:00:00.123456Z");
        assert_eq!(report.ended_at, None);
        Ok((report.scope, report.scope_id.to_string()))
    }

    #[test]
    fn alert_concerns_the_smallest_place_it_names() {
        for (labels, scope, name) in [
            (json!({ "server": "s", "rack": "k", "instance": "i:9" }), Scope::Server, "s"),
            (json!({ "rack": "k", "msb": "m" }), Scope::Rack, "k"),
            (json!({ "msb": "m", "datacenter": "d", "instance": "i:9" }), Scope::Msb, "m"),
            (json!({ "datacenter": "d", "rack": "" }), Scope::Datacenter, "d"),
            (json!({ "instance": "s1.dc:9100" }), Scope::Server, "s1.dc"),
            (json!({ "ras_scope": "msb", "ras_scope_id": "m", "server": "s" }), Scope::Msb, "m"),
        ] {
            assert_eq!(place(labels.clone()), Ok((scope, name.to_owned())), "{labels}");
        }
        for (labels, code) in [
            (json!({}), "no_place"),
            (json!({ "ras_scope": "msb", "server": "s" }), "malformed"),
            (json!({ "ras_scope": "roof", "ras_scope_id": "s" }), "malformed"),
            (json!({ "server": "s", "ras_kind": "bad luck" }), "malformed"),
        ] {
            assert_eq!(place(labels.clone()), Err(code.to_owned()), "{labels}");
        }
    }

    #[test]
    fn without_port_keeps_the_host() {
        for (instance, host) in [
            ("s1:9100", "s1"),
            ("s1", "s1"),
            ("[2001:db8::1]:9100", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("s1:metrics", "s1:metrics"),
            (":9100", ":9100"),
        ] {
            assert_eq!(without_port(instance), host);
        }
    }
}
