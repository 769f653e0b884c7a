//! Granted capacity: promises in versions, their terms, quotas of owners, churn contracts, requests that follow demand,
//! policies.

pub(crate) mod autosize;
pub(crate) mod contract;
pub(crate) mod contract_terms;
pub(crate) mod policy;
pub(crate) mod promise;
pub(crate) mod promise_history;
pub(crate) mod quota;
pub(crate) mod survives;
pub(crate) mod terms;

pub use autosize::{
    Autosize, AutosizeAction, AutosizeDecision, AutosizeDue, AutosizeError, AutosizeMetric,
    AutosizeRequest, AutosizeState, NO_AUTOSIZE,
};
pub use contract::{ContractAnswer, ContractError, ContractUse};
pub use contract_terms::{Contract, QuietTime};
pub use policy::{
    POLICY_BYTES_MAX, POLICY_NAME_MAX, POLICY_WHY_MAX, Policies, PoliciesEdition, PolicyAnswer,
    PolicyChange, PolicyChanges, PolicyError, PolicyVersion,
};
pub use promise_history::PromiseVersion;
pub use quota::{Quota, QuotaAsked, QuotaError, QuotaLimit, QuotaPromise, QuotaWrong};
pub use terms::PromiseTerms;

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] = &[
    autosize::sql::ALL,
    contract::sql::ALL,
    policy::sql::ALL,
    promise::sql::ALL,
    promise_history::sql::ALL,
    quota::sql::ALL,
    survives::sql::ALL,
    terms::sql::ALL,
];
