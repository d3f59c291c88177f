//! Processes of other PID namespaces, as in containers.

use super::*;

/// Forks a process that is the first one of a PID namespace of its own, with its own `/proc`, and
/// does what it is told there. Returns its parent, which ends with it; `None` if the system does
/// not allow it.
fn in_container(run: impl FnOnce()) -> Option<i32> {
    let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    // SAFETY: as in `forked_is_well`. The child changes its own namespaces, and its mounts in
    // these.
    unsafe {
        let parent = libc::fork();
        assert!(parent >= 0);
        if parent > 0 {
            return Some(parent);
        }
        let moved = libc::unshare(flags) == 0 || libc::unshare(flags | libc::CLONE_NEWUSER) == 0;
        let child = if moved { libc::fork() } else { -1 };
        if child == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let none = std::ptr::null();
            let private = libc::mount(
                none,
                c"/".as_ptr(),
                none,
                libc::MS_REC | libc::MS_PRIVATE,
                none.cast(),
            );
            let proc =
                libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), 0, none.cast());
            if private == 0 && proc == 0 {
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            }
            libc::_exit(0)
        }
        libc::waitpid(child, std::ptr::null_mut(), 0);
        libc::_exit(0)
    }
}

/// The owner is killed; a process that it forked and that has used the lock itself lives on.
#[test]
fn a_forked_process_does_not_keep_what_its_parent_had() {
    let (place, locks) = directory();
    let semaphore = locks.semaphore("a", 2).expect("it is made");
    let flag = |name: &str| place.path().join(name);
    let set = |name: &str| fs::write(flag(name), "").expect("it is ours");
    let wait = |name: &str| {
        while !flag(name).exists() {
            thread::sleep(Duration::from_millis(5));
        }
    };
    let container = in_container(|| {
        // SAFETY: as above.
        let owner = unsafe { libc::fork() };
        if owner == 0 {
            std::mem::forget(semaphore.acquire());
            // SAFETY: as above.
            if unsafe { libc::fork() } == 0 {
                std::mem::forget(semaphore.acquire());
                set(".inside");
            }
            thread::sleep(Duration::from_secs(1000));
        }
        wait(".kill");
        // SAFETY: a process of its own.
        unsafe { libc::kill(owner, libc::SIGKILL) };
        wait(".end");
    });
    let Some(container) = container else { return };
    let begin = Instant::now();
    while !flag(".inside").exists() {
        if fs::read_to_string(format!("/proc/{container}/stat"))
            .is_ok_and(|stat| stat.contains(") Z"))
        {
            eprintln!(
                "left out: no namespace can be made here; run the tests as root, or allow user namespaces"
            );
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not begin");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(
        semaphore.try_acquire().expect("it works").is_none(),
        "both slots are held in the container"
    );
    assert!(semaphore.status().holders.iter().all(|holder| holder.is_foreign));
    set(".kill");
    let place = semaphore.enter().expect("there is room");
    let permit = place
        .wait_timeout(Duration::from_secs(60))
        .expect("the owner is dead, and its child lives");
    assert!(permit.recovered());
    assert!(semaphore.try_acquire().expect("it works").is_none(), "the child holds the other slot");
    set(".end");
    // With the first process of the container, all of it ends.
    let place = semaphore.enter().expect("there is room");
    assert!(place.wait_timeout(Duration::from_secs(60)).expect("all of them are dead").recovered());
}
