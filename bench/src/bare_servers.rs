//! Servers that do less than ours, to show the limits of a single writer: one that commits a row for every request, one that
//! appends a change to our change log, and one that reviews the change first, on a snapshot of its own. Each is one thread with
//! one connection, and reads only one header.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::Arc,
    thread,
};

use fleet::{AllowedRemovals, Draft, Snapshot};
use model::{Id, Patch, Registry, ResourceType};
use store::{SqliteStore, Store as _, StoredFleet};
use tokio::runtime::{Builder, Runtime};

use crate::{http::HttpConnection, store_alone, writes};

/// Commits a row of so many bytes for every request.
pub(crate) fn committer(folder: &Path, bytes: usize) -> HttpConnection {
    let sqlite = writes::bare(&folder.join("committer.db"));
    let answer = "x".repeat(bytes);
    serve(move |_, _| {
        writes::commit(&sqlite, 1, bytes);
        answer.clone()
    })
}

/// Appends a change for every request, which writes the cluster unchanged.
pub(crate) fn appender(database: &Path) -> HttpConnection {
    let (runtime, store, fleet) = open(database);
    let mut head = *fleet.point();
    serve(move |id, _| {
        let document = &fleet.cluster(id).unwrap().document;
        let change = store_alone::change(&head, &[document]);
        runtime.block_on(store.append(&change)).unwrap();
        head = head.after(&change);
        document.body.text().into_owned()
    })
}

/// Patches the cluster for every request: reviews and appends the change, and continues with the next snapshot.
pub(crate) fn reviewer(database: &Path) -> HttpConnection {
    let (runtime, store, mut fleet) = open(database);
    serve(move |id, patch| {
        let clusters = fleet.registry().by_kind(ResourceType::CLUSTER).unwrap();
        let mut draft = Draft::on(&fleet);
        draft.patch(clusters, id, &Patch::Strategic(serde_json::from_slice(patch).unwrap())).unwrap();
        let (change, next) = draft.into_change(store_alone::origin(), AllowedRemovals::AtMost(0)).unwrap();
        runtime.block_on(store.append(&change)).unwrap();
        fleet = next;
        fleet.cluster(id).unwrap().document.body.text().into_owned()
    })
}

fn open(database: &Path) -> (Runtime, SqliteStore, Snapshot) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime.block_on(store_alone::open(database));
    let StoredFleet { point, documents } = runtime.block_on(store.load()).unwrap();
    let registry = Arc::new(Registry::built_in().unwrap());
    (runtime, store, Snapshot::load(registry, point, documents).unwrap())
}

/// Starts a server for one connection; it ends with it. `answer` gets the id at the end of the path and the body of a request,
/// and returns the body of the answer.
fn serve(answer: impl FnMut(&Id, &[u8]) -> String + Send + 'static) -> HttpConnection {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || serve_one(&listener.accept().unwrap().0, answer));
    HttpConnection::open(&address).unwrap()
}

fn serve_one(mut stream: &TcpStream, mut answer: impl FnMut(&Id, &[u8]) -> String) {
    stream.set_nodelay(true).unwrap();
    let mut requests = BufReader::new(stream);
    while let Some((id, length)) = head(&mut requests) {
        let mut body = vec![0; length];
        requests.read_exact(&mut body).unwrap();
        let answer = answer(&id, &body);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len());
        stream.write_all((head + &answer).as_bytes()).unwrap();
    }
}

/// Reads the head of a request: the id at the end of its path, and the length of its body; none after the last request.
fn head(requests: &mut BufReader<&TcpStream>) -> Option<(Id, usize)> {
    let mut line = String::new();
    let mut next = || {
        line.clear();
        requests.read_line(&mut line).ok().filter(|read| *read > 0)?;
        Some(line.trim_end().to_owned())
    };
    let first = next()?;
    let id = first.split(' ').nth(1)?.rsplit('/').next()?.parse().unwrap();
    let mut length = 0;
    loop {
        let line = next()?;
        match line.split_once(": ") {
            Some(("Content-Length", value)) => length = value.parse().unwrap(),
            None if line.is_empty() => return Some((id, length)),
            _ => {}
        }
    }
}
