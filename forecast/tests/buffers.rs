//! Shared buffers that follow failures.

use forecast::buffers::{Action, Current, KNOWN, Need, Reason, Settings, SettingsError, decide};
use proptest::prelude::*;

const DAY: i64 = 86_400;
const NOW: i64 = 1_700_000_000;

fn settings() -> Settings {
    Settings { chance: 0.01, min: 4, max: 40, cooldown: 86_400 }
}

/// The decision for a need, a size, and days since the last change.
fn decided(need: u32, servers: u32, days: i64) -> (Action, Reason) {
    let need = Some(Need { servers: need, known: 30 * DAY });
    let current = Current { servers, changed_at: Some(NOW - days * DAY) };
    let decision = decide(need, &settings(), &current, NOW).expect("valid settings");
    (decision.action, decision.reason)
}

#[test]
fn a_buffer_grows_at_once_and_shrinks_slowly() {
    let failures = |need| Reason::Failures { need, percent: 1.0 };
    assert_eq!(decided(12, 10, 0), (Action::Grow(12), failures(12)));
    assert_eq!(decided(60, 10, 0), (Action::Grow(40), failures(60)), "never above max");
    assert_eq!(decided(60, 40, 9), (Action::Keep, Reason::AtMax { need: 60, percent: 1.0 }));
    assert_eq!(decided(12, 12, 9).0, Action::Keep);
    assert_eq!(decided(5, 38, 9), (Action::Shrink(35), failures(5)), "a tenth at most");
    assert_eq!(decided(5, 38, 0), (Action::Keep, Reason::Cooldown));
    assert_eq!(decided(0, 5, 9), (Action::Shrink(4), failures(0)), "one at least, never below min");
    assert_eq!(decided(0, 3, 0), (Action::Grow(4), Reason::Outside));
    assert_eq!(decided(0, 50, 9), (Action::Shrink(40), Reason::Outside));
}

#[test]
fn little_history_shrinks_nothing() {
    let after = |need, servers| {
        let current = Current { servers, changed_at: None };
        decide(need, &settings(), &current, NOW).expect("valid settings")
    };
    let short = |servers| Some(Need { servers, known: KNOWN - 1 });
    assert_eq!(after(short(5), 30).reason, Reason::TooShort);
    assert_eq!(after(short(31), 30).action, Action::Grow(31), "what is seen counts");
    let unknown = after(None, 30);
    assert_eq!((unknown.action, unknown.reason), (Action::Keep, Reason::Unknown));
    assert_eq!(after(None, 1).action, Action::Grow(4), "what the operator set holds");
}

#[test]
fn settings_out_of_range_are_refused() {
    let wrong = |settings: Settings| settings.check().expect_err("out of range");
    let of = settings();
    assert_eq!(wrong(Settings { chance: 0.0, ..of }), SettingsError::Chance(0.0));
    assert!(matches!(wrong(Settings { chance: f64::NAN, ..of }), SettingsError::Chance(_)));
    let limits = SettingsError::Limits { min: 41, max: 40 };
    assert_eq!(wrong(Settings { min: 41, ..of }), limits);
    assert_eq!(wrong(Settings { cooldown: 3_599, ..of }), SettingsError::Cooldown(3_599));
}

proptest! {
    /// Within the limits it stays there, a change goes towards the need and not past it, and it never
    /// shrinks by more than a tenth, within a cooldown, or on little history.
    #[test]
    fn changes_go_towards_the_need(
        need in 0u32..100, servers in 0u32..100, since in 0i64..3 * DAY, known in 0i64..60 * DAY,
    ) {
        let of = settings();
        let current = Current { servers, changed_at: Some(NOW - since) };
        let decision = decide(Some(Need { servers: need, known }), &of, &current, NOW).expect("valid");
        let wanted = need.clamp(of.min, of.max);
        match decision.action {
            // What is too much stays only within the cooldown or on little history.
            Action::Keep => prop_assert!(
                servers == wanted
                    || servers > wanted && (since < DAY || servers <= of.max && known < KNOWN),
                "{decision:?}"
            ),
            Action::Grow(to) => prop_assert!(to > servers && to == wanted, "{decision:?}"),
            Action::Shrink(to) => {
                prop_assert!(to < servers && to >= wanted, "{decision:?}");
                prop_assert!(since >= DAY);
                if servers <= of.max {
                    prop_assert!(known >= KNOWN && servers - to <= (servers / 10).max(1));
                }
            }
        }
    }
}
