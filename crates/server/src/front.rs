//! The short way of a poll: from the bytes in which it comes to the bytes of its answer.
//!
//! Polls are nearly all that a fleet asks for. To make of each a request with a map of headers, to find its route, and to
//! make an answer of another map would take longer than to gather what it is told. So a poll as Flux Operator sends it is
//! read where it lies. Only a good answer is given here. What is odd or wrong in any way, a missing token as well as a
//! cluster that nobody knows, is for the router to say: there is one place where requests fail.

use std::{cell::RefCell, io::Write as _, mem::MaybeUninit};

use fleet::{Empty, Packed};
use httparse::{Header, Request, Status};
use jiff::{Timestamp, fmt::rfc2822::DateTimePrinter};

use crate::{
    App,
    handlers::{Encoding, poll_answer},
    large_polls::Sending,
    listener::{Reply, Shortcut},
};

/// Flux Operator sends six headers, and proxies add a few.
const HEADERS: usize = 24;

/// For an address at which nobody polls: everything is the router's.
#[derive(Clone, Copy, Debug)]
pub struct NoFastPath;

impl Shortcut for NoFastPath {
    type Body = Packed;

    fn answer(&self, _: &[u8], _: &mut Vec<u8>) -> Option<Reply<Packed>> {
        None
    }
}

/// Answers polls.
#[derive(Clone)]
pub struct Front(App);

impl Front {
    /// Answers from what an application knows.
    #[must_use]
    pub fn new(app: App) -> Self {
        Self(app)
    }
}

impl Shortcut for Front {
    type Body = Sending<Packed>;

    fn answer(&self, received: &[u8], head: &mut Vec<u8>) -> Option<Reply<Self::Body>> {
        let Self(app) = self;
        let start = app.clock.uptime();
        let mut headers = [const { MaybeUninit::uninit() }; HEADERS];
        let mut request = Request::new(&mut []);
        let Ok(Status::Complete(length)) = request.parse_with_uninit_headers(received, &mut headers) else {
            return None;
        };
        if request.method != Some("GET") || request.version != Some(1) {
            return None;
        }
        let asked = Asked::of(request.headers)?;
        let target = request.path?.strip_prefix("/api/v2/flux/clusters/")?;
        let (dns, path) = target.split_once('/')?;
        let (path, empty) = match path.split_once('?') {
            None => (path, Empty::Bare),
            Some((path, "empty=explicit")) => (path, Empty::Explicit),
            Some(_) => return None,
        };
        app.tokens.allow(asked.authorization?)?;
        let ty = app.registry.by_path(path)?;
        let fleet = app.fleet.newest();
        let fleet = fleet.as_ref()?;
        let cluster = fleet.cluster_at(dns).ok()?;
        let body = poll_answer(fleet, cluster, ty, empty, asked.encoding).ok()?;
        let is_zipped = matches!(body, Packed::Zipped(_));
        let body = app.large_polls.send(body).ok()?;
        let now = app.clock.now();

        head.clear();
        head.extend(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncache-control: no-store\r\n");
        if is_zipped {
            head.extend(b"content-encoding: gzip\r\n");
        }
        if asked.close {
            head.extend(b"connection: close\r\n");
        }
        head.extend(b"x-request-id: ");
        head.extend(app.request_ids.of(asked.request_id, now, &mut [0; 36]).as_bytes());
        head.extend(b"\r\ndate: ");
        write_date(now, head)?;
        write!(head, "\r\ncontent-length: {}\r\n\r\n", body.as_ref().len()).ok()?;
        // Last, since what is not answered here is counted on the long way.
        cluster.polls.count(ty, now.as_second());
        app.former_polls.note(cluster, dns, now.as_second());
        app.metrics.answered_poll(app.clock.uptime().saturating_sub(start));
        Some(Reply { request: length, body, last: asked.close })
    }
}

/// What the headers of a poll say.
struct Asked<'a> {
    authorization: Option<&'a str>,
    request_id: Option<&'a str>,
    encoding: Encoding,
    /// Whether the client wants no more than this.
    close: bool,
}

impl<'a> Asked<'a> {
    /// None, if there is more to the request than a poll has.
    fn of(headers: &[Header<'a>]) -> Option<Self> {
        let mut asked = Self { authorization: None, request_id: None, encoding: Encoding::Identity, close: false };
        for Header { name, value } in headers {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            // What the router would not read as text is for the router to refuse.
            let is_text = || value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
            let text = || str::from_utf8(value).ok().filter(|_| is_text());
            if is("authorization") {
                if asked.authorization.replace(text()?).is_some() {
                    return None;
                }
            } else if is("accept-encoding") {
                asked.encoding = asked.encoding.or(text()?);
            } else if is("x-request-id") {
                asked.request_id = asked.request_id.or(Some(text()?));
            } else if is("connection") {
                if value.eq_ignore_ascii_case(b"close") {
                    asked.close = true;
                } else if !value.eq_ignore_ascii_case(b"keep-alive") {
                    return None;
                }
            } else if ["content-length", "transfer-encoding", "expect", "upgrade"].into_iter().any(is) {
                return None;
            }
        }
        Some(asked)
    }
}

/// Writes the date as headers have it.
fn write_date(now: Timestamp, head: &mut Vec<u8>) -> Option<()> {
    thread_local! {
        /// The last one: it is another one once a second.
        static LAST: RefCell<(i64, String)> = const { RefCell::new((i64::MIN, String::new())) };
    }
    LAST.with_borrow_mut(|(second, date)| {
        if *second != now.as_second() {
            *date = DateTimePrinter::new().timestamp_to_rfc9110_string(&now).ok()?;
            *second = now.as_second();
        }
        head.extend(date.as_bytes());
        Some(())
    })
}
