//! Tests of the native memory by itself.

use alloc::{format, string::ToString, vec::Vec};

use super::*;
use crate::{
    Algorithm, Exclusion, Home,
    algorithms::k_exclusion::TimestampBakery,
    algorithms::mutex::{Bakery, BlackWhiteBakery, YangAnderson},
    layout::LINE,
    timestamps::Bounded,
};

fn starts_a_line<A: Algorithm>(n: usize) {
    let lock = Instance::<A>::new(Size::mutex(n)).expect("two processes are enough");
    let first = lock.view(Spin, 0).words.as_ptr() as usize;
    assert_eq!(first % (LINE * size_of::<AtomicU64>()), 0, "{} n = {n}", A::NAME);
}

/// Lines of the arena are lines of the machine, wherever the allocator puts it.
#[test]
fn an_instance_starts_a_line() {
    for n in 2..40 {
        starts_a_line::<BlackWhiteBakery>(n);
        starts_a_line::<YangAnderson>(n);
    }
}

#[test]
fn choices_are_in_range_and_all_come_up() {
    let mut m = Native::<_>::new(&[], Spin, 1);
    let mut seen = [0; 5];
    for _ in 0..1_000 {
        let Ok(outcome) = m.choose(5);
        seen[outcome as usize] += 1;
    }
    assert!(seen.iter().all(|&times| times > 100), "{seen:?}");
}

#[test]
fn each_further_heads_is_half_as_likely() {
    let mut m = Native::<_>::new(&[], Spin, 1);
    let mut seen = [0_u32; 4];
    for _ in 0..16_000 {
        let Ok(heads) = m.toss(3);
        seen[heads as usize] += 1;
    }
    for (times, expected) in seen.into_iter().zip([8_000, 4_000, 2_000, 2_000]) {
        assert!(times.abs_diff(expected) < expected / 10, "{seen:?}");
    }
    assert_eq!(m.toss(0), Ok(0));
}

#[test]
fn primitives_do_what_they_say() {
    let words = [AtomicU64::new(0)];
    let built = Layout::build(1, None, |layout| Ok(layout.register("R", Home::Process(0), 3_u64)));
    let Ok::<_, Infallible>((register, layout)) = built;
    initialise(&words, &[], &layout);
    let mut m = Native::new(&words, Spin, 0);
    assert_eq!(m.read(register), Ok(3));
    assert_eq!(m.fetch_and_add(register, 4), Ok(3));
    assert_eq!(m.compare_and_swap(register, 3, 9), Ok(7));
    assert_eq!(m.compare_and_swap(register, 7, 9), Ok(7));
    assert_eq!(m.transact(register, |v| (v * 2, v)), Ok(9));
    assert_eq!(m.swap(register, 5), Ok(18));
    assert_eq!(m.read(register), Ok(5));
    assert_eq!(m.write(register, 19), Ok(()));
    assert!(m.test(register, |v| v == 19).is_ok_and(|yes| yes));
}

/// Two instances on one arena are one lock: a process that enters by one blocks a process at the
/// other.
#[test]
fn instances_that_share_an_arena_are_one_lock() {
    let size = Size::mutex(2);
    let (words, doubles) = room::<Bakery>(size).expect("two processes");
    assert_eq!(doubles, 0);
    let arena: Vec<Fenced> = (0..words).map(|_| Fenced::from(7)).collect();
    let first = Instance::<Bakery, &[Fenced]>::lay_out(size, &arena).expect("there is room");
    let Ok(pass) = first.algorithm().doorway(&mut first.view(Spin, 0), 0, (), ());
    // Joining leaves the existing values as they are.
    let second = Instance::<Bakery, &[Fenced]>::join(size, &arena).expect("there is room");
    let mut m = second.view(AtOnce, 0);
    let place = second.algorithm().doorway(&mut m, 1, (), ()).expect("a doorway does not wait");
    assert!(second.algorithm().waiting(&mut m, 1, place).is_err());
    let Ok(()) = first.algorithm().exit(&mut first.view(Spin, 0), 0, pass);
    assert!(second.algorithm().waiting(&mut m, 1, place).is_ok());

    let unfit = Instance::<Bakery, &[Fenced]>::join(size, &arena[1..])
        .expect_err("one is missing")
        .to_string();
    assert_eq!(
        unfit,
        format!("bakery with n = 2, k = 1 takes {words} words, and the arena has {}", words - 1)
    );
}

/// Gives up at the first unsuccessful look.
struct AtOnce;

impl Relax for AtOnce {
    type Halt = ();
    fn relax(&mut self, _: u32) -> Result<(), ()> {
        Err(())
    }
}

/// Words that are only loaded and stored have no double words beside them.
#[test]
fn fenced_words_hold_no_wide_values() {
    let instance = |n| Instance::<TimestampBakery<Bounded>, Own<Fenced>>::new(Size::slots(n, 1));
    assert!(instance(21).is_ok());
    let unfit = instance(22).expect_err("66 bits").to_string();
    assert_eq!(
        unfit,
        "timestamp-bakery with n = 22, k = 1 takes double words, which are written by compare-and-swap"
    );
}
