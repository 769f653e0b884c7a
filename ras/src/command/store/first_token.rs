//! `ras token first`

use crate::cli::FirstToken;
use crate::context::Context;
use crate::exit::Verdict;
use crate::store::{Need, Store, actor, with_store};
use anyhow::{Context as _, Result};
use api_types::tokens::TokenMade;
use broker::{NewToken, Role, TokenRow};
use capacity_portal::{Secret, token_view};
use std::time::Duration;

/// Tokens read to look for an admin.
const TOKENS_MAX: u32 = 10_000;

/// Creates an admin token, unless there is one.
///
/// # Errors
/// If Postgres fails.
pub(super) async fn make(
    store: &Store,
    name: &str,
    days: u32,
) -> Result<Option<(TokenRow, Secret)>> {
    let good = store.broker.tokens(false, TOKENS_MAX).await?;
    if good.iter().any(|of| of.role == Role::Admin) {
        return Ok(None);
    }
    let secret = Secret::for_token()?;
    let token = NewToken {
        name: name.to_owned(),
        digest: secret.digest(),
        role: Role::Admin,
        owner: None,
        life: Duration::from_secs(u64::from(days) * 86_400),
    };
    Ok(Some((store.broker.create_token(&actor(), &token).await?, secret)))
}

pub(in crate::command) fn run(options: &FirstToken, context: &Context) -> Result<Verdict> {
    let made = with_store(&options.store, Need::There, async |store| {
        make(store, &options.name, options.days).await
    })?;
    let (made, secret) = made.context(
        "the store has an admin token; `ras token create` creates more, with that token or on the \
         server's machine",
    )?;
    let text = || {
        format!(
            "token {} with role {}, valid until {}; its secret, shown only once:\n{}",
            made.name,
            made.role,
            made.expires_at.format("%Y-%m-%d %H:%MZ"),
            secret.expose()
        )
    };
    let secret = secret.expose().to_owned();
    context.answer(text, &TokenMade { token: token_view(made.clone()), secret: secret.clone() })?;
    Ok(Verdict::Fine)
}
