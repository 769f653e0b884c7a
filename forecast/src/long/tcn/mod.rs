//! A temporal convolutional network, one for each cluster of similar series (Eigen section 4.3.1).
//!
//! The gradients are written by hand: the frameworks that would derive them bring more than a
//! hundred crates, for a network of a few thousand numbers (docs/decisions/0042).
//!
//! | module | what it does |
//! |---|---|
//! | `network` | dilated causal convolutions with residual connections, and their gradients |
//! | `output` | Cauchy, Laplace and normal: loss, gradient, quantiles |
//! | `train` | clusters, examples, Adam; the model |

mod network;
mod output;
mod train;

pub use output::Output;
pub use train::{Model, ModelError, Training, train};
