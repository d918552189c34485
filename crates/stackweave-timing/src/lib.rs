//! The timing recorder: phases that a program tells of, in a recording.
//!
//! For programs that have a notion of functions which are no calls of an interpreter: a compiler that traces code, a planner
//! of queries, a tool that builds. They say when a phase begins and ends; phases nest on each thread.
#![forbid(unsafe_code)]
