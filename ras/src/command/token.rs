//! `ras token`

use super::{Context, Verdict};
use crate::cli::{CreateToken, ListTokens, RevokeToken, Token, TokenAction};
use crate::store::{Need, with_store};
use crate::tables;
use anyhow::Result;
use broker::{NewToken, TokenRow};
use capacity_portal::Secret;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn run(options: &Token, context: &Context) -> Result<Verdict> {
    match &options.action {
        TokenAction::Create(options) => create(options, context),
        TokenAction::List(options) => list(options, context),
        TokenAction::Revoke(options) => revoke(options, context),
    }
}

fn create(options: &CreateToken, context: &Context) -> Result<Verdict> {
    let secret = Secret::for_token()?;
    let token = NewToken {
        name: options.name.clone(),
        digest: secret.digest(),
        role: options.role,
        owner: options.owner.clone(),
        life: Duration::from_secs(u64::from(options.days) * 86_400),
    };
    let made = with_store(&options.store, Need::There, async |store| {
        Ok(store.broker.create_token(&options.store.actor, &token).await?)
    })?;
    let text = || {
        let until = time(made.expires_at);
        format!(
            "token {} with role {}, valid until {until}; its secret, shown only once:\n{}",
            made.name,
            made.role,
            secret.expose()
        )
    };
    context.answer(text, &json!({ "token": made.json(), "secret": secret.expose() }))?;
    Ok(Verdict::Fine)
}

fn list(options: &ListTokens, context: &Context) -> Result<Verdict> {
    let tokens = with_store(&options.store, Need::There, async |store| {
        Ok(store.broker.tokens(options.all, options.limit).await?)
    })?;
    let text = || {
        if tokens.is_empty() {
            return "no tokens; `ras token create` creates one".to_owned();
        }
        let mut text = table(&tokens);
        if tokens.len() == usize::try_from(options.limit).unwrap_or(usize::MAX) {
            text.push_str("\n... possibly more: raise --limit");
        }
        text
    };
    let json: Vec<Value> = tokens.iter().map(TokenRow::json).collect();
    context.answer(text, &json!({ "tokens": json }))?;
    Ok(Verdict::Fine)
}

fn revoke(options: &RevokeToken, context: &Context) -> Result<Verdict> {
    let revoked = with_store(&options.store, Need::There, async |store| {
        Ok(store.broker.revoke_token(&options.store.actor, &options.token).await?)
    })?;
    context.answer(|| format!("token {} revoked", revoked.name), &revoked.json())?;
    Ok(Verdict::Fine)
}

fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%MZ").to_string()
}

fn table(tokens: &[TokenRow]) -> String {
    let header = ["token", "role", "owner", "state", "made", "by", "expires", "last used", "id"];
    let mut table = tables::table(&header, 0..0);
    tables::never_wrap(&mut table, &[0, 4, 6, 7, 8]);
    for of in tokens {
        table.add_row([
            of.name.to_string(),
            of.role.clone(),
            of.owner.as_deref().unwrap_or("-").to_owned(),
            of.over.as_deref().unwrap_or("good").to_owned(),
            time(of.created_at),
            of.created_by.to_string(),
            time(of.expires_at),
            of.last_used_at.map_or("never".to_owned(), time),
            of.id.to_string(),
        ]);
    }
    table.trim_fmt()
}
