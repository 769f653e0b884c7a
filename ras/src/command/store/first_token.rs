//! `ras token first`

use crate::cli::FirstToken;
use crate::context::Context;
use crate::exit::Verdict;
use crate::store::{Need, actor, with_store};
use anyhow::{Result, ensure};
use broker::{NewToken, Role};
use capacity_portal::Secret;
use serde_json::json;
use std::time::Duration;

/// Tokens read to look for an admin.
const TOKENS_MAX: u32 = 10_000;

pub(in crate::command) fn run(options: &FirstToken, context: &Context) -> Result<Verdict> {
    let secret = Secret::for_token()?;
    let token = NewToken {
        name: options.name.clone(),
        digest: secret.digest(),
        role: Role::Admin,
        owner: None,
        life: Duration::from_secs(u64::from(options.days) * 86_400),
    };
    let made = with_store(&options.store, Need::There, async |store| {
        let good = store.broker.tokens(false, TOKENS_MAX).await?;
        ensure!(
            good.iter().all(|of| of.role != Role::Admin.as_str()),
            "the store has an admin token; `ras token create` creates more, with that token or on the \
             server's machine"
        );
        Ok(store.broker.create_token(&actor(), &token).await?)
    })?;
    let text = || {
        format!(
            "token {} with role {}, valid until {}; its secret, shown only once:\n{}",
            made.name,
            made.role,
            made.expires_at.format("%Y-%m-%d %H:%MZ"),
            secret.expose()
        )
    };
    context.answer(text, &json!({ "token": made.json(), "secret": secret.expose() }))?;
    Ok(Verdict::Fine)
}
