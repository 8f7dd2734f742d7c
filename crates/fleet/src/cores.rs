//! Work on a whole fleet is many times the same small work.

use std::thread;

/// Fewer are not worth a thread, nor the question how many cores there are.
pub(crate) const FEW: usize = 500;

/// How many there are.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Does the same to all items, in their order, on all cores.
pub(crate) fn on_all_cores<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    on_cores(items, 0, work)
}

/// The same, and lets those go first who poll meanwhile: it leaves a core to them, and at every item asks whether one of
/// them waits for this one. A scheduler may well let a thread that has work go on for milliseconds before it asks.
pub(crate) fn beside_polls<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    // Nobody waits long for one item.
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
