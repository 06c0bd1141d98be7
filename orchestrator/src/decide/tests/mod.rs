#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod blueprints;
mod budget;
mod children;
mod control;
mod deadlines;
mod fleet;
mod groups;
mod learning;
mod loss;
mod meaning;
mod nested;
mod peers;
mod placing;
mod priority;
mod properties;
mod replanning;
mod review;
mod specialists;
mod spending;
mod standstill;
mod stuck;
mod tables;
mod tools;
mod transitions;
mod waits;
mod words;
