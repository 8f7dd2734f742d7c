//! The promise of a store, as one test suite that runs on every backend.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod archives;
mod past;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use archives::{a_log_is_moved_completely, a_log_is_replaced_only_on_request, no_damage_to_a_file_goes_unnoticed};
use harness::Postgres;
use jiff::Timestamp;
use model::{Body, Change, Document, Id, Op, Origin, Point, Revision, State, Write};
use past::{
    an_entry_names_the_first_documents_and_counts_all, documents_of_some_kinds_are_read_without_the_others,
    the_writes_of_a_change_come_a_few_at_a_time_with_what_was_before,
};
use store::{
    AppendError, ChangeLogQuery, LogBounds, MemoryStore, MissingTables, PostgresStore, SqliteStore, Store, StoreError,
    Timeouts, WAKE_INTERVAL,
};

/// A change after a point that writes these namespaces.
fn change(point: &Point, writes: &[(&str, Op)]) -> Change {
    let write = |(id, op): &(&str, Op)| Write { kind: "namespace".into(), id: Id::parse(id).unwrap(), op: op.clone() };
    Change::after(point, origin(), writes.iter().map(write).collect())
}

fn origin() -> Origin {
    Origin { at: Timestamp::UNIX_EPOCH, actor: "tests".to_owned(), reason: None, request_id: None }
}

/// The head of a log.
async fn head(store: &dyn Store) -> Point {
    store.bounds().await.unwrap().head
}

/// Appends one more change.
async fn append(store: &dyn Store, writes: &[(&str, Op)]) -> Change {
    let change = change(&head(store).await, writes);
    store.append(&change).await.unwrap();
    change
}

fn put(text: &str) -> Op {
    Op::Put(Body::from_text(text))
}

fn retire(text: &str) -> Op {
    Op::Retire(Body::from_text(text))
}

fn document(id: &str, revision: u64, state: State, body: &str) -> Document {
    let (kind, id, body) = ("namespace".into(), Id::parse(id).unwrap(), Body::from_text(body));
    Document { kind, id, revision: Revision(revision), state, body }
}

async fn a_new_log_is_empty(store: Arc<dyn Store>) {
    let fleet = store.load().await.unwrap();
    assert_eq!((fleet.point, fleet.documents), (Point::beginning(fleet.point.store), vec![]));
    let batch = store.changes_after(Revision::ZERO, 10).await.unwrap();
    assert_eq!((batch.head, batch.changes), (fleet.point, vec![]));
    assert_eq!(store.bounds().await.unwrap(), LogBounds { horizon: fleet.point, head: fleet.point });
}

async fn a_change_comes_back_as_it_was_appended(store: Arc<dyn Store>) {
    let text = r#"{"id":"a","labels":{"q":"\"'\\ \n ☃ \u0000","n":"1.0"},"x":[1,2.5,true,null]}"#;
    let origin = Origin {
        at: "2026-01-02T03:04:05.678901Z".parse().unwrap(),
        actor: "ops \"quoted\" ☃".to_owned(),
        reason: Some("because; -- '".to_owned()),
        request_id: Some("req-1".to_owned()),
    };
    let beginning = head(&*store).await;
    let first = Change::after(&beginning, origin, change(&beginning, &[("b", put("{}")), ("a", put(text))]).writes);
    store.append(&first).await.unwrap();
    let accepted = beginning.after(&first);
    let second = Change::accepting(&accepted, &beginning.digest, self::origin());
    store.append(&second).await.unwrap();

    let batch = store.changes_after(Revision::ZERO, 10).await.unwrap();
    assert_eq!(batch.head, accepted.after(&second));
    assert_eq!(batch.changes, [first, second]);
    assert!(store.is_overruled(&beginning.digest).await.unwrap());
    assert!(!store.is_overruled(&accepted.digest).await.unwrap());
    let documents = vec![document("a", 1, State::Live, text), document("b", 1, State::Live, "{}")];
    assert_eq!(store.load().await.unwrap().documents, documents);
}

