//! Long lines, in which most places watch their predecessors alone (`src/far.rs`).
//!
//! The leases are so long that nothing here waits for one to end, nor for a line to be read again.

use doorway_etcd::{Permit, Place};
use serde_json::json;

use super::*;
use crate::kit::{
    gateway::{after, bytes},
    notes::What,
    proxy::Proxy,
};

/// The places beyond the first 33 watch their predecessors alone.
const PLACES: usize = 48;
const TTL: Duration = Duration::from_secs(120);
/// For what takes no time unless something is wrong.
const SOON: Duration = Duration::from_secs(30);

/// A lock, clients that are numbered from the front, and their places.
struct Crowd {
    cluster: Cluster,
    gateway: Gateway,
    notes: Notes,
    which: Which,
    workers: Vec<Arc<Worker>>,
    places: Vec<Option<Place>>,
}

impl Crowd {
    /// Client 0 asks for session 0, and all others for what `session` says.
    async fn gather(which: Which, session: impl Fn(usize) -> usize) -> Self {
        let cluster = Cluster::start(1);
        let config = config(&cluster.endpoints()).with_ttl(TTL).with_limit(SOON);
        Self::gather_at(cluster, config, which, session).await
    }

    async fn gather_at(
        cluster: Cluster,
        config: Config,
        which: Which,
        session: impl Fn(usize) -> usize,
    ) -> Self {
        let (gateway, notes) = (cluster.gateway(), Notes::here());
        let (workers, mut places) = (clients(&config, which, PLACES, &notes).await, Vec::new());
        for worker in &workers {
            places.push(Some(worker.enter(session(worker.who)).await.expect("it enters")));
        }
        let crowd = Self { cluster, gateway, notes, which, workers, places };
        crowd.settles().await;
        crowd
    }

