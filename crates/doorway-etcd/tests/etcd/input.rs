//! What is wrong with where the store is, who one is there, or which lock is meant; TLS and
//! passwords.

use doorway_etcd::{Kind, Store};
use kit::{
    history::Mark,
    proxy::Proxy,
    secrets::{Certificates, ask_for_passwords, password_file},
};
use serde_json::json;

use super::*;

async fn one_passage(config: Config) {
    let notes = Notes::here();
    let worker = Worker::open(config, LOCK, Which::Mutex, 0, &notes).await.expect("it opens");
    let place = worker.enter(0).await.expect("it enters");
    let permit = worker.go_in(place).await.expect("it is let in");
    worker.leave(permit).await.expect("it leaves");
}

#[track_caller]
fn says(error: &Error, words: &[&str]) {
    let text = error.to_string();
    assert!(!text.contains('\n'), "one line: {text}");
    for word in words {
        assert!(text.contains(word), "{word} is missing: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_there() {
    let patience = Duration::from_millis(1500);
    let started = Instant::now();
    let config = Config::new(["127.0.0.1:1", "http://127.0.0.1:2"]).with_patience(patience);
    let error = Store::connect(config).await.expect_err("nobody listens");
    println!("after {:?}: {error}", started.elapsed());
    assert!(matches!(error, Error::Unreachable { .. }));
    says(&error, &["127.0.0.1:1,http://127.0.0.1:2", "start it, or give the right endpoints"]);
    for endpoint in ["", "nonsense", "ftp://127.0.0.1:1", "127.0.0.1"] {
        let error = Store::connect(Config::new([endpoint])).await.expect_err("it is none");
        assert!(matches!(error, Error::Endpoint(_)), "{error}");
        says(&error, &[endpoint, "HOST:PORT"]);
    }
    let error = Store::connect(Config::new(Vec::<String>::new())).await.expect_err("there is none");
    assert!(matches!(error, Error::Endpoint(_)), "{error}");
}

/// One that does not answer stands in nobody's way if another does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_is_there() {
    let cluster = Cluster::start(1);
    one_passage(config(&["http://127.0.0.1:1".into(), cluster.endpoints()[0].clone()])).await;
    judged(&cluster.gateway());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_lock_of_that_name() {
    let cluster = Cluster::start(1);
    let store = Store::connect(config(&cluster.endpoints())).await.expect("it answers");
    assert!(matches!(store.lock("gpu").await, Err(Error::Missing(_))));
    store.semaphore("gpu", 3).await.expect("it is made");
    let error = store.semaphore("gpu", 4).await.expect_err("it has three");
    assert!(matches!(error, Error::Slots { found: Some(3), asked: Some(4), .. }), "{error}");
    says(&error, &["gpu has 3 slots and not 4", "doorway set"]);
    let error = store.mutex("gpu").await.expect_err("it is none");
    assert!(
        matches!(error, Error::Kind { found: Kind::Semaphore, asked: Kind::Mutex, .. }),
        "{error}"
    );
    says(&error, &["gpu is a semaphore and not a mutex", "doorway rm"]);
    assert!(matches!(store.group_lock("gpu", None).await, Err(Error::Kind { .. })));
    for name in ["", ".a", "a/b", "a\0", &"a".repeat(201)] {
        assert!(matches!(store.mutex(name).await, Err(Error::Name(_))), "{name:?}");
    }
    assert!(matches!(store.semaphore("none", 0).await, Err(Error::TooMany { .. })));
    let group = store.group_lock("rooms", None).await.expect("it is made");
    assert!(matches!(group.enter("").await, Err(Error::Session(_))));
    assert_eq!(store.names().await.expect("they can be read"), ["gpu", "rooms"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords() {
    let (cluster, place) =
        (Cluster::start(1), tempfile::tempdir().expect("there is room for a few files"));
    let gateway = cluster.gateway();
    ask_for_passwords(&gateway, "doorway", "open sesame", &["/doorway/", "/judge/"]);
    let config = || config(&cluster.endpoints());
    let error = Store::connect(config()).await.expect_err("it wants to know who asks");
    assert!(matches!(error, Error::Login(_)), "{error}");
    says(&error, &["lets nobody in without a user", "DOORWAY_ETCD_PASSWORD"]);
    let wrong = password_file(place.path(), "open barley");
    for user in ["doorway", "nobody"] {
        let error = Store::connect(config().with_user(user).with_password_file(&wrong))
            .await
            .expect_err("it is wrong");
        assert!(matches!(error, Error::Password(_)), "{error}");
        says(&error, &[user, "password file", "DOORWAY_ETCD_PASSWORD"]);
        assert!(!error.to_string().contains("barley"), "it is a secret");
    }
    let missing = config().with_user("doorway").with_password_file(place.path().join("none"));
    assert!(matches!(Store::connect(missing).await, Err(Error::File { .. })));
    let right = password_file(place.path(), "open sesame");
    let login = || config().with_user("doorway").with_password_file(&right);
    one_passage(login()).await;
    assert!(!format!("{:?}", login()).contains("sesame"), "it is a secret");
    let mut root = gateway.clone();
    root.log_in("root", "open sesame").expect("that is root's password");
    judged(&root);
    // What this user may not.
    let post = |path: &str, body| root.post(&format!("/v3/auth/{path}"), &body).expect("root may");
    post("user/add", json!({"name": "guest", "password": "open sesame"}));
    let error = Store::connect(login().with_user("guest")).await.expect_err("it may nothing");
    assert!(matches!(error, Error::Permission(_)), "{error}");
    says(&error, &["etcdctl role grant-permission", "/doorway/"]);
}

/// etcd forgets tokens after five minutes without use, and all of them when it is told to ask for
/// no passwords, and then to ask again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_etcd_has_forgotten_is_renewed() {
    let (cluster, place, notes) =
        (Cluster::start(1), tempfile::tempdir().expect("there is room"), Notes::here());
    let proxy = Proxy::to(cluster.addresses()[0]).await;
    ask_for_passwords(&cluster.gateway(), "doorway", "open sesame", &["/doorway/", "/judge/"]);
    let [mut root, mut somebody] = [(); 2].map(|()| cluster.gateway());
    root.log_in("root", "open sesame").expect("that is root's password");
    somebody.log_in("doorway", "open sesame").expect("that is its password");
    let lease = Duration::from_secs(5);
    let password = password_file(place.path(), "open sesame");
    let login = config(&[proxy.endpoint()])
        .with_ttl(lease)
        .with_user("doorway")
        .with_password_file(password);
    let workers = clients(&login, Which::Mutex, 2, &notes).await;
    let [holder, waiter] = &workers[..] else { unreachable!("they are two") };
    let place = holder.enter(0).await.expect("it enters");
    let permit = holder.go_in(place).await.expect("it is let in");
    let place = waiter.enter(0).await.expect("it enters");
    let waits = tokio::spawn({
        let waiter = waiter.clone();
        async move { waiter.go_in(place).await }
    });

    root.post("/v3/auth/disable", &json!({})).expect("root may");
    cluster.gateway().post("/v3/auth/enable", &json!({})).expect("anybody may");
    let forgotten = somebody.keys("/doorway/").expect_err("it has forgotten who that is");
    assert!(forgotten.contains("invalid auth token"), "{forgotten}");
    root.log_in("root", "open sesame").expect("that is root's password");
    let ticket = permit.ticket() as i64;
    holder.write(&permit, Mark::Work { ticket }).await.expect("it says again who it is");
    // What is watched has to be watched anew.
    proxy.sever();
    let mut left = i64::MAX;
    until(lease, "somebody keeps the lease alive", || {
        let now = root.seconds_left(first_lease(&root)).expect("it is there");
        std::mem::replace(&mut left, now) < now
    })
    .await;
    assert!(!permit.is_lost(), "its lease was kept alive");
    holder.leave(permit).await.expect("it leaves");
    let permit = waits.await.expect("it does not panic").expect("it is told");
    waiter.leave(permit).await.expect("it leaves");
    assert_eq!(judged_with(&root, Which::Mutex, &notes).lost, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates() {
    let certificates = Certificates::new();
    let cluster = Cluster::start_with(1, Some(&certificates.server(true)));
    let config = || config(&cluster.secure_endpoints()).with_patience(Duration::from_millis(1500));
    let (ca, own) = (
        certificates.file("ca.pem"),
        [certificates.file("client.pem"), certificates.file("client.key")],
    );
    one_passage(config().with_ca(&ca).with_identity(&own[0], &own[1])).await;
    judged(&cluster.gateway());
    // It does not say who it is; it does not know the server; it says who it is to one who is
    // somebody else.
    let others = Certificates::new();
    let [their_ca, their_own] = [others.file("ca.pem"), others.file("client.pem")];
    for config in [
        config().with_ca(&ca),
        config(),
        config().with_ca(&their_ca).with_identity(&own[0], &own[1]),
        config().with_ca(&ca).with_identity(&their_own, others.file("client.key")),
    ] {
        let error = Store::connect(config).await.expect_err("they do not trust each other");
        println!("{error}");
        assert!(matches!(error, Error::Unreachable { .. } | Error::Tls(_)), "{error}");
    }
    let no_pem = certificates.file("client.key");
    let error = Store::connect(config().with_ca(&ca).with_identity(&no_pem, &no_pem))
        .await
        .expect_err("it is a key");
    println!("{error}");
    let missing = Store::connect(config().with_ca(certificates.file("none")))
        .await
        .expect_err("it is not there");
    assert!(matches!(missing, Error::File { .. }), "{missing}");
    says(&missing, &["none", "give a file that can be read"]);
}
