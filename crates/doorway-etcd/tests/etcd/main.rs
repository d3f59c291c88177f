//! The locks on etcd, against servers that the tests start, stop and kill themselves.
#![cfg(target_os = "linux")]

#[path = "../kit/mod.rs"]
mod kit;

mod judged;
mod kit_itself;
