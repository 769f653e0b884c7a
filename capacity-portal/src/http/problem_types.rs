//! The kinds of problems: codes, and what each means. The `type` of a problem is the path of its page.

/// Path of the pages that explain a code, in front of it.
pub(crate) const PROBLEMS: &str = "/problems/";

/// All codes with their meaning, in order. Clients depend on the codes: none is renamed or removed.
pub(crate) const TYPES: &[(&str, &str)] = &[
    ("all_refused", "Every row of the report was refused. `errors` or `rows` say why."),
    (
        "approval_required",
        "The plan moves more servers in use of others than an owner may. Submit the request: an operator decides.",
    ),
    ("archive_unavailable", "The archive of solves does not answer. Retry later."),
    ("body_too_large", "The body is larger than 4 MiB. Send fewer rows at once."),
    ("body_too_slow", "The body did not arrive within 10 seconds."),
    ("busy", "The server is busy. Retry after the time in Retry-After."),
    (
        "csrf",
        "A write with a session cookie needs the header x-csrf-token and an Origin of this server.",
    ),
    ("exists", "An object of this name exists already."),
    ("file_too_large", "The file is too large to be sent over HTTP."),
    (
        "guarantee",
        "The maintenance would leave a reservation with less than it is guaranteed. `instead` lists what would be accepted.",
    ),
    ("in_the_past", "The window begins in the past."),
    ("internal", "The server failed. The log has the id of the request."),
    (
        "invalid",
        "Fields of the body are invalid. `errors` names each, with a JSON pointer and the rule.",
    ),
    ("key_in_use", "A request with this Idempotency-Key is in progress. Retry later."),
    ("key_reused", "This Idempotency-Key was used for another request. Use a new key."),
    ("late", "The answer took too long. Retry later."),
    ("length", "A length of the maintenance is out of range. `least` and `most` are the bounds."),
    ("malformed", "The request cannot be read: its JSON, a parameter or a header is invalid."),
    ("method_not_allowed", "The path exists, but not for this method."),
    ("no_archive", "This server keeps no files of solves."),
    ("no_chance", "The system provides no random numbers. Retry later."),
    ("no_planner", "This server makes no plans, and no worker does."),
    ("no_policies", "This server is built without policies in SQL."),
    ("no_region", "No region is loaded. Load a snapshot first."),
    ("no_report", "The solve has no report: it was not published, or the report was deleted."),
    ("no_rollout", "The host profile of the reservation has never changed."),
    ("no_such_reservation", "The emergency names a reservation that does not exist."),
    ("not_active", "The maintenance has not begun, so it cannot be ended. Cancel it."),
    ("not_answered", "The request failed before it was answered."),
    (
        "not_awaiting",
        "The solve or request does not await approval: it was decided already, or never had to be.",
    ),
    (
        "not_confirmed",
        "The change moves servers in use of other reservations. Confirm that on the page of the plan.",
    ),
    ("not_found", "There is no such path."),
    (
        "not_granted",
        "The plan does not grant every change in full. `limits` and `alternatives` say what would help.",
    ),
    ("not_guaranteed", "This is possible only for guaranteed reservations."),
    ("not_open", "The order of hardware has arrived or is cancelled."),
    ("not_publishable", "The targets of the solve break a rule on the region as it is now."),
    (
        "nothing_fits",
        "No free server and no server of a shared buffer is of a type that the reservation can use.",
    ),
    ("other_owner", "The token is limited to another owner."),
    ("outage_now", "An MSB is lost. Maintenance waits until it is back."),
    ("over", "The object has ended, or has been decided."),
    (
        "over_promise",
        "The emergencies of a reservation may double its promise and no more. Ask for less, or let an operator ask with `beyond_limits`.",
    ),
    (
        "over_quota",
        "The emergency would exceed a quota of the owner. Ask for less, or let an operator ask with `beyond_limits`.",
    ),
    ("page_token", "The page token is of another list, filter or order. Begin at the first page."),
    ("plan_over", "The plan was applied, or has expired. Make a new one."),
    ("plan_stale", "The region has changed, and the plan no longer holds. `plan` is a new one."),
    (
        "policies_changed",
        "Others changed policies at the same time. Look at them, and send the change again.",
    ),
    (
        "policy_refused",
        "A policy is not SQL, reads what the region does not have, or cannot be kept by its solver. `line`, `column` and `hint` say where and what to write.",
    ),
    ("postgres_unavailable", "Postgres does not answer. Retry later."),
    ("profile_in_use", "Quotas count in this RRU profile. Change them first."),
    ("quota_exceeded", "The change would exceed a quota of the owner. `quotas` has the numbers."),
    ("region_unreadable", "The stored region cannot be read. Retry later."),
    ("request_open", "A request for the reservation is open. Wait for it, or cancel it."),
    ("request_refused", "The change cannot be planned. `request` is its number in the body."),
    ("role_missing", "The token does not have the role for this."),
    (
        "share",
        "The maintenance would take more than its share of an MSB out of service at once. `instead` lists what would be accepted.",
    ),
    (
        "solve_stale",
        "Another version of the targets was published since the solve began. Solve again.",
    ),
    ("token_exists", "A token of this name exists already."),
    ("token_missing", "A token is needed: Authorization: Bearer TOKEN."),
    ("token_unknown", "The token is unknown, expired or revoked."),
    ("too_few_lost", "Servers give way only while at least two MSBs are lost."),
    ("too_many_plans", "Too many plans are being made. Retry after the time in Retry-After."),
    ("too_many_readers", "Too many followers of changes are connected. Retry later."),
    (
        "too_many_requests",
        "The caller or its address sends too many requests. Retry after the time in Retry-After.",
    ),
    ("too_many_rows", "The body has too many rows."),
    ("unknown_contract", "The reservation has no churn contract."),
    ("unknown_domain", "The region has no such fault domain."),
    ("unknown_emergency", "There is no such emergency."),
    ("unknown_file", "The solve has no such file."),
    ("unknown_hardware_type", "The region has no such hardware type."),
    ("unknown_maintenance", "There is no such window or plan of maintenance."),
    ("unknown_msb", "The region has no such MSB."),
    ("unknown_operation", "There is no such operation, or it is of another owner."),
    ("unknown_order", "There is no such order of hardware."),
    ("unknown_plan", "There is no such plan, or it is of another owner."),
    ("unknown_policy", "There is no such policy, or none in force."),
    ("unknown_profile", "There is no such RRU profile."),
    ("unknown_quota", "The owner has no quota."),
    ("unknown_request", "There is no such request, or it is of another owner."),
    ("unknown_reservation", "There is no such reservation, or it is of another owner."),
    ("unknown_scope", "The region has no such server, rack or MSB."),
    ("unknown_server", "The region has no such server."),
    ("unknown_solve", "There is no such solve."),
    ("unknown_token", "There is no such token."),
    ("unknown_version", "The report is in a version that this server does not read."),
    ("unsupported_media_type", "The body must be JSON. Send Content-Type: application/json."),
    (
        "version_required",
        "The write needs If-Match, with the ETag that was read, or * for any version.",
    ),
    (
        "version_stale",
        "The object has changed since that version. Read it again; `etag` is the current version.",
    ),
];

/// The meaning of a code.
pub(crate) fn meaning(code: &str) -> Option<&'static str> {
    TYPES.iter().find(|(known, _)| *known == code).map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::TYPES;

    #[test]
    fn codes_are_in_order() {
        assert!(TYPES.is_sorted_by(|one, other| one.0 < other.0));
    }
}
