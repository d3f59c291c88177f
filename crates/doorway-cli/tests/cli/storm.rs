//! Wrappers and their commands are killed at random moments; still no two commands ever have the
//! same slot.
//!
//!     DOORWAY_RUN_KILLS=10000 cargo test --package doorway-cli --test cli storm
//!
//! The referee is the kernel: a command takes a lock on a file with the number of its slot, which
//! is let go of when it ends, and must be free at once.

use std::{
    env,
    os::unix::process::ExitStatusExt,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use doorway::shared::Directory;
use rustix::process::{Pid, Signal, kill_process};

use super::locks::Locks;

const SLOTS: usize = 2;
const WRAPPERS: usize = 8;
/// What a command ends with that finds its slot's file locked.
const NOT_ALONE: i32 = 99;

fn start(locks: &Locks) -> Child {
    // One process all along: what the shell begins, flock goes on with, and then sleep.
    let script =
        "exec flock --no-fork --nonblock --conflict-exit-code 99 .slot$DOORWAY_SLOT sleep 0.02";
    let mut command =
        locks.command(&["run", "storm", "--slots", &SLOTS.to_string(), "--", "sh", "-c", script]);
    command.current_dir(locks.directory.path()).stderr(Stdio::null()).spawn().expect("it starts")
}

/// They end by themselves, or as somebody wanted them to.
fn judge(wrapper: &mut Child, ended: &mut [u64; 3]) -> bool {
    let Some(status) = wrapper.try_wait().expect("it is ours") else { return false };
    match (status.code(), status.signal()) {
        (Some(0), _) => ended[0] += 1,
        (Some(137), _) => ended[1] += 1,
        (_, Some(9)) => ended[2] += 1,
        (Some(NOT_ALONE), _) => panic!("two commands have the same slot"),
        _ => panic!("{status}"),
    }
    true
}

#[test]
fn no_two_commands_have_a_slot_whoever_is_killed() {
    let locks = Locks::new();
    let kills: usize =
        env::var("DOORWAY_RUN_KILLS").map_or(400, |text| text.parse().expect("a number"));
    let directory = Directory::at(locks.directory.path()).expect("it is ours");
    let semaphore = directory.semaphore("storm", SLOTS).expect("it is made");
    let mut dice = 0x5eed_u64;
    let mut random = |below: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) as usize % below
    };
    let mut wrappers: Vec<Child> = (0..WRAPPERS).map(|_| start(&locks)).collect();
    let mut ended = [0; 3];
    for _ in 0..kills {
        thread::sleep(Duration::from_micros(random(12_000) as u64));
        let holders = semaphore.status().holders;
        if random(2) == 0 || holders.is_empty() {
            let _ = wrappers[random(WRAPPERS)].kill();
        } else {
            // It may have ended since.
            let _ = Pid::from_raw(holders[random(holders.len())].pid)
                .map(|pid| kill_process(pid, Signal::KILL));
        }
        for wrapper in &mut wrappers {
            if judge(wrapper, &mut ended) {
                *wrapper = start(&locks);
            }
        }
    }
    let began = Instant::now();
    while !wrappers.is_empty() {
        wrappers.retain_mut(|wrapper| !judge(wrapper, &mut ended));
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "somebody waits for ever: {:#?}",
            semaphore.status()
        );
        thread::sleep(Duration::from_millis(1));
    }
    let [done, commands, killed] = ended;
    println!(
        "{done} commands came to their end, {commands} were killed, and so were {killed} wrappers"
    );
    assert!(done > 0 && commands > 0 && killed > 0, "nothing was tried");
    // What killed wrappers have left behind ends soon, and then all slots are free.
    let take =
        |_| semaphore.enter().expect("there is room").wait_timeout(Duration::from_secs(60)).ok();
    let all: Vec<_> = (0..SLOTS).map_while(take).collect();
    assert_eq!(all.len(), SLOTS, "no slot is lost: {:#?}", semaphore.status());
    assert_eq!(semaphore.status().waiting.len(), 0);
    drop(all);
    semaphore.remove().expect("nobody uses it");
}
