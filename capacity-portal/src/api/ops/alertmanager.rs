//! `POST /ops/v1/alertmanager`: the webhook of Prometheus' Alertmanager, version 4.
//!
//! An alert becomes an event of the thing it is about. Its name is the alert's fingerprint and its
//! start, so that one that fires again is another event. What no alert can tell is refused row by
//! row and answered with 200 all the same: sending it again would not help. Where Postgres is down
//! the answer is 503, and Alertmanager tries again.

use super::events::{self, Refused};
use crate::api::Site;
use crate::api::asked;
use crate::api::authority::{Caller, Role};
use crate::api::problem::Problem;
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

/// The only version there is.
const VERSION: &str = "4";

/// Labels that name what an alert is about, the smallest thing first: an alert with the labels
/// `rack` and `msb` is about the rack.
const PLACES: [(&str, Scope); 4] = [
    ("server", Scope::Server),
    ("rack", Scope::Rack),
    ("msb", Scope::Msb),
    ("datacenter", Scope::Datacenter),
];

/// A notification. Fields that are not known are let through: Alertmanager grows.
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
    /// Each is read by itself: one that says nothing of a server is no fault of the others.
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
    fn report(&self) -> Result<Report, Refused> {
        let ended_at = match self.status.as_str() {
            "firing" => None,
            "resolved" => match self.ends_at.filter(|at| !is_zero(*at)) {
                Some(at) => Some(at),
                None => return Err(Refused::new("malformed", "it is resolved and has no endsAt")),
            },
            other => {
                let reason = format!("status {other:?} is neither firing nor resolved");
                return Err(Refused::new("malformed", reason));
            }
        };
        if self.fingerprint.is_empty() || is_zero(self.starts_at) {
            return Err(Refused::new("malformed", "it has no fingerprint or no startsAt"));
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

    /// What it is about.
    fn place(&self) -> Result<(Scope, &str), Refused> {
        match (self.label("ras_scope"), self.label("ras_scope_id")) {
            (Some(word), Some(name)) => {
                let unknown = || {
                    let reason =
                        format!("ras_scope {word:?} is none of server, rack, msb or datacenter");
                    Refused::new("malformed", reason)
                };
                return Ok((Scope::parse(word).ok_or_else(unknown)?, name));
            }
            (None, None) => {}
            _ => {
                let reason = "of ras_scope and ras_scope_id it has one; it needs both or neither";
                return Err(Refused::new("malformed", reason));
            }
        }
        let place = PLACES.iter().find_map(|(label, scope)| Some((*scope, self.label(label)?)));
        let instance = || Some((Scope::Server, without_port(self.label("instance")?)));
        place.or_else(instance).ok_or_else(|| {
            let labels = "ras_scope and ras_scope_id, server, rack, msb, datacenter, instance";
            Refused::new("no_place", format!("none of its labels says what it is about: {labels}"))
        })
    }
}

/// How Go writes a time that is none.
fn is_zero(at: DateTime<Utc>) -> bool {
    at.timestamp() == -62_135_596_800
}

/// The host of `host:port`; an IPv6 address in brackets loses them.
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

/// Takes a notification of Alertmanager's webhook, version 4
///
/// What no alert can tell is refused row by row and answered with 200 all the same: sending it again
/// would not help.
#[utoipa::path(post, path = "/alertmanager", operation_id = "report_alerts",
    request_body = Notification,
    responses(
        (status = 200, description = "what became of each alert", body = events::Answer),
        (status = 422, description = "the webhook is of another version")))]
pub(super) async fn take(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<events::Answer>, Problem> {
    let actor = caller.needs(Role::Health)?;
    let Notification { version, group_key, truncated_alerts, alerts } = asked::any_json(&body)?;
    if version != VERSION {
        let detail = format!("version {version:?} of the webhook; {VERSION} is known");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "unknown_version", detail));
    }
    let rows = alerts.into_iter().map(|alert| {
        let alert: Result<Alert, _> = serde_json::from_value(alert);
        alert.map_err(|error| Refused::new("malformed", error.to_string()))?.report()
    });
    let answer = events::store(&site, &actor, rows.collect()).await?;
    if truncated_alerts > 0 {
        tracing::warn!(group_key, truncated_alerts, "Alertmanager left alerts out");
    }
    if answer.refused() > 0 {
        tracing::warn!(group_key, refused = answer.refused(), "alerts name nothing that is known");
    }
    Ok(Json(answer))
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
        let report = alert.report().map_err(|refused| refused.code.to_owned())?;
        assert_eq!(&*report.event, "alert/ab12/2026-01-05T09:00:00.123456Z");
        assert_eq!(report.ended_at, None);
        Ok((report.scope, report.scope_id.to_string()))
    }

    #[test]
    fn an_alert_is_about_the_smallest_thing_it_names() {
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
    fn a_port_is_cut_off() {
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
