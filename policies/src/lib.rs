//! Policies in SQL: what must hold and what should, compiled to an integer program.
//!
//! A policy is a view over the tables of a region or a cluster, one column of which is decided. What does
//! not touch that column is left to DataFusion; the rest is compiled, row by row, into linear rows over
//! 0/1 variables "this cell has this value". What cannot be compiled exactly is refused with its place.
//! See docs/policies.md.
//!
//! | module | what it does |
//! |---|---|
//! | `world` | tables, and the column that is decided |
//! | `scope` | the part of a cluster that pending replicas may need |
//! | `region`, `cluster`, `text` | worlds of a region, of a cluster, and as text |
//! | `source` | files: statements, annotations, places |
//! | `library` | DataFusion: plans, rows, values of expressions; the one file that runs something |
//! | `lineage` | which columns and rows of a plan decisions touch |
//! | `formula` | sums of 0/1 variables and formulas over them, in exact integers |
//! | `program` | variables, derived variables, rows |
//! | `cell` | cells that decisions touch, and operators on them |
//! | `interpreter`, `expression`, `plan`, `aggregate` | from plans to relations of such cells |
//! | `bound` | the limit that a row states |
//! | `compile` | from policies to what must hold of each row, and what it costs |
//! | `solve` | the optimum, or a smallest contradiction |
//! | `network`, `search` | values that follow each change of a cell; good decisions of large programs |
//! | `relax` | what relaxing one row of a contradiction alone needs |
//! | `region_linear` | policies that are linear per group, as limits of the region solver |
//! | `reads` | what of a region such limits follow from |
//! | `audit` | policies as plain SQL on a result, without the compiler |
//! | `cases` | tests of policies: small worlds, and what must hold of them |

/// The model of RAS (SOSP'21), expressions 1 to 7, as policies of a region.
pub const RAS: &str = include_str!("../library/ras.sql");

mod aggregate;
mod audit;
mod bound;
mod cases;
mod cell;
mod cluster;
mod compile;
mod error;
mod expression;
mod formula;
mod interpreter;
mod library;
mod lineage;
mod network;
mod plan;
mod program;
mod reads;
mod region;
mod region_linear;
mod relax;
mod scope;
mod search;
mod solve;
mod source;
mod text;
mod world;

pub use audit::{Finding, audit};
pub use bound::Side;
pub use cases::{CaseResult, TestError, TestFile};
pub use cluster::Decides;
pub use compile::{Compiled, Model};
pub use error::PolicyError;
pub use program::Size;
pub use reads::Reads;
pub use region_linear::{group_limits, limits_and_reads};
pub use relax::Relaxation;
pub use scope::scope;
pub use search::{Search, Searched};
pub use solve::{Achieved, Amount, Effort, Outcome, PolicyRow, Solution, SolveError};
pub use source::{Kind, Policies, Policy};
pub use world::{Column, Decided, Table, Type, Value, World, WorldError};
