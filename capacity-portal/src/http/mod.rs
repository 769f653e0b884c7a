//! What the API and the pages share: errors, state, authentication, limits, and the reading of requests.
//!
//! | module | what it does |
//! |---|---|
//! | `state` | state shared by all handlers |
//! | `problem`, `problem_types` | errors as `application/problem+json`; their codes and meanings |
//! | `auth` | tokens, roles, sessions and the caller of a request |
//! | `limits`, `rate` | middleware in front of every route; rate limits |
//! | `followers` | limits on pages that follow the region |
//! | `query`, `body` | strict reading of queries and bodies |
//! | `field` | field errors, and the reader of objects that reports every one |
//! | `list`, `list_filter`, `page` | lists: filters, order, pages and their tokens |
//! | `range` | ranges of time before now |
//! | `preconditions`, `idempotency` | `If-Match` and ETags; `Idempotency-Key` |
//! | `schema` | parts of OpenAPI schemas |
//! | `timeout` | timeouts |
//! | `tls` | certificates |

pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod field;
pub(crate) mod followers;
pub(crate) mod idempotency;
pub(crate) mod limits;
pub(crate) mod list;
pub(crate) mod list_filter;
pub(crate) mod page;
pub(crate) mod preconditions;
pub(crate) mod problem;
pub(crate) mod problem_types;
pub(crate) mod query;
pub(crate) mod range;
pub(crate) mod rate;
pub(crate) mod schema;
pub(crate) mod state;
pub(crate) mod timeout;
pub(crate) mod tls;

pub(crate) use problem::Problem;
pub(crate) use state::Site;
pub(crate) use timeout::in_time;
