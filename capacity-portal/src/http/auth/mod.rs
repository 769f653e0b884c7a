//! Authentication: bearer tokens and sessions, roles, and the caller of a request.
//!
//! | module | what it does |
//! |---|---|
//! | `authority` | tokens of the settings, with roles |
//! | `cache` | finds the token of a secret or a session, in the settings, the cache or the database |
//! | `caller` | the caller of a request, and what it may do |
//! | `secret` | makes secrets; digests them |

pub(crate) mod authority;
pub(crate) mod cache;
pub(crate) mod caller;
pub(crate) mod secret;

pub(crate) use authority::Role;
pub(crate) use caller::{Caller, address};
