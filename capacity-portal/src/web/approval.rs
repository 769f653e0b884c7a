//! Buttons that approve or reject a solve or a request.

use super::layout::Reader;
use crate::http::auth::Role;
use maud::{Markup, html};
use serde::Deserialize;

/// Buttons that approve or reject what is shown at path `at`.
pub(super) fn decision(at: &str, reader: &Reader) -> Markup {
    html! {
        @if reader.may(Role::Operator) {
            form.actions method="post" action={ (at) "/approve" } { (reader.csrf())
                button.main type="submit" { "Approve" } }
            form.toolbar method="post" action={ (at) "/reject" } { (reader.csrf())
                div.field { label for="why" { "Reason" } input #why type="text" name="why" required maxlength="500"; }
                button.danger type="submit" { "Reject" } }
        } @else { p.note { "Approving requires the role operator." } }
    }
}

/// The reason of a rejection.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RejectForm {
    pub(super) why: String,
}
