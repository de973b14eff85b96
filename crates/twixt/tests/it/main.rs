//! Every integration test of the command, in one program: the support code is compiled once.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it stands")]

#[cfg(target_os = "linux")]
mod agent;
#[cfg(target_os = "linux")]
mod agent_clock;
#[cfg(target_os = "linux")]
mod agent_drops;
#[cfg(target_os = "linux")]
mod agent_troubles;
mod architecture;
mod attack;
mod bad_input;
mod bundle;
mod capture_drops;
mod check;
mod check_collector;
mod clock_corrections;
mod clock_steps;
mod collector;
mod collector_flows;
mod collisions;
mod dashboard;
mod delay;
mod demo;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(target_os = "linux")]
mod end_to_end;
mod evaluate;
mod findings;
mod flow_pair;
mod flow_programs;
mod flow_records;
mod flows;
mod grafana;
mod heavy;
#[cfg(unix)]
mod interruption;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod live_one_point;
#[cfg(target_os = "linux")]
mod live_percentiles;
#[cfg(target_os = "linux")]
mod live_system;
mod looking;
mod merged_segments;
mod outage;
mod pages;
mod path;
mod percentiles;
mod plan_upgrade;
mod query_estimates;
mod query_zones;
mod record;
mod reorder;
mod rtp;
mod rtt;
mod samples;
mod selection;
mod series;
mod simulate;
mod stalls;
mod store;
mod strays;
mod support;
mod time_order;
mod top;
mod traces;
mod wording;
