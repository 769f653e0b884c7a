//! Tokens and sessions: made, found, over.

use crate::harness::Database;
use broker::{NewToken, Role, Seq, TOKEN_LIFE_MAX, TokenError, TokenState};
use std::time::Duration;
use testkit::postgres::json_of;

fn token(name: &str, role: Role, owner: Option<&str>) -> NewToken {
    let mut digest = [7; 32];
    digest[..name.len().min(32)].copy_from_slice(&name.as_bytes()[..name.len().min(32)]);
    let life = Duration::from_secs(3_600);
    NewToken { name: name.to_owned(), digest, role, owner: owner.map(str::to_owned), life }
}

#[tokio::test]
async fn token_is_found_by_digest_until_revoked() {
    let database = Database::new().await;
    let broker = &database.broker;
    let web = token("web-deployer", Role::Owner, Some("web"));
    let made = broker.create_token("ann", &web).await.expect("made");
    assert_eq!(
        (&*made.name, made.owner.as_deref(), &*made.created_by),
        ("web-deployer", Some("web"), "ann")
    );
    let found = broker.token(&web.digest).await.expect("asked").expect("found");
    assert_eq!((found.id, found.role, found.owner.as_deref()), (made.id, Role::Owner, Some("web")));
    assert_eq!(broker.token(&[0; 32]).await.expect("asked"), None);

    // When it was last used is written once a minute.
    assert!(found.used_unsaid);
    broker.token_used(made.id).await.expect("noted");
    assert!(!broker.token(&web.digest).await.expect("asked").expect("found").used_unsaid);
    let noted = broker.tokens(false, 10).await.expect("listed")[0].last_used_at;
    assert!(noted.is_some());
    broker.token_used(made.id).await.expect("noted");
    assert_eq!(broker.tokens(false, 10).await.expect("listed")[0].last_used_at, noted);

    let again = NewToken { digest: [9; 32], ..web.clone() };
    let error = broker.create_token("ann", &again).await.expect_err("twice");
    assert!(matches!(error, TokenError::NameTaken { .. }), "{error}");
    let revoked = broker.revoke_token("bob", "web-deployer").await.expect("revoked");
    assert_eq!(revoked.revoked.as_ref().map(|of| &*of.by), Some("bob"));
    assert_eq!(broker.token(&web.digest).await.expect("asked"), None);
    for which in ["web-deployer", &made.id.to_string(), "unknown", "", "a\0b"] {
        let error = broker.revoke_token("bob", which).await.expect_err("over");
        assert!(matches!(error, TokenError::Unknown { .. }), "{error}");
    }
    // A new secret by the same name.
    let second = broker.create_token("ann", &again).await.expect("made");
    broker.revoke_token("bob", &second.id.to_string()).await.expect("revoked by its id");
    assert!(broker.tokens(false, 10).await.expect("listed").is_empty());
    assert_eq!(broker.tokens(true, 10).await.expect("listed").len(), 2);

    let trail = broker.trail_of("web-deployer", Seq(0), 10).await.expect("read");
    let said: Vec<(&str, &str)> =
        trail.iter().map(|entry| (&*entry.actor, entry.action.as_str())).collect();
    let (created, ended) = (("ann", "token_created"), ("bob", "token_revoked"));
    assert_eq!(said, [created, ended, created, ended]);
    assert_eq!(json_of(&trail[0].detail)["role"], "owner");
    assert!(broker.trail_is_whole().await.expect("asked"));
}

#[tokio::test]
async fn token_expires_by_database_clock() {
    let database = Database::new().await;
    let broker = &database.broker;
    let short = token("short", Role::Viewer, None);
    broker.create_token("ann", &short).await.expect("made");
    assert!(broker.token(&short.digest).await.expect("asked").is_some());
    database
        .execute("UPDATE tokens SET created_at = created_at - interval '2 h', expires_at = clock_timestamp()")
        .await;
    assert_eq!(broker.token(&short.digest).await.expect("asked"), None);
    assert!(broker.tokens(false, 10).await.expect("listed").is_empty());
    assert_eq!(broker.tokens(true, 10).await.expect("listed")[0].state, TokenState::Expired);
}

#[tokio::test]
async fn invalid_token_is_refused_without_trace() {
    let database = Database::new().await;
    let broker = &database.broker;
    let fine = || token("one", Role::Viewer, None);
    let long = "x".repeat(129);
    let refused =
        async |token: NewToken| broker.create_token("ann", &token).await.expect_err("refused");
    for name in ["", "a\0b", &long] {
        let error = refused(NewToken { name: name.to_owned(), ..fine() }).await;
        assert!(matches!(error, TokenError::BadName(_)), "{error}");
        let error = refused(NewToken { owner: Some(name.to_owned()), ..fine() }).await;
        assert!(matches!(error, TokenError::BadOwner(_)), "{error}");
    }
    let error = refused(token("one", Role::Owner, None)).await;
    assert!(matches!(error, TokenError::NoOwner), "{error}");
    for role in [Role::Operator, Role::Admin, Role::Health, Role::Emergency] {
        let error = refused(token("one", role, Some("web"))).await;
        assert!(matches!(error, TokenError::HasOwner { .. }), "{error}");
    }
    for life in [Duration::ZERO, TOKEN_LIFE_MAX + Duration::from_secs(1), Duration::MAX] {
        let error = refused(NewToken { life, ..fine() }).await;
        assert!(matches!(error, TokenError::Life), "{error}");
    }
    assert!(broker.tokens(true, 10).await.expect("listed").is_empty());
    assert_eq!(broker.last_seq().await.expect("asked"), Seq(0));
}

#[tokio::test]
async fn session_lasts_until_its_end_or_expiry() {
    let database = Database::new().await;
    let broker = &database.broker;
    let hour = Duration::from_secs(3_600);
    let (one, two, token) = ([1; 32], [2; 32], [3; 32]);
    broker.begin_session(&one, &token, hour).await.expect("begun");
    assert_eq!(broker.session(&one).await.expect("asked"), Some(token));
    assert_eq!(broker.session(&token).await.expect("asked"), None, "a token is no session");
    database
        .execute("UPDATE sessions SET began_at = began_at - interval '2 h', expires_at = clock_timestamp()")
        .await;
    assert_eq!(broker.session(&one).await.expect("asked"), None);
    // The next to sign in puts it away.
    broker.begin_session(&two, &token, hour).await.expect("begun");
    assert_eq!(database.number("SELECT count(*) FROM sessions").await, 1);
    broker.end_session(&two).await.expect("ended");
    broker.end_session(&two).await.expect("and again");
    assert_eq!(broker.session(&two).await.expect("asked"), None);
    assert_eq!(broker.last_seq().await.expect("asked"), Seq(0), "the trail is about the region");
}
