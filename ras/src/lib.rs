//! ras
