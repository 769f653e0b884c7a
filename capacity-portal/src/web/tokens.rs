//! API tokens: the list, a form that creates one, and buttons that revoke them.

use super::layout::{NavItem, Page, Reader};
use super::ui::{self, Mood};
use crate::api::ops::tokens;
use crate::http::auth::Role;
use crate::http::{Problem, Site, in_time};
use api_types::tokens::{TokenAsked, TokenMade, TokenOf};
use axum::extract::{Form, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use broker::TokenState;
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;

/// Which tokens are listed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TokensQuery {
    /// Whether expired and revoked tokens are listed too.
    all: bool,
}

/// Handler of `GET /settings/tokens`.
pub(super) async fn show(
    State(site): State<Site>,
    reader: Reader,
    Query(TokensQuery { all }): Query<TokensQuery>,
) -> Result<Html<String>, Problem> {
    page(&site, &reader, all, &CreateForm::default(), None).await
}

/// The form that creates a token.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CreateForm {
    name: String,
    role: String,
    owner: String,
    days: String,
}

impl CreateForm {
    fn asked(&self) -> Result<TokenAsked, Problem> {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let days = given(&self.days).map(|text| text.parse()).transpose().map_err(|_| {
            let detail = format!("days: {:?} is not a whole number of days", self.days);
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "malformed", detail)
        })?;
        Ok(TokenAsked {
            name: self.name.trim().to_owned(),
            role: self.role.clone(),
            owner: given(&self.owner),
            days,
        })
    }
}

/// Handler of `POST /settings/tokens`. Only its answer shows the secret.
pub(super) async fn create(
    State(site): State<Site>,
    reader: Reader,
    Form(form): Form<CreateForm>,
) -> Result<Response, Problem> {
    reader.needs(Role::Admin)?;
    let made = match form.asked() {
        Ok(asked) => tokens::made_for(&site, reader.caller(), asked).await,
        Err(problem) => Err(problem),
    };
    let (status, form, outcome) = match made {
        Ok(made) => (StatusCode::CREATED, CreateForm::default(), Ok(made)),
        Err(problem) if problem.status().is_client_error() => {
            (problem.status(), form, Err(problem))
        }
        Err(problem) => return Err(problem),
    };
    let page = page(&site, &reader, false, &form, Some(&outcome)).await?;
    Ok((status, page).into_response())
}

/// The token to revoke.
#[derive(Debug, Deserialize)]
pub(super) struct RevokeForm {
    token: String,
}

/// Handler of `POST /settings/tokens/revoke`.
pub(super) async fn revoke(
    State(site): State<Site>,
    reader: Reader,
    Form(RevokeForm { token }): Form<RevokeForm>,
) -> Result<Redirect, Problem> {
    tokens::revoked_for(&site, reader.caller(), &token).await?;
    Ok(Redirect::to("/settings/tokens"))
}

async fn page(
    site: &Site,
    reader: &Reader,
    all: bool,
    form: &CreateForm,
    outcome: Option<&Result<TokenMade, Problem>>,
) -> Result<Html<String>, Problem> {
    let listed = tokens::listed_for(site, reader.caller(), all).await?;
    let now = in_time(site.broker.clock()).await?;
    let body = html! {
        (ui::crumbs(&[("/settings", "Settings")]))
        h1 { "API tokens" }
        p.facts { span { "A token is the key of a person or a program. Its name is the actor in the "
            a href="/trail" { "audit trail" } "." } }
        @match outcome {
            Some(Ok(made)) => (secret(made)),
            Some(Err(problem)) => div.notice.bad role="alert" { strong.verdict { "No token was created" } p { (problem.detail()) } },
            None => {}
        }
        section { h2 { "New token" } (create_form(reader, form)) }
        section {
            h2 { "Tokens" }
            p { @if all { a href="/settings/tokens" { "Only those that are good" } }
                @else { a href="/settings/tokens?all=true" { "Expired and revoked ones too" } } }
            @if listed.is_empty() { (ui::missing("There are no tokens in the database.")) } @else { (table(&listed, reader, now)) }
        }
    };
    Ok(Page { nav: NavItem::Settings, title: "API tokens", charts: false, body }.show(reader))
}

fn secret(made: &TokenMade) -> Markup {
    html! {
        div.notice.good {
            strong.verdict { "Token " (made.token.name) " is created" }
            p { "Copy its secret now. It is stored nowhere and will not be shown again." }
            p { code data-copy=(made.secret) { (made.secret) } }
        }
    }
}

fn create_form(reader: &Reader, form: &CreateForm) -> Markup {
    html! {
        form.fields.two method="post" action="/settings/tokens" {
            (reader.csrf())
            div.field { label for="name" { "Name" }
                input #name type="text" name="name" required maxlength="128" autocomplete="off" value=(form.name); }
            div.field { label for="role" { "Role" }
                select #role name="role" {
                    @for role in Role::ALL { option value=(role.as_str()) selected[form.role == role.as_str()] { (role.as_str()) } }
                } }
            div.field { label for="owner" { "Owner" }
                input #owner type="text" name="owner" maxlength="128" autocomplete="off" value=(form.owner) aria-describedby="owner-hint";
                span.hint #owner-hint { "limits the token to this owner; needed for the role owner" } }
            div.field { label for="days" { "Days until it expires" }
                input #days type="number" name="days" min="1" max="1830" step="1" value=(form.days) aria-describedby="days-hint";
                span.hint #days-hint { "empty for " (tokens::DAYS) } }
            div.actions { button.main type="submit" { "Create token" } }
        }
    }
}

fn table(listed: &[TokenOf], reader: &Reader, now: DateTime<Utc>) -> Markup {
    html! {
        div.scroll { table.cards data-complete role="table" {
            caption.quiet { "Tokens, newest first" }
            thead role="rowgroup" { tr role="row" {
                @for title in ["Name", "Role", "Owner", "State", "Created", "Expires", "Last used", ""] {
                    th scope="col" role="columnheader" { (title) }
                }
            } }
            tbody role="rowgroup" { @for of in listed { tr role="row" {
                th scope="row" role="rowheader" { (of.name) }
                td role="cell" data-label="Role" { (of.role) }
                td role="cell" data-label="Owner" { (of.owner.as_deref().unwrap_or(number::NOTHING)) }
                td role="cell" data-label="State" { (ui::state(if is_good(of) { Mood::Good } else { Mood::Plain }, &of.state)) }
                td role="cell" data-label="Created" { (ui::ago(of.created_at, now)) " by " (of.created_by) }
                td role="cell" data-label="Expires" { (ui::ago(of.expires_at, now)) }
                td role="cell" data-label="Last used" { @match of.last_used_at { Some(at) => (ui::ago(at, now)), None => (number::NOTHING) } }
                td role="cell" { @if is_good(of) {
                    form method="post" action="/settings/tokens/revoke" { (reader.csrf())
                        input type="hidden" name="token" value=(of.id);
                        button.danger type="submit" aria-label={ "Revoke " (of.name) } { "Revoke" } }
                } }
            } } }
        } }
    }
}

fn is_good(of: &TokenOf) -> bool {
    of.state == TokenState::Good.as_str()
}
