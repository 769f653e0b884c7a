//! `ras token`

use super::ask::with_server;
use crate::cli::{CreateToken, ListTokens, RevokeToken, Token, TokenAction};
use crate::client::login::Server;
use crate::client::{Ask, path, query};
use crate::command::store::first_token;
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use anyhow::{Context as _, Result};
use api_types::tokens::{TokenAsked, TokenMade, TokenOf, Tokens};
use chrono::{DateTime, Utc};
use serde_json::json;

pub(in crate::command) fn run(options: &Token, context: &Context) -> Result<Verdict> {
    match &options.action {
        TokenAction::Create(options) => create(options, context),
        TokenAction::First(options) => first_token::run(options, context),
        TokenAction::List(options) => list(options, context),
        TokenAction::Revoke(options) => revoke(options, context),
    }
}

fn create(options: &CreateToken, context: &Context) -> Result<Verdict> {
    let token = TokenAsked {
        name: options.name.clone(),
        role: options.role.to_string(),
        owner: options.owner.clone(),
        days: Some(options.days),
    };
    let body = serde_json::to_value(token).context("encoding the token")?;
    // Not idempotent: the secret of a lost answer is shown to no caller.
    let asked = Ask::post_once("/ops/v1/tokens", body);
    let made: TokenMade =
        with_server(Server::of(&options.server)?, async |client| client.ask(&asked).await?.read())?;
    let text = || {
        let TokenOf { name, role, expires_at, .. } = &made.token;
        let (until, secret) = (time(*expires_at), &made.secret);
        format!(
            "token {name} with role {role}, valid until {until}; its secret, shown only once:\n{secret}"
        )
    };
    context.answer(text, &made)?;
    Ok(Verdict::Fine)
}

fn list(options: &ListTokens, context: &Context) -> Result<Verdict> {
    let asked = [("all", options.all.to_string()), ("limit", options.limit.to_string())];
    let path = query("/ops/v1/tokens", &asked);
    let listed: Tokens =
        with_server(Server::of(&options.server)?, async |client| client.get(&path).await?.read())?;
    let tokens = &listed.tokens;
    let text = || {
        if tokens.is_empty() {
            return "no tokens; `ras token create` creates one".to_owned();
        }
        let mut text = table(tokens);
        if tokens.len() == usize::try_from(options.limit).unwrap_or(usize::MAX) {
            text.push_str("\n... possibly more: raise --limit");
        }
        text
    };
    context.answer(text, &listed)?;
    Ok(Verdict::Fine)
}

fn revoke(options: &RevokeToken, context: &Context) -> Result<Verdict> {
    let path = path(&["ops", "v1", "tokens", &options.which, "revoke"]);
    let asked = Ask::post_once(path, json!({}));
    let revoked: TokenOf =
        with_server(Server::of(&options.server)?, async |client| client.ask(&asked).await?.read())?;
    context.answer(|| format!("token {} revoked", revoked.name), &revoked)?;
    Ok(Verdict::Fine)
}

fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%MZ").to_string()
}

fn table(tokens: &[TokenOf]) -> String {
    let header = ["token", "role", "owner", "state", "made", "by", "expires", "last used", "id"];
    let mut table = Table::new(&header, 0..0);
    for of in tokens {
        table.add_row([
            of.name.clone(),
            of.role.clone(),
            of.owner.clone().unwrap_or_else(|| "-".to_owned()),
            of.state.clone(),
            time(of.created_at),
            of.created_by.clone(),
            time(of.expires_at),
            of.last_used_at.map_or("never".to_owned(), time),
            of.id.to_string(),
        ]);
    }
    table.to_string()
}
