//! A history as a whole: what is stored is answered, whatever happens in between.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod crash;
mod damage;
mod excerpt;
mod faults;
mod full;
mod hours;
mod kept;
mod memory;
mod one_point;
mod pages;
mod retention;
mod support;