async fn a_change_is_appended_only_directly_after_the_head(store: Arc<dyn Store>) {
    append(&*store, &[("a", put("{}"))]).await;
    let here = head(&*store).await;
    let at = |revision| Point { revision: Revision(revision), ..here };
    let other = Point { digest: change(&at(7), &[]).digest, ..here };
    for wrong in [at(0), at(2), at(7), other] {
        let refused = store.append(&change(&wrong, &[("b", put("{}"))])).await;
        assert!(matches!(refused, Err(AppendError::Conflict { head }) if head == here), "{wrong}: {refused:?}");
    }
    let fleet = store.load().await.unwrap();
    assert_eq!((fleet.point, fleet.documents.len()), (here, 1), "a refused change leaves nothing");
}

async fn writes_put_retire_and_remove(store: Arc<dyn Store>) {
    let steps: [&[(&str, Op)]; 5] = [
        &[("a", put("1")), ("b", put("2")), ("c", put("3"))],
        &[("a", retire("1")), ("b", Op::Remove), ("c", put("4"))],
        &[("missing", Op::Remove)],
        &[("a", put("5")), ("d", put("6"))],
        &[("c", retire("4")), ("d", Op::Remove)],
    ];
    for writes in steps {
        append(&*store, writes).await;
        store.load().await.unwrap();
    }
    let documents = vec![document("a", 4, State::Live, "5"), document("c", 5, State::Retired, "4")];
    assert_eq!(store.load().await.unwrap().documents, documents);
}

async fn changes_are_read_in_order_and_limited(store: Arc<dyn Store>) {
    for at in 1..=7 {
        append(&*store, &[("a", put(&at.to_string())), ("b", put("{}"))]).await;
    }
    let batch = store.changes_after(Revision(2), 3).await.unwrap();
    let revisions: Vec<_> = batch.changes.iter().map(|change| (change.revision.0, change.writes.len())).collect();
    assert_eq!((batch.head.revision, revisions), (Revision(7), vec![(3, 2), (4, 2), (5, 2)]));
    assert_eq!(store.changes_after(Revision(7), 3).await.unwrap().changes, vec![]);
}

async fn a_reader_ahead_of_the_log_gets_the_head(store: Arc<dyn Store>) {
    append(&*store, &[]).await;
    let batch = store.changes_after(Revision(9), 10).await.unwrap();
    assert_eq!((batch.head.revision, batch.changes), (Revision(1), vec![]));
}

