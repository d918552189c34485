//! Captured stacks to named frames.
//!
//! A stack that was captured is an integer, and its frames are words. A [`Resolver`] names them, in batches: each
//! distinct word once, for all stacks that it stands in. It knows no interpreter and no loader; a [`Names`] speaks
//! for both.
//!
//! ```
//! use stackweave_core::StackId;
//! use stackweave_profile::{Names, Resolver, write_json};
//! use stackweave_store::StackTable;
//! use stackweave_symbolize::Options;
//!
//! # fn example(stacks: &StackTable, captured: &[StackId], names: &dyn Names) -> std::io::Result<()> {
//! let resolver = Resolver::new(Options::default());
//! let resolved = resolver.resolve(stacks, captured, names);
//! for frame in resolved.iter().flat_map(|stack| stack.iter()) {
//!     println!("{} {} at {:?}:{:?}", frame.kind, frame.name, frame.filename, frame.position.line);
//! }
//! write_json(&mut std::io::stdout(), &resolved)
//! # }
//! ```
#![forbid(unsafe_code)]

mod batch;
mod frame;
mod json;
mod known_frames;
mod module_history;
mod native_frames;
mod resolver;
mod word_hash;

pub use frame::{Frame, FrameKind};
pub use json::write_json;
pub use resolver::Resolver;
pub use stackweave_core::Names;
