//! The extension's promises, each shown on servers that the tests start themselves.

mod checks;
mod classes;
mod commits;
mod common;
mod crashes;
mod damage;
mod equality;
mod filters;
mod fuzz;
mod harm;
mod life;
mod owners;
mod planner;
mod review;
mod row_types;
mod rows;
mod serializable;
mod standby;
mod upgrade;
mod watching;
