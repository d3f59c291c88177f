//! etcd's messages and services, as far as Doorway uses them; generated from `proto` by the example
//! `generate`.

#![expect(missing_docs, clippy::all, reason = "generated")]

/// Keys, values and events.
pub mod mvccpb {
    include!("generated/mvccpb.rs");
}

/// What can be asked of etcd.
pub mod etcdserverpb {
    include!("generated/etcdserverpb.rs");
}

/// etcd's own locks, to compare with.
pub mod v3lockpb {
    include!("generated/v3lockpb.rs");
}
