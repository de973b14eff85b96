//! The collector: takes epochs from agents, stores them, and pairs them into estimates.
//!
//! | component | the question it answers |
//! |---|---|
//! | `server` | Who is connected, and for how long? |
//! | [`access`] | Who is that, and which points may they write? |
//! | `ingest` | What do they bring, and what is the answer? |
//! | `journal` | Is it new, is it durable? |
//! | `estimating` | What was already published? |
//! | `history` | What was estimated, over time? |
//! | [`flows`] | What did single flows do? |
//! | [`bundle`] | What is known of an incident, in one file? |
//! | [`api`] | What may one ask, and what is the answer? |
//! | `dashboard` | What does a browser get that asks for a page? |
//! | [`alerts`] | What is reported, and when? |
//! | `segments` | How are segments, for those who scrape? |
//! | `telemetry` | How is it going? |
//! | [`stepped`] | What does all of it do, step by step? |
//! | [`authority`] | Who signs certificates, if there is no other authority? |

pub mod access;
pub mod alerts;
pub mod api;
pub mod authority;
mod budget;
pub mod bundle;
mod clock;
mod collector;
mod config;
mod dashboard;
mod estimating;
pub mod flows;
mod history;
mod ingest;
mod journal;
mod log_limit;
mod point_metrics;
mod segments;
mod server;
pub mod stepped;
mod stop;
mod telemetry;

pub use clock::WallClock;
pub use collector::{Addresses, Collector, CollectorError, EPOCHS_FOLDER, ESTIMATES_FOLDER};
pub use config::{CollectorConfig, CollectorConfigError, PlainHttp};
pub use estimating::EventSink;
pub use journal::{EpochRetention, Refusal};
pub use server::{Limits, TlsConfig, TlsError};
pub use stop::StopRequest;
