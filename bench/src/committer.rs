//! A server that thinks nothing: for every request it commits one row to a SQLite file, and then answers. No server whose
//! changes are durable answers one writer faster, so this is what one writer can come to.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    thread,
};

use rusqlite::Connection as Sqlite;

use crate::{http::Connection, writes};

/// Starts it for one connection, with which it ends.
pub(crate) fn connect(folder: &Path, bytes: usize) -> Connection {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let sqlite = writes::bare(&folder.join("committer.db"));
    thread::spawn(move || answer(&listener.accept().unwrap().0, &sqlite, bytes));
    Connection::open(&address).unwrap()
}

fn answer(mut stream: &TcpStream, sqlite: &Sqlite, bytes: usize) {
    stream.set_nodelay(true).unwrap();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n{}", "x".repeat(bytes));
    let mut requests = BufReader::new(stream);
    while let Some(length) = head(&mut requests) {
        requests.read_exact(&mut vec![0; length]).unwrap();
        writes::commit(sqlite, 1, bytes);
        stream.write_all(answer.as_bytes()).unwrap();
    }
}

/// Reads the head of a request; says how long its body is, or nothing where there is no more request.
fn head(requests: &mut BufReader<&TcpStream>) -> Option<usize> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        requests.read_line(&mut line).ok().filter(|read| *read > 0)?;
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", said)) => length = said.parse().unwrap(),
            None if line.trim_end().is_empty() => return Some(length),
            _ => {}
        }
    }
}
