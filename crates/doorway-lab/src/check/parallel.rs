//! Runs independent tasks on several threads.

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Runs `task` for every number below `tasks`, at most `workers` of them at a time. Returns the
/// results in the order of the numbers, so that they do not depend on which thread was faster.
pub(crate) fn each<T: Send>(
    tasks: usize,
    workers: usize,
    task: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    if workers <= 1 || tasks <= 1 {
        return (0..tasks).map(task).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(tasks));
    let work = || {
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= tasks {
                return;
            }
            let result = task(number);
            done.lock().expect("no worker panics").push((number, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers.min(tasks) {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().expect("no worker panics");
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::each;

    #[test]
    fn results_come_in_the_order_of_the_tasks() {
        for workers in [1, 2, 5] {
            assert_eq!(each(100, workers, |i| i * i), (0..100).map(|i| i * i).collect::<Vec<_>>());
            assert!(each(0, workers, |i| i).is_empty());
        }
    }
}
