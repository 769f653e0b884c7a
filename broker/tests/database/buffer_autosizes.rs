//! Shared buffers that follow failures: taken by one server, noted for the settings of then, gone with their type.

use crate::harness::Database;
use crate::regions::small;
use broker::{
    AutosizeAction, BufferAutosize, BufferDecision, EditError, ImportOptions, NO_AUTOSIZE,
};
use fleet::HardwareTypeName;
use std::time::Duration;

const SETTINGS: BufferAutosize =
    BufferAutosize { chance_micro: 10_000, min: 2, max: 9, cooldown: Duration::from_secs(86_400) };

#[tokio::test]
async fn settings_are_taken_once_noted_as_they_were_and_gone_with_their_type() {
    let database = Database::new().await;
    let broker = &database.broker;
    broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    let name = HardwareTypeName::from("new");
    let unknown = broker.set_buffer_autosize("ann", &name, &SETTINGS, None).await;
    assert!(matches!(unknown, Err(EditError::UnknownType { .. })), "{unknown:?}");
    broker.add_hardware_types("ann", std::slice::from_ref(&name)).await.expect("added");
    broker.set_buffer_autosize("ann", &name, &SETTINGS, Some(NO_AUTOSIZE)).await.expect("set");
    let stale = broker.set_buffer_autosize("ann", &name, &SETTINGS, Some(NO_AUTOSIZE)).await;
    assert!(matches!(stale, Err(EditError::Stale { .. })), "{stale:?}");

    // Of two servers one decides.
    let every = Duration::from_secs(600);
    let (one, other) =
        tokio::join!(broker.take_buffer_autosizes(every), broker.take_buffer_autosizes(every));
    let mut due = [one.expect("taken"), other.expect("taken")].concat();
    assert_eq!(due.len(), 1, "{due:?}");
    let due = due.remove(0);
    assert_eq!((&due.hardware_type, due.autosize, due.changed_at), (&name, SETTINGS, None));

    // A decision on settings that were replaced meanwhile is not noted.
    let decision =
        BufferDecision { action: AutosizeAction::Grow, to: Some(4), reason: "failures".to_owned() };
    let tighter = BufferAutosize { max: 3, ..SETTINGS };
    broker.set_buffer_autosize("ann", &name, &tighter, None).await.expect("set");
    broker.note_buffer_autosize(&due, &decision).await.expect("noted");
    let found = broker.buffer_autosizes().await.expect("read");
    assert_eq!((found.len(), found[0].autosize, &found[0].decision), (1, tighter, &None));
    let due = broker.take_buffer_autosizes(every).await.expect("taken").remove(0);
    broker.note_buffer_autosize(&due, &decision).await.expect("noted");
    let found = broker.buffer_autosizes().await.expect("read");
    assert_eq!(found[0].decision, Some(decision));

    // A type that is added again does not follow failures.
    broker.remove_hardware_type("ann", &name).await.expect("unused");
    broker.add_hardware_types("ann", std::slice::from_ref(&name)).await.expect("added");
    assert_eq!(broker.buffer_autosizes().await.expect("read"), []);
}
