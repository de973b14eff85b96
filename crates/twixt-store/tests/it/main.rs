//! The log from outside: what is stored is found again, whatever happens to the files.

mod concurrency;
mod crash;
mod damage;
mod faults;
mod full_disk;
mod golden;
mod kept;
mod model;
mod parts;
mod queue;
mod retention;
mod support;
