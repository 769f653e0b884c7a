//! The parts of a mover, and the reasons for which it stops acting.

use super::settings::MoverSettings;
use broker::{Broker, DbError, MoverError, MoverInstance};
use decisions::limits::Room;
use tokio::sync::{Notify, watch};

/// Executes targets and takes decisions between solves, while it holds the lease.
pub struct Mover<A> {
    pub(crate) broker: Broker,
    /// Connection of recalls, which go on beside everything else.
    pub(crate) recalling: Broker,
    /// Connection of the lease: renewals wait for no other statement.
    pub(crate) leasing: Broker,
    pub(crate) agent: A,
    pub(crate) settings: MoverSettings,
    pub(crate) name: String,
    pub(crate) instance: MoverInstance,
    /// Notified when an MSB may have been lost or the stop switch was released.
    pub(crate) recalls: Notify,
    /// What the policies in force leave room for.
    pub(crate) room: watch::Receiver<Room>,
}

impl<A> Mover<A> {
    /// A mover. The name is for people: the lease belongs to this instance alone.
    pub fn new(broker: Broker, agent: A, settings: MoverSettings, name: String) -> Mover<A> {
        let instance = MoverInstance::new(&*name);
        // Own connections, in the usual case one each: a connection is free when it is needed and has
        // prepared the statements. On shared ones both would cost round trips each time.
        let [recalling, leasing] = [broker.steady(), broker.steady()];
        let (broker, recalls) = (broker.steady(), Notify::new());
        // What was sent last stays readable.
        let (_, room) = watch::channel(Room::default());
        Mover { broker, recalling, leasing, agent, settings, name, instance, recalls, room }
    }

    /// The same with decisions that know what the policies in force leave room for: the last that was sent.
    #[must_use]
    pub fn within(self, room: watch::Receiver<Room>) -> Mover<A> {
        Mover { room, ..self }
    }
}

/// The reason for which a mover stops acting.
pub(crate) enum Ended {
    /// Another mover has taken over.
    TakenOver,
    /// Postgres fails. The state is read again once it answers.
    Db(DbError),
}

impl From<MoverError> for Ended {
    fn from(error: MoverError) -> Ended {
        match error {
            MoverError::TakenOver => Ended::TakenOver,
            MoverError::Db(error) => Ended::Db(error),
        }
    }
}

impl From<DbError> for Ended {
    fn from(error: DbError) -> Ended {
        Ended::Db(error)
    }
}
