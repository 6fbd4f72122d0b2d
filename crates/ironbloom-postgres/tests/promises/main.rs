//! The extension's promises, each shown on servers that the tests start themselves.

mod checks;
mod commits;
mod common;
mod concurrency;
mod crashes;
mod damage;
mod equality;
mod filters;
mod harm;
mod life;
mod model;
mod owners;
mod planner;
mod rows;
mod standby;
mod upgrade;