/// 64 writers, each of which must get 8 changes into the log, whatever the others do.
async fn concurrent_appenders_lose_and_duplicate_nothing(store: Arc<dyn Store>) {
    let (writers, each) = (64_u64, 8_u64);
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut head = head(&*store).await;
                for turn in 0..each {
                    let id = format!("w{writer}-{turn}");
                    loop {
                        let change = change(&head, &[(&id, put("{}"))]);
                        match store.append(&change).await {
                            Ok(()) => {
                                head = head.after(&change);
                                break;
                            }
                            Err(AppendError::Conflict { head: now }) => head = now,
                            Err(AppendError::Store(error)) => panic!("{error}"),
                        }
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let batch = store.changes_after(Revision::ZERO, 10_000).await.unwrap();
    let revisions: Vec<_> = batch.changes.iter().map(|change| change.revision.0).collect();
    assert_eq!(revisions, (1..=writers * each).collect::<Vec<_>>());
    let ids: BTreeSet<_> = batch.changes.iter().map(|change| change.writes[0].id.clone()).collect();
    assert_eq!(ids.len(), revisions.len());
    assert_eq!(store.load().await.unwrap().documents.len(), revisions.len());
}

async fn waiting_for_an_append_ends_without_one(store: Arc<dyn Store>) {
    for _ in 0..2 {
        tokio::time::timeout(WAKE_INTERVAL * 20, store.wait_for_append())
            .await
            .expect("another process may have written without a notification");
    }
}

/// Applying all changes of the log gives the stored documents.
async fn the_documents_are_the_sum_of_the_log(store: Arc<dyn Store>) {
    let mut expected = BTreeMap::new();
    for at in 1..=200_u64 {
        // A small walk over few ids, so that each is put, retired and removed many times.
        let (id, step) = (format!("n{}", at * 7 % 5), at * 11 % 4);
        let op = match step {
            0 | 1 => put(&format!("{{\"n\":{at}}}")),
            2 => retire(&format!("{{\"n\":{at}}}")),
            _ => Op::Remove,
        };
        match &op {
            Op::Put(body) => expected.insert(id.clone(), (at, State::Live, body.clone())),
            Op::Retire(body) => expected.insert(id.clone(), (at, State::Retired, body.clone())),
            Op::Remove => expected.remove(&id),
        };
        append(&*store, &[(&id, op)]).await;
    }
    let documents = store.load().await.unwrap().documents;
    let stored: Vec<_> =
        documents.into_iter().map(|it| (it.id.to_string(), (it.revision.0, it.state, it.body))).collect();
    assert_eq!(stored, expected.into_iter().collect::<Vec<_>>());
}

async fn the_past_can_be_read(store: Arc<dyn Store>) {
    let (kind, a) = ("namespace".into(), Id::parse("a").unwrap());
    for (at, op) in (1..).zip([put("1"), put("2"), retire("2"), Op::Remove, put("5")]) {
        append(&*store, &[("a", op), (&format!("n{at}"), put("{}"))]).await;
    }
    for (at, document) in
        [(1, Some((State::Live, "1"))), (3, Some((State::Retired, "2"))), (4, None), (5, Some((State::Live, "5")))]
    {
        let fleet = store.load_at(Revision(at)).await.unwrap();
        assert_eq!(fleet.point.revision, Revision(at));
        let found = fleet.documents.iter().find(|it| it.id == a).map(|it| (it.state, it.body.text()));
        assert_eq!(found, document.map(|(state, text)| (state, text.into())), "at {at}");
        assert_eq!(fleet.documents.iter().filter(|it| it.id != a).count() as u64, at);
    }
    assert_eq!(store.load_at(Revision(5)).await.unwrap(), store.load().await.unwrap());
    assert_eq!(store.document_at(&kind, &a, Revision(2)).await.unwrap(), Some((Revision(2), put("2"))));
    assert_eq!(store.document_at(&kind, &a, Revision(4)).await.unwrap(), Some((Revision(4), Op::Remove)));
    let late = Id::parse("n5").unwrap();
    assert_eq!(store.document_at(&kind, &late, Revision(4)).await.unwrap(), None);
}

async fn the_audit_trail_is_filtered_and_paged(store: Arc<dyn Store>) {
    for at in 1..=6_u64 {
        let head = head(&*store).await;
        let writes = change(&head, &[(if at % 2 == 0 { "even" } else { "odd" }, put("{}"))]).writes;
        let at_minute = Timestamp::from_second(i64::try_from(at).unwrap() * 60).unwrap();
        let origin = Origin { actor: format!("actor-{}", at % 3), at: at_minute, ..origin() };
        store.append(&Change::after(&head, origin, writes)).await.unwrap();
    }
    let all = ChangeLogQuery { limit: 100, ..ChangeLogQuery::default() };
    let revisions = async |query: ChangeLogQuery| {
        let entries = store.change_log_entries(&query).await.unwrap();
        entries.iter().map(|entry| entry.change.revision.0).collect::<Vec<_>>()
    };
    assert_eq!(revisions(all.clone()).await, [6, 5, 4, 3, 2, 1]);
    assert_eq!(revisions(ChangeLogQuery { limit: 2, ..all.clone() }).await, [6, 5]);
    assert_eq!(revisions(ChangeLogQuery { limit: 2, before: Some(Revision(5)), ..all.clone() }).await, [4, 3]);
    assert_eq!(revisions(ChangeLogQuery { id: Some(Id::parse("even").unwrap()), ..all.clone() }).await, [6, 4, 2]);
    assert_eq!(revisions(ChangeLogQuery { kind: Some("cluster".into()), ..all.clone() }).await, [0_u64; 0]);
    assert_eq!(revisions(ChangeLogQuery { actor: Some("actor-0".to_owned()), ..all.clone() }).await, [6, 3]);
    let with_nul = Some("actor-0\0".to_owned());
    assert_eq!(
        revisions(ChangeLogQuery { actor: with_nul, ..all.clone() }).await,
        [0_u64; 0],
        "no stored text has a NUL"
    );
    let (since, until) = (Timestamp::from_second(120).ok(), Timestamp::from_second(240).ok());
    assert_eq!(revisions(ChangeLogQuery { since, until, ..all.clone() }).await, [3, 2]);
    let entry = &store.change_log_entries(&all).await.unwrap()[0];
    assert_eq!(entry.writes, [("namespace".into(), Id::parse("even").unwrap(), "put".to_owned())]);
}

async fn pruning_removes_the_past_and_never_the_present(store: Arc<dyn Store>) {
    let kind = "namespace".into();
    let mut changes = Vec::new();
    for (at, op) in (1..).zip([put("1"), put("2"), Op::Remove, put("4"), put("5"), put("6")]) {
        changes.push(append(&*store, &[("a", op), (&format!("n{at}"), put("{}"))]).await);
    }
    let (present, at_four) = (store.load().await.unwrap(), store.load_at(Revision(4)).await.unwrap());
    store.prune(Revision(4)).await.unwrap();
    assert_eq!(store.load().await.unwrap(), present);
    assert_eq!(store.load_at(Revision(4)).await.unwrap(), at_four);
    assert_eq!(store.load_at(Revision(6)).await.unwrap(), present);
    assert_eq!(store.changes_after(Revision(4), 10).await.unwrap().changes.len(), 2);
    let first = store.document_at(&kind, &Id::parse("n1").unwrap(), Revision(5)).await.unwrap();
    assert_eq!(first, Some((Revision(1), put("{}"))), "a document that was not written since is still known");
    let all = ChangeLogQuery { limit: 100, ..ChangeLogQuery::default() };
    assert_eq!(store.change_log_entries(&all).await.unwrap().len(), 2);
    let digest = store.digest_at(Revision(2)).await.unwrap();
    assert_eq!(
        digest,
        Some(changes[1].digest),
        "a pruned revision can still be distinguished from one of another history"
    );
    assert_eq!(store.digest_at(Revision(6)).await.unwrap(), Some(present.point.digest));
    assert_eq!(store.digest_at(Revision(7)).await.unwrap(), None);
    for pruned in [
        store.load_at(Revision(3)).await.map(drop),
        store.changes_after(Revision(3), 10).await.map(drop),
        store.document_at(&kind, &Id::parse("a").unwrap(), Revision(3)).await.map(drop),
    ] {
        assert!(matches!(pruned, Err(StoreError::Pruned { horizon: Revision(4) })), "{pruned:?}");
    }
    store.prune(Revision(2)).await.unwrap();
    store.prune(Revision(99)).await.unwrap();
    assert_eq!(store.load().await.unwrap(), present);
    append(&*store, &[("a", put("7"))]).await;
    assert_eq!(store.load().await.unwrap().point.revision, Revision(7));
}

/// A bulk change is one change.
async fn a_change_holds_ten_thousand_writes(store: Arc<dyn Store>) {
    let ids: Vec<_> = (0..10_000).map(|at| format!("n{at:05}")).collect();
    let body = format!("{{\"text\":\"{}\"}}", "x".repeat(1_000));
    let writes: Vec<_> = ids.iter().map(|id| (id.as_str(), put(&body))).collect();
    append(&*store, &writes).await;
    assert_eq!(store.load().await.unwrap().documents.len(), 10_000);
    let batch = store.changes_after(Revision::ZERO, 1).await.unwrap();
    assert_eq!(batch.changes[0].writes.len(), 10_000);
}

/// However many statements the store needs.
async fn a_change_of_any_size_is_appended_completely_or_not_at_all(store: Arc<dyn Store>) {
    let mut ids = Vec::new();
    for size in [0, 1, 2, 24, 25, 26, 50, 76] {
        ids.extend((0..size).map(|at| format!("n{size}-{at}")));
        let here = head(&*store).await;
        let writes: Vec<_> = ids.iter().map(|id| (id.as_str(), put(&format!("{{\"of\":{size}}}")))).collect();
        let wrong = Point { digest: change(&here, &[]).digest, ..here };
        let refused = store.append(&change(&wrong, &writes)).await;
        assert!(matches!(refused, Err(AppendError::Conflict { head }) if head == here), "{size}: {refused:?}");
        assert_eq!(store.load().await.unwrap().point, here, "{size}: a refused change leaves nothing");
        let made = append(&*store, &writes).await;
        let batch = store.changes_after(here.revision, 10).await.unwrap();
        assert_eq!(batch.changes, [made], "{size}");
        assert_eq!(store.load().await.unwrap().documents.len(), ids.len(), "{size}");
    }
    let writes: Vec<_> = ids.iter().map(|id| (id.as_str(), Op::Remove)).collect();
    append(&*store, &writes).await;
    assert_eq!(store.load().await.unwrap().documents, []);
}

async fn several_changes_are_appended_all_or_none(store: Arc<dyn Store>) {
    append(&*store, &[("a", put("0"))]).await;
    // With few writes and with many, with one that writes nothing and with documents that are written again.
    let many: Vec<_> = (0..60).map(|at| format!("n{at}")).collect();
    let many: Vec<_> = many.iter().map(|id| (id.as_str(), put("{}"))).collect();
    let groups: [&[&[(&str, Op)]]; 3] = [
        &[&[("a", put("1"))], &[("a", put("2")), ("b", put("3"))], &[("b", Op::Remove)]],
        &[&[], &[("c", put("4"))], &[]],
        &[&[("d", put("5"))], &many, &[("d", Op::Remove), ("n7", put("6"))]],
    ];
    for group in groups {
        let here = head(&*store).await;
        let mut changes = Vec::new();
        let mut end = here;
        for writes in group {
            changes.push(change(&end, writes));
            end = end.after(changes.last().unwrap());
        }
        let before = store.load().await.unwrap();
        let late = store.append_all(&changes[1..]).await;
        assert!(matches!(late, Err(AppendError::Conflict { head }) if head == here), "{late:?}");
        let gap = store.append_all(&[changes[0].clone(), changes[2].clone()]).await;
        assert!(gap.is_err(), "they do not follow on one another: {gap:?}");
        assert_eq!(store.load().await.unwrap(), before, "a refused group leaves nothing");
        store.append_all(&changes).await.unwrap();
        let batch = store.changes_after(here.revision, 10).await.unwrap();
        assert_eq!((batch.head, batch.changes), (end, changes));
    }
    let fleet = store.load().await.unwrap();
    assert_eq!(fleet.documents.len(), 2 + 60);
    assert!(fleet.documents.contains(&document("a", 3, State::Live, "2")));
    store.append_all(&[]).await.unwrap();
    assert_eq!(head(&*store).await, fleet.point, "an empty group changes nothing");
}

macro_rules! promises {
    ($($promise:ident),* $(,)?) => {
        mod memory {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $promise() {
                    super::$promise(Arc::new(MemoryStore::default())).await;
                }
            )*
        }

        mod sqlite {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $promise() {
                    let folder = tempfile::tempdir().unwrap();
                    let dsn = format!("sqlite://{}/log.db?mode=rwc", folder.path().display()).parse().unwrap();
                    super::$promise(Arc::new(SqliteStore::open(&dsn).await.unwrap())).await;
                }
            )*
        }

        mod postgres {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $promise() {
                    let dsn = Postgres::shared().database().parse().unwrap();
                    let timeouts = Timeouts { connection: harness::LONG, statement: harness::LONG };
                    super::$promise(Arc::new(PostgresStore::open(&dsn, 4, timeouts, MissingTables::Create).await.unwrap())).await;
                }
            )*
        }
    };
}

promises!(
    a_new_log_is_empty,
    a_change_comes_back_as_it_was_appended,
    a_change_is_appended_only_directly_after_the_head,
    writes_put_retire_and_remove,
    changes_are_read_in_order_and_limited,
    a_reader_ahead_of_the_log_gets_the_head,
    concurrent_appenders_lose_and_duplicate_nothing,
    waiting_for_an_append_ends_without_one,
    the_documents_are_the_sum_of_the_log,
    a_change_holds_ten_thousand_writes,
    a_change_of_any_size_is_appended_completely_or_not_at_all,
    several_changes_are_appended_all_or_none,
    the_past_can_be_read,
    documents_of_some_kinds_are_read_without_the_others,
    the_writes_of_a_change_come_a_few_at_a_time_with_what_was_before,
    an_entry_names_the_first_documents_and_counts_all,
    the_audit_trail_is_filtered_and_paged,
    pruning_removes_the_past_and_never_the_present,
    a_log_is_moved_completely,
    a_log_is_replaced_only_on_request,
    no_damage_to_a_file_goes_unnoticed,
);