    /// Gives the clients time to go over to what they have to watch.
    async fn settles(&self) {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    /// The place ends without a passage.
    fn gives_up(&mut self, who: usize) -> Place {
        let place = self.place(who);
        self.notes.add(who, What::Out(place.ticket() as i64));
        place
    }

    fn place(&mut self, who: usize) -> Place {
        self.places[who].take().expect("it is in line")
    }

    async fn goes_in(&mut self, who: usize) -> Permit {
        let place = self.place(who);
        self.workers[who].go_in(place).await.expect("it is let in")
    }

    /// Starts a passage from where the client stands to the exit.
    fn passes(&mut self, who: usize) -> JoinHandle<Result<(), Error>> {
        let (worker, place) = (self.workers[who].clone(), self.place(who));
        tokio::spawn(async move {
            let permit = worker.go_in(place).await?;
            worker.leave(permit).await
        })
    }

    /// Lets the rest of the line go in and out, and judges the whole.
    async fn ends(mut self) -> Account {
        let rest: Vec<usize> =
            (0..self.places.len()).filter(|&who| self.places[who].is_some()).collect();
        let rest: Vec<_> = rest.into_iter().map(|who| self.passes(who)).collect();
        for passage in rest {
            passage.await.expect("it is let in").expect("nothing stands in the way");
        }
        judged_with(&self.gateway, self.which, &self.notes)
    }

    /// What `kill -9` comes to when the lease ends.
    fn kill(&mut self, who: usize) -> Place {
        let place = self.gives_up(who);
        let lease = self.lease(&place).to_string();
        self.gateway
            .post("/v3/lease/revoke", &json!({"ID": lease}))
            .expect("there is such a lease");
        place
    }

    /// The name of a place in the store.
    fn name(&self, place: &Place) -> String {
        let (prefix, ticket) = (format!("/doorway/{LOCK}/q/"), place.ticket() as i64);
        let mut history = self.gateway.history("/").expect("it can be read").into_iter();
        history
            .find(|event| event.revision == ticket && event.key.starts_with(&prefix))
            .expect("its doorway")
            .key
    }

    fn lease(&self, place: &Place) -> i64 {
        parse_lease(self.name(place).rsplit('/').next().expect("the name of a place"))
    }
}

/// Says that a waiter is not let in.
async fn waits(place: &mut Place) {
    let ready = tokio::time::timeout(Duration::from_secs(1), place.ready()).await;
    assert!(ready.is_err(), "{ready:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_long_line_goes_in_by_itself_and_tells_few() {
    let _busy = BUSY.lock().await;
    let mut crowd = Crowd::gather(Which::Mutex, |_| 0).await;
    let mut last = crowd.place(PLACES - 1);
    waits(&mut last).await;
    assert!((PLACES - 3..PLACES).contains(&last.ahead()), "{}", last.ahead());
    crowd.places[PLACES - 1] = Some(last);
    // The places that follow the whole line pass first.
    for who in 0..PLACES - 12 {
        crowd.passes(who).await.expect("it is let in").expect("nothing stands in the way");
    }
    // They would hear of everything, had they stayed.
    drop((crowd.places.drain(..PLACES - 12), crowd.workers.drain(..PLACES - 12)));
    crowd.settles().await;
    let before = crowd.gateway.events_sent();
    for who in 0..10 {
        crowd.passes(who).await.expect("it is let in").expect("nothing stands in the way");
    }
    let told = (crowd.gateway.events_sent() - before) / 10;
    println!("{told} events for each of ten passages, of places behind one another");
    // Its own grant and end, and the same for its successor. A client or two may have read the line
    // again, and follow it now that it is short. If all twelve did, there would be more than 36.
    assert!(told <= 20, "{told} events for one passage");
    crowd.ends().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn places_in_the_middle_give_up_and_are_killed() {
    let _busy = BUSY.lock().await;
    let mut crowd = Crowd::gather(Which::Mutex, |_| 0).await;
    let holder = crowd.goes_in(0).await;
    for who in [36, 40, 41, PLACES - 1] {
        crowd.gives_up(who).leave().await.expect("it leaves");
    }
    // The keepalive would say so in a third of the TTL.
    for who in [38, 45] {
        let killed = crowd.kill(who);
        let told = tokio::time::timeout(SOON, killed.wait()).await.expect("it is told");
        assert!(matches!(told, Err(Error::Lost(_))), "{told:?}");
    }
    // One key alone.
    let mut deleted = crowd.gives_up(43);
    let key = crowd.name(&deleted);
    crowd
        .gateway
        .post("/v3/kv/deleterange", &json!({"key": bytes(&key)}))
        .expect("etcd deletes it");
    let told = tokio::time::timeout(SOON, deleted.ready()).await.expect("it is told");
    assert!(matches!(told, Err(Error::Lost(_))), "{told:?}");
    crowd.workers[0].leave(holder).await.expect("it leaves");
    crowd.ends().await;
}

/// The slot is free, and the first waiter slow, when a place far back leaves: the place behind that
/// one is not next.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_place_far_back_does_not_overtake() {
    let _busy = BUSY.lock().await;
    let mut crowd = Crowd::gather(Which::Mutex, |_| 0).await;
    drop(crowd.kill(0));
    let behind = crowd.place(41);
    let waits_behind = tokio::spawn(async move {
        let mut behind = behind;
        waits(&mut behind).await;
        behind
    });
    crowd.settles().await;
    crowd.gives_up(40).leave().await.expect("it leaves");
    crowd.places[41] = Some(waits_behind.await.expect("it is not let in"));
    crowd.ends().await;
}

/// A place far back is granted the slot by itself, and killed with it. The next is told, and goes
/// in.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_holder_from_far_back_is_killed_and_another_loses_its_place() {
    let _busy = BUSY.lock().await;
    let mut crowd = Crowd::gather(Which::Mutex, |_| 0).await;
    for who in 0..42 {
        crowd.passes(who).await.expect("it is let in").expect("nothing stands in the way");
    }
    let permit = crowd.goes_in(42).await;
    let next = crowd.passes(43);
    let lease = first_lease(&crowd.gateway).to_string();
    crowd.gateway.post("/v3/lease/revoke", &json!({"ID": lease})).expect("there is such a lease");
    tokio::time::timeout(SOON, permit.lost()).await.expect("it is told");
    next.await.expect("it is let in").expect("nothing stands in the way");
    drop(permit);
    // As when an administrator repairs the lock: all that wait are told.
    let holder = crowd.goes_in(44).await;
    let prefix = format!("/doorway/{LOCK}/");
    let all = json!({"key": bytes(&prefix), "range_end": bytes(&after(&prefix))});
    crowd.gateway.post("/v3/kv/deleterange", &all).expect("etcd deletes them");
    tokio::time::timeout(SOON, holder.lost()).await.expect("it is told");
    for who in 45..PLACES {
        let told = tokio::time::timeout(SOON, crowd.place(who).wait()).await.expect("it is told");
        assert!(matches!(told, Err(Error::Lost(_) | Error::Removed(_))), "{told:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lock_with_a_long_line_is_drained_and_resumed_and_changed() {
    let _busy = BUSY.lock().await;
    let mut crowd = Crowd::gather(Which::Semaphore(1), |_| 0).await;
    let lock = crowd.workers[0].store.lock(LOCK).await.expect("it is there");
    for who in 0..38 {
        crowd.passes(who).await.expect("it is let in").expect("nothing stands in the way");
    }
    // Drained while a place from far back holds, which then leaves.
    let holder = crowd.goes_in(38).await;
    lock.drain().await.expect("it is drained");
    crowd.workers[38].leave(holder).await.expect("it leaves");
    let mut next = crowd.place(39);
    waits(&mut next).await;
    assert!(matches!(lock.remove().await, Err(Error::Busy { holders: 0, .. })));
    lock.resume().await.expect("it is resumed");
    let holder = crowd.workers[39].go_in(next).await.expect("it is let in");
    // More slots: the next goes in beside the holder, and another beside both.
    let [second, third] = [40, 41].map(|who| {
        let (worker, place) = (crowd.workers[who].clone(), crowd.place(who));
        tokio::spawn(async move { worker.go_in(place).await })
    });
    lock.set_slots(3).await.expect("it is changed");
    let second = second.await.expect("it does not panic").expect("it is let in");
    let third = third.await.expect("it does not panic").expect("it is let in");
    // Fewer: no place is granted a slot before all three holders have left.
    lock.set_slots(1).await.expect("it is changed");
    let mut next = crowd.place(42);
    crowd.workers[41].leave(third).await.expect("it leaves");
    waits(&mut next).await;
    crowd.workers[39].leave(holder).await.expect("it leaves");
    waits(&mut next).await;
    crowd.workers[40].leave(second).await.expect("it leaves");
    crowd.places[42] = Some(next);
    crowd.which = Which::Semaphore(3);
    crowd.ends().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_at_a_time_in_a_long_line() {
    let _busy = BUSY.lock().await;
    let mut crowd = Crowd::gather(Which::Semaphore(2), |_| 0).await;
    for who in (0..40).step_by(2) {
        let [first, second] = [crowd.goes_in(who).await, crowd.goes_in(who + 1).await];
        crowd.workers[who].leave(first).await.expect("it leaves");
        crowd.workers[who + 1].leave(second).await.expect("it leaves");
    }
    assert_eq!(crowd.ends().await.most_inside, 2);
}

/// Five sessions in turn, eight or more places each; those of one session are inside together.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_in_a_long_line() {
    let _busy = BUSY.lock().await;
    let mut crowd = Crowd::gather(Which::Group(5), |who| (who / 8) % 5).await;
    for session in 0..PLACES / 8 {
        let mut inside = Vec::new();
        for who in 8 * session..8 * (session + 1) {
            inside.push(crowd.goes_in(who).await);
        }
        if let Some(Some(next)) = crowd.places.get_mut(8 * (session + 1)) {
            waits(next).await;
        }
        for (who, permit) in (8 * session..).zip(inside) {
            crowd.workers[who].leave(permit).await.expect("it leaves");
        }
    }
    assert_eq!(crowd.ends().await.most_inside, 8);
}

/// The last in line leaves, and a client that waits far back already enters once more: it stands
/// behind the last but one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_far_back_enters_again_behind_one_that_has_left() {
    let _busy = BUSY.lock().await;
    let mut crowd = Crowd::gather(Which::Mutex, |_| 0).await;
    let holder = crowd.goes_in(0).await;
    crowd.gives_up(PLACES - 1).leave().await.expect("it leaves");
    let worker = crowd.workers[40].clone();
    let again = worker.enter(0).await.expect("it enters");
    crowd.workers[0].leave(holder).await.expect("it leaves");
    let passage = tokio::spawn(async move { worker.leave(worker.go_in(again).await?).await });
    let Crowd { cluster: _cluster, gateway, notes, which, workers, places } = crowd;
    for (worker, place) in workers.iter().zip(places) {
        if let Some(place) = place {
            let permit = worker.go_in(place).await.expect("it is let in");
            worker.leave(permit).await.expect("it leaves");
        }
    }
    passage.await.expect("it is let in").expect("nothing stands in the way");
    judged_with(&gateway, which, &notes);
}

/// All connections break while the line moves on. The places far back read the line again, and go
/// in.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn watches_far_back_are_broken() {
    let _busy = BUSY.lock().await;
    let cluster = Cluster::start(1);
    let proxy = Proxy::to(cluster.addresses()[0]).await;
    let through = config(&[proxy.endpoint()]).with_ttl(TTL);
    let mut crowd = Crowd::gather_at(cluster, through, Which::Mutex, |_| 0).await;
    let holder = crowd.goes_in(0).await;
    let tail: Vec<_> =
        (34..PLACES).filter(|who| who % 4 != 0).map(|who| crowd.passes(who)).collect();
    proxy.cut();
    // Through no proxy: their leases end.
    for who in (36..PLACES).step_by(4) {
        drop(crowd.kill(who));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    proxy.sever();
    proxy.mend();
    crowd.workers[0].leave(holder).await.expect("it leaves");
    for who in 1..34 {
        crowd.passes(who).await.expect("it is let in").expect("nothing stands in the way");
    }
    for passage in tail {
        passage.await.expect("it is let in").expect("nothing stands in the way");
    }
    crowd.ends().await;
}
