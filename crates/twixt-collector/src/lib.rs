//! The collector: takes epochs from agents, stores them, and pairs them into estimates.

pub mod engine;
