//! The tests of the C interface that run other programs. The files beside this folder are separate test programs, because
//! each registers frame sources, records memory or prepares dumps for its whole process.
#![allow(clippy::print_stdout, reason = "a test reports what it skips and measures")]
#![allow(clippy::expect_used, reason = "a test whose setup fails must fail")]

#[path = "../common/mod.rs"]
mod common;
mod headers;
mod native_host;
mod python_host;
mod python_lifetime;
