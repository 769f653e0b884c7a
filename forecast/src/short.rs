//! Short-term forecasts, minutes to hours ahead: one observation in, the capacity for the next step out.
//!
//! A [`Method`] is a [`Level`], which forecasts the next observation, plus a [`Margin`] above it
//! (Eigen eq. 6). Eigen's three methods are exponential smoothing with a constant, an adaptive and a
//! smoothed adaptive margin; any other level can have the same margins.
//!
//! Each step costs O(1), or O(window) once in a sixteenth of a window.

mod arima;
mod least_squares;
mod level;
mod margin;
mod method;
mod volatility;
mod window;

pub use level::Level;
pub use margin::{Base, Margin, Slope};
pub use method::{Capacity, Forecaster, Method, MethodError};
