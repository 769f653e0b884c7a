//! Granted capacity: promises in versions, their terms, quotas of owners, churn contracts, requests that follow demand.

pub(crate) mod autosize;
pub(crate) mod contract;
pub(crate) mod contract_terms;
pub(crate) mod promise;
pub(crate) mod promise_history;
pub(crate) mod quota;
pub(crate) mod terms;

pub use autosize::{
    Autosize, AutosizeAction, AutosizeDecision, AutosizeDue, AutosizeError, AutosizeMetric,
    AutosizeRequest, AutosizeState,
};
pub use contract::{ContractAnswer, ContractError, ContractUse};
pub use contract_terms::{Contract, QuietTime};
pub use promise_history::PromiseVersion;
pub use quota::{Quota, QuotaAsked, QuotaError, QuotaLimit, QuotaPromise, QuotaWrong};
pub use terms::PromiseTerms;

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] = &[
    autosize::sql::ALL,
    contract::sql::ALL,
    promise::sql::ALL,
    promise_history::sql::ALL,
    quota::sql::ALL,
    terms::sql::ALL,
];
