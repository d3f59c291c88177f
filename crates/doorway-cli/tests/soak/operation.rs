//! The operations that are stepped through, and the cases that they are tried in.

use std::{mem::forget, sync::atomic::AtomicU64, time::Duration};

use doorway::shared::{Error, HandOver, Lock, NotYet};

use super::{
    kind::{Kind, Spec},
    system::{die, die_after, exit_now, fork, reap, stop_here},
};

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Operation {
    Acquire,
    Release,
    Enter,
    GiveUp,
    /// Waits for no time at all.
    Late,
    Try,
    Open,
    Make,
    Close,
    Resize,
    Drain,
    Remove,
    HandOver,
    Adopt,
    TakeBack,
}

/// What the lock is like when the operation begins.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Around {
    Idle,
    /// A live process holds one slot.
    Held,
    /// A live process holds all slots.
    Full,
    /// A process has died in a slot, and no other has noticed that.
    Dead,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) around: Around,
    pub(crate) operation: Operation,
    /// A live process enters right before the operation, and waits behind the one that is stepped.
    pub(crate) behind: bool,
}

/// All cases, for each kind of lock.
pub(crate) fn cases() -> Vec<Case> {
    use Around::{Dead, Full, Held, Idle};
    use Operation::*;
    let all = [
        (Idle, Acquire, false),
        (Idle, Release, false),
        (Idle, Release, true),
        (Held, Acquire, false),
        (Held, Release, true),
        (Full, Enter, false),
        (Full, Enter, true),
        (Full, GiveUp, false),
        (Full, GiveUp, true),
        (Full, Late, true),
        (Full, Try, false),
        (Dead, Acquire, false),
        (Dead, Try, false),
        (Dead, Enter, true),
        (Idle, Open, false),
        (Idle, Make, false),
        (Idle, Close, false),
        (Held, Close, false),
        (Idle, Resize, false),
        (Full, Resize, true),
        (Idle, Drain, false),
        (Full, Drain, true),
        (Idle, Remove, false),
        (Dead, Remove, false),
        (Idle, HandOver, true),
        (Idle, Adopt, true),
        (Idle, TakeBack, false),
    ];
    let kinds = [Kind::Mutex, Kind::Semaphore(2), Kind::Group(3)];
    let of_kind = |kind: Kind| {
        let fits = move |case: &Case| match case.operation {
            // A mutex has one slot.
            Resize => kind != Kind::Mutex,
            Acquire | Release | Close => kind != Kind::Mutex || case.around != Held,
            _ => true,
        };
        all.into_iter()
            .map(move |(around, operation, behind)| Case { kind, around, operation, behind })
            .filter(fits)
    };
    kinds.into_iter().flat_map(of_kind).collect()
}

/// Prepares an operation, and executes it until this process is killed, after so many instructions
/// or at the end. Counts the instructions in `executed`.
pub(crate) fn perform(
    executed: &'static AtomicU64,
    spec: &Spec,
    case: Case,
    given: Option<&HandOver>,
    after: u64,
) -> Result<(), Error> {
    let session =
        spec.kind.session(usize::from(matches!(case.around, Around::Full | Around::Dead)));
    let begin = || {
        if case.behind {
            stop_here();
        }
        die_after(after, executed);
    };
    if let (Operation::Adopt, Some(given)) = (case.operation, given) {
        begin();
        // The slot is lost if the process that gave it is dead, which it is not.
        given.adopt().expect("the slot can be adopted");
        die();
    }
    match case.operation {
        Operation::Open => {
            begin();
            forget(spec.directory.lock(&spec.name)?);
        }
        Operation::Make => {
            begin();
            spec.make()?;
        }
        _ => use_lock(spec.open()?, session, case, begin)?,
    }
    die()
}

fn use_lock(lock: Lock, session: Option<&str>, case: Case, begin: impl Fn()) -> Result<(), Error> {
    match case.operation {
        Operation::Enter => {
            begin();
            forget(lock.enter(session)?);
            die()
        }
        Operation::GiveUp => {
            let place = lock.enter(session)?;
            begin();
            drop(place);
            die()
        }
        Operation::Late => {
            let place = lock.enter(session)?;
            begin();
            match place.wait_timeout(Duration::ZERO) {
                Err(NotYet::Failed(error)) => return Err(error),
                late => forget(late),
            }
            die()
        }
        Operation::Try => {
            begin();
            forget(lock.try_enter(session)?);
            die()
        }
        Operation::Resize => {
            begin();
            let slots = case.kind.slots();
            [slots + 1, 1, slots].into_iter().try_for_each(|slots| lock.set_slots(slots))?;
            die()
        }
        Operation::Drain => {
            begin();
            lock.drain()?;
            lock.resume()?;
            die()
        }
        Operation::Remove => {
            begin();
            lock.remove()?;
            die()
        }
        Operation::Acquire => begin(),
        _ => {}
    }
    let permit = lock.enter(session)?.wait()?;
    match case.operation {
        Operation::Release => {
            begin();
            drop(permit);
        }
        Operation::Close => {
            drop(permit);
            begin();
            drop(lock);
        }
        Operation::HandOver => {
            begin();
            forget(permit.hand_over());
            die()
        }
        Operation::TakeBack => {
            let hand_over = permit.hand_over();
            reap(fork(true, || exit_now(i32::from(hand_over.adopt().is_err()))));
            begin();
            permit.take_back()?;
            die()
        }
        _ => die(),
    }
    Ok(())
}
