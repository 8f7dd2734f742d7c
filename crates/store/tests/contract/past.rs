//! Parts of the past: documents of some kinds, and the writes of a change a few at a time.

use std::sync::Arc;

use model::{Body, Change, Id, Op, Revision, State, Write};
use store::{ChangeLogQuery, KindFilter, LISTED_WRITES, Store, StoreError};

use super::{append, head, origin, put, retire};

fn write(kind: &str, id: &str, op: Op) -> Write {
    Write { kind: kind.into(), id: Id::parse(id).unwrap(), op }
}

pub(crate) async fn documents_of_some_kinds_are_read_without_the_others(store: Arc<dyn Store>) {
    for (at, op) in (1..).zip([put("1"), retire("2"), Op::Remove]) {
        let writes = vec![
            write("cluster", "c", op),
            write("cluster", &format!("c{at}"), put("{}")),
            write("component", "first", put(&at.to_string())),
            write("namespace", &format!("n{at}"), put("{}")),
        ];
        store.append(&Change::after(&head(&*store).await, origin(), writes)).await.unwrap();
    }
    let read = async |revision: u64, kinds: KindFilter| {
        let fleet = store.documents_at(Revision(revision), kinds).await.unwrap();
        assert_eq!(fleet.point.revision, Revision(revision));
        let documents = fleet.documents.iter().map(|it| (it.id.to_string(), it.revision.0, it.state, it.body.clone()));
        documents.collect::<Vec<_>>()
    };
    let live = |id: &str, revision: u64, body: &str| (id.to_owned(), revision, State::Live, Body::plain(body));
    let retired = ("c".to_owned(), 2, State::Retired, Body::plain("2"));
    let clusters = [retired, live("c1", 1, "{}"), live("c2", 2, "{}")];
    assert_eq!(read(2, KindFilter::Only("cluster".into())).await, clusters);
    assert_eq!(read(3, KindFilter::Only("cluster".into())).await.len(), 3, "the one that was removed is not there");
    let others = [live("first", 2, "2"), live("n1", 1, "{}"), live("n2", 2, "{}")];
    assert_eq!(read(2, KindFilter::Except("cluster".into())).await, others);
    assert_eq!(read(2, KindFilter::All).await, [&clusters[..], &others[..]].concat());
    store.prune(Revision(2)).await.unwrap();
    assert_eq!(read(2, KindFilter::Except("cluster".into())).await, others);
    let pruned = store.documents_at(Revision(1), KindFilter::Only("cluster".into())).await;
    assert!(matches!(pruned, Err(StoreError::Pruned { horizon: Revision(2) })), "{pruned:?}");
}

pub(crate) async fn the_writes_of_a_change_come_a_few_at_a_time_with_what_was_before(store: Arc<dyn Store>) {
    append(&*store, &[("a", put("1")), ("b", put("1")), ("c", retire("1"))]).await;
    append(&*store, &[("b", Op::Remove), ("other", put("2"))]).await;
    append(&*store, &[("a", Op::Remove), ("b", put("3")), ("c", put("3")), ("new", put("3"))]).await;
    let writes_of = async |revision: u64, from: usize, limit: usize| {
        let writes = store.writes_of_change(Revision(revision), from, limit).await.unwrap();
        writes.into_iter().map(|it| (it.write.id.to_string(), it.write.op, it.before)).collect::<Vec<_>>()
    };
    let all = [
        ("a".to_owned(), Op::Remove, Some(put("1"))),
        ("b".to_owned(), put("3"), None),
        ("c".to_owned(), put("3"), Some(retire("1"))),
        ("new".to_owned(), put("3"), None),
    ];
    assert_eq!(writes_of(3, 0, 10).await, all);
    assert_eq!(
        (writes_of(3, 0, 2).await, writes_of(3, 2, 2).await, writes_of(3, 4, 2).await),
        (all[..2].to_vec(), all[2..].to_vec(), vec![])
    );
    assert_eq!((writes_of(0, 0, 9).await, writes_of(9, 0, 9).await), (vec![], vec![]), "there are no such changes");
    store.prune(Revision(2)).await.unwrap();
    assert_eq!(writes_of(3, 0, 10).await, all, "what was before the oldest change is still known");
    let pruned = store.writes_of_change(Revision(2), 0, 1).await;
    assert!(matches!(pruned, Err(StoreError::Pruned { horizon: Revision(2) })), "{pruned:?}");
}

pub(crate) async fn an_entry_names_the_first_documents_and_counts_all(store: Arc<dyn Store>) {
    let ids: Vec<_> = (0..LISTED_WRITES * 2).map(|at| format!("n{at:05}")).collect();
    append(&*store, &[("few", put("1"))]).await;
    append(&*store, &ids.iter().map(|id| (id.as_str(), put("{}"))).collect::<Vec<_>>()).await;
    append(&*store, &[("few", put("2")), ("more", put("2"))]).await;
    let entries_between = async |after: u64, before: u64| {
        let (after, before) = (Some(Revision(after)), Some(Revision(before)));
        let query = ChangeLogQuery { after, before, limit: 10, ..ChangeLogQuery::default() };
        let entries = store.change_log_entries(&query).await.unwrap();
        entries.iter().map(|it| (it.change.revision.0, it.writes.len(), it.total)).collect::<Vec<_>>()
    };
    assert_eq!(entries_between(0, 9).await, [(3, 2, 2), (2, LISTED_WRITES, LISTED_WRITES * 2), (1, 1, 1)]);
    assert_eq!(entries_between(1, 3).await, [(2, LISTED_WRITES, LISTED_WRITES * 2)]);
    assert_eq!(entries_between(3, 9).await, []);
}
