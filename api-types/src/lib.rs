//! Answers of the HTTP API, as the server writes and the command line reads them.
//!
//! | module | one line |
//! |---|---|
//! | [`contracts`] | churn contracts and their use |
//! | [`failures`] | replacements, lost MSBs, loans |
//! | [`moves`] | moves under way, the mover |
//! | [`solves`] | solves |
//! | [`status`] | the stored region, counted |
//! | [`tokens`] | API tokens |
//!
//! States and reasons are words: a client of an earlier version must read the answers of a server that has
//! more of them. The description of the API lists the words of each (feature `schema`).
//!
//! ```
//! use api_types::tokens::TokenAsked;
//! let (name, role) = ("ann".to_owned(), "admin".to_owned());
//! let token = TokenAsked { name, role, owner: None, days: Some(30) };
//! assert_eq!(token.days, Some(30));
//! ```

pub mod contracts;
pub mod failures;
pub mod moves;
pub mod solves;
pub mod status;
pub mod tokens;
