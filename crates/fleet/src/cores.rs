//! Work on a whole fleet is many times the same small work.

use std::thread;

/// Fewer are not worth a thread, nor the question how many cores there are.
pub(crate) const FEW: usize = 500;

/// Does the same to all items, in their order, on all cores.
pub(crate) fn on_all_cores<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    on_cores(items, 0, work)
}

/// The same, and lets those go first who poll meanwhile: it leaves a core to them, and at every item asks whether one of
/// them waits for this one. A scheduler may well let a thread that has work go on for milliseconds before it asks.
pub(crate) fn beside_polls<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    on_cores(items, 1, |item| {
        thread::yield_now();
        work(item)
    })
}

/// Does two things to so many items, side by side.
pub(crate) fn both<A, B: Send>(items: usize, one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    if items <= FEW {
        return (one(), other());
    }
    thread::scope(|scope| {
        let other = scope.spawn(other);
        (one(), joined(other))
    })
}

fn joined<R>(thread: thread::ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn on_cores<T: Send, R: Send>(mut items: Vec<T>, spared: usize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    if items.len() <= FEW {
        return items.into_iter().map(work).collect();
    }
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let cores = cores.saturating_sub(spared).min(items.len().div_ceil(FEW)).max(1);
    let share = items.len().div_ceil(cores).max(1);
    let work = &work;
    thread::scope(|scope| {
        let others: Vec<_> = (1..cores)
            .rev()
            .map(|core| {
                let share = items.split_off((core * share).min(items.len()));
                scope.spawn(move || share.into_iter().map(work).collect::<Vec<_>>())
            })
            .collect();
        let mut done: Vec<R> = items.into_iter().map(work).collect();
        for other in others.into_iter().rev() {
            done.extend(joined(other));
        }
        done
    })
}
