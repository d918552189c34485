//! What hooks tell, called as modules call them once their tables lead to them.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod blocks;
mod host;
mod hot;
mod mappings;
mod new;
pub(crate) mod recorded;
mod sampling;
mod sessions;
mod signals;
mod threads;
