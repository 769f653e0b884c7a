//! Independent recomputation of every guarantee.
