//! etcd's messages and services, as far as Doorway uses them; generated from `proto` by the example
//! `generate`.

#![expect(missing_docs, clippy::all, reason = "generated")]

/// Keys, values and events.
pub mod mvccpb {
    include!("generated/mvccpb.rs");
}

/// The requests that etcd answers.
pub mod etcdserverpb {
    include!("generated/etcdserverpb.rs");
}

/// etcd's own locks, for comparison.
pub mod v3lockpb {
    include!("generated/v3lockpb.rs");
}
