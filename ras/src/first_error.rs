//! Errors of a function that is called where there is no room for one.

use std::sync::{Mutex, PoisonError};

/// The first error, to be told afterwards.
#[derive(Debug)]
pub(crate) struct FirstError<E>(Mutex<Option<E>>);

impl<E> FirstError<E> {
    pub(crate) fn none() -> FirstError<E> {
        FirstError(Mutex::new(None))
    }

    /// The value, or the default where there is an error.
    pub(crate) fn or_default<T: Default>(&self, result: Result<T, E>) -> T {
        result.unwrap_or_else(|error| {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            T::default()
        })
    }

    pub(crate) fn told(self) -> Result<(), E> {
        match self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some(error) => Err(error),
        }
    }
}
