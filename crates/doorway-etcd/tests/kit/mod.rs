//! What the tests on etcd stand on: servers of their own, a judge, a network that can be cut.

#![allow(dead_code, reason = "whoever uses it takes what it needs")]

pub(crate) mod cluster;
pub(crate) mod gateway;
pub(crate) mod history;
pub(crate) mod judge;
pub(crate) mod notes;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod secrets;
pub(crate) mod worker;
