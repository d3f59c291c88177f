//! Certificates of our own making, and a store that asks who one is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;
use tempfile::TempDir;

use super::{
    cluster::Tls,
    gateway::{Gateway, after, bytes},
};

/// An authority, a server that it vouches for, and a client.
pub(crate) struct Certificates {
    place: TempDir,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().expect("there is room for a few files");
        let key = || KeyPair::generate().expect("there is enough chance");
        let write = |name: &str, text: &str| {
            fs::write(place.path().join(name), text).expect("it can be written")
        };
        let mut authority = CertificateParams::new([]).expect("no names");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = key();
        write("ca.pem", &authority.self_signed(&authority_key).expect("it can be signed").pem());
        let authority = Issuer::new(authority, authority_key);
        for (who, names) in [
            ("server", vec!["localhost".into(), "127.0.0.1".into()]),
            ("client", vec!["tests".into()]),
        ] {
            let key = key();
            let params = CertificateParams::new(names).expect("they are names");
            write(
                &format!("{who}.pem"),
                &params.signed_by(&key, &authority).expect("it can be signed").pem(),
            );
            write(&format!("{who}.key"), &key.serialize_pem());
        }
        Self { place }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// For a server, which may ask clients for theirs.
    pub(crate) fn server(&self, asks: bool) -> Tls {
        let clients = asks.then(|| self.file("ca.pem"));
        Tls { certificate: self.file("server.pem"), key: self.file("server.key"), clients }
    }
}

/// From now on the store wants to know who one is. `root` may do everything, `user` only what is
/// under these prefixes; the password is the same.
pub(crate) fn ask_for_passwords(gateway: &Gateway, user: &str, password: &str, prefixes: &[&str]) {
    let post =
        |path: &str, body| gateway.post(&format!("/v3/auth/{path}"), &body).expect("it is done");
    for name in ["root", user] {
        post("user/add", json!({"name": name, "password": password}));
        post("role/add", json!({"name": name}));
        post("user/grant", json!({"user": name, "role": name}));
    }
    for prefix in prefixes {
        let permission = json!({"permType": "READWRITE", "key": bytes(prefix), "range_end": bytes(&after(prefix))});
        post("role/grant", json!({"name": user, "perm": permission}));
    }
    post("enable", json!({}));
}

/// A file with a password.
pub(crate) fn password_file(directory: &Path, password: &str) -> PathBuf {
    let file = directory.join("password");
    fs::write(&file, format!("{password}\n")).expect("it can be written");
    file
}
