//! A log as a file: moved completely, restored over another log only on request, and never damaged unnoticed.

use std::sync::Arc;

use model::{Op, Point, Revision};
use store::{
    MemoryStore, RestoreError, Store,
    archive::{Archive, back_up},
};

use super::{append, head, put, retire};

async fn backed_up(store: &dyn Store) -> Vec<u8> {
    let mut file = Vec::new();
    assert_eq!(back_up(store, &mut file, |_, _| {}).await.unwrap(), head(store).await);
    file
}

async fn restore(store: &dyn Store, file: &[u8], replace: bool) -> Result<Point, RestoreError> {
    let (fleet, mut changes) = Archive::open(file)?;
    store.restore(fleet, &mut changes, replace).await
}

/// Pruned and grown again, with documents of all states.
async fn some_history(store: &dyn Store) {
    for (at, op) in (1..).zip([put("1"), retire("2"), put("3"), Op::Remove, put("5"), put("6")]) {
        append(store, &[("a", op), (&format!("n{at}"), put("{}"))]).await;
    }
    store.prune(Revision(2)).await.unwrap();
}

pub(crate) async fn a_log_is_moved_completely(store: Arc<dyn Store>) {
    let source = MemoryStore::default();
    some_history(&source).await;
    let file = backed_up(&source).await;
    assert_eq!(restore(&*store, &file, false).await.unwrap(), head(&source).await);
    assert_eq!(store.load().await.unwrap(), source.load().await.unwrap());
    assert_eq!(store.bounds().await.unwrap(), source.bounds().await.unwrap());
    for at in 2..=6 {
        assert_eq!(store.load_at(Revision(at)).await.unwrap(), source.load_at(Revision(at)).await.unwrap(), "{at}");
    }
    // It continues where it was, and can be moved back.
    append(&*store, &[("b", put("{}"))]).await;
    let back = MemoryStore::default();
    restore(&back, &backed_up(&*store).await, false).await.unwrap();
    assert_eq!(back.load().await.unwrap(), store.load().await.unwrap());
}

pub(crate) async fn a_log_is_replaced_only_on_request(store: Arc<dyn Store>) {
    some_history(&*store).await;
    let (file, older) = (backed_up(&*store).await, head(&*store).await);
    append(&*store, &[("late", put("{}"))]).await;
    let present = store.load().await.unwrap();
    let refused = restore(&*store, &file, false).await;
    assert!(matches!(refused, Err(RestoreError::NotEmpty { head }) if head == present.point), "{refused:?}");
    // A file that turns out to be incomplete changes nothing.
    let mut lines: Vec<_> = file.split_inclusive(|byte| *byte == b'\n').collect();
    lines.pop();
    let cut = lines.concat();
    let refused = restore(&*store, &cut, true).await;
    assert!(matches!(refused, Err(RestoreError::Archive(_))), "{refused:?}");
    assert_eq!(store.load().await.unwrap(), present);
    assert_eq!(restore(&*store, &file, true).await.unwrap(), older);
    assert_eq!(store.load().await.unwrap().point, older);
}

pub(crate) async fn no_damage_to_a_file_goes_unnoticed(store: Arc<dyn Store>) {
    some_history(&*store).await;
    let file = backed_up(&*store).await;
    let into = MemoryStore::default();
    for at in (0..file.len()).step_by(7) {
        let mut damaged = file.clone();
        damaged[at] ^= 1;
        assert!(restore(&into, &damaged, true).await.is_err(), "the byte at {at}");
        assert!(restore(&into, &file[..at], true).await.is_err(), "cut at {at}");
    }
    restore(&into, &file, true).await.unwrap();
}
