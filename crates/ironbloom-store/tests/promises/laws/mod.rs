//! Promise: the laws at the edge between a guard and its store, for every kind and for both guards.

mod doubts;
mod publishing;
mod reentry;
mod remembered;
mod shared;
mod state;
mod windows;
