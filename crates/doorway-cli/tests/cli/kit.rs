//! What the tests of `doorway-etcd` stand on, as far as it is needed here.

#![allow(dead_code, reason = "it is made for other tests as well")]

#[path = "../../../doorway-etcd/tests/kit/cluster.rs"]
pub(crate) mod cluster;
#[path = "../../../doorway-etcd/tests/kit/gateway.rs"]
pub(crate) mod gateway;
#[path = "../../../doorway-etcd/tests/kit/history.rs"]
pub(crate) mod history;
#[path = "../../../doorway-etcd/tests/kit/judge.rs"]
pub(crate) mod judge;
#[path = "../../../doorway-etcd/tests/kit/secrets.rs"]
pub(crate) mod secrets;
