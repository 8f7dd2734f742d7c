//! Work on a whole fleet is the same small work on many items, which is spread over the cores.

use std::thread;

/// So few items are worked on by the calling thread: another thread costs more than it saves.
pub(crate) const FEW: usize = 500;

/// How many cores there are.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Does the same to all items, in their order, on all cores.
pub(crate) fn on_all_cores<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    on_cores(items, 0, work)
}

/// The same with priority for polls: it leaves one core to them and yields its own after every item. A scheduler may let a
/// busy thread run for milliseconds before it switches.
pub(crate) fn on_spare_cores<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    // One item is short work.
    let is_long = items.len() > 1;
    on_cores(items, 1, |item| {
        if is_long {
            thread::yield_now();
        }
        work(item)
    })
}

fn on_cores<T: Send, R: Send>(mut items: Vec<T>, spared: usize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    if items.len() <= FEW {
        return items.into_iter().map(work).collect();
    }
    let cores = cores().saturating_sub(spared).min(items.len().div_ceil(FEW)).max(1);
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
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    })
}
