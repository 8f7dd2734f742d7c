//! A kept-alive HTTP connection with as little overhead as possible, so that the server is measured and not the client.

use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
    process::{Command, Stdio},
    time::Duration,
};

const TIMEOUT: Duration = Duration::from_mins(5);

pub(crate) struct HttpConnection {
    stream: TcpStream,
    address: String,
}

pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl HttpConnection {
    pub(crate) fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { stream, address: address.to_owned() })
    }

    pub(crate) fn get(&mut self, path: &str, headers: &str) -> io::Result<HttpResponse> {
        let host = &self.address;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{}\r\n{headers}\r\n", authorization(harness::READ));
        self.send(request.as_bytes())
    }

    pub(crate) fn patch(&mut self, path: &str, body: &str) -> io::Result<HttpResponse> {
        let (host, length) = (&self.address, body.len());
        let token = authorization(harness::WRITE);
        let kind = "Content-Type: application/strategic-merge-patch+json";
        let request = format!(
            "PATCH {path} HTTP/1.1\r\nHost: {host}\r\n{token}\r\n{kind}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.send(request.as_bytes())
    }

    fn send(&mut self, request: &[u8]) -> io::Result<HttpResponse> {
        self.stream.write_all(request)?;
        let mut bytes = Vec::new();
        let mut buffer = [0; 16 * 1024];
        let mut extent = None;
        while extent.is_none_or(|(_, end)| bytes.len() < end) {
            let read = self.stream.read(&mut buffer)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            bytes.extend_from_slice(&buffer[..read]);
            extent = extent.or_else(|| measure(&bytes));
        }
        let (start, end) = extent.unwrap_or_default();
        assert_eq!(bytes.len(), end, "the answer is longer than its length");
        let body = bytes.split_off(start);
        let head = String::from_utf8(bytes).unwrap().to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Ok(HttpResponse { status, head, body })
    }
}

fn authorization(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// Where the body of an answer begins and ends, once its headers are there.
fn measure(bytes: &[u8]) -> Option<(usize, usize)> {
    let start = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..start]).to_ascii_lowercase();
    let length = header(&head, "content-length").unwrap_or_else(|| panic!("an answer without a length: {head}"));
    Some((start, start + length.parse::<usize>().unwrap()))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
}

impl HttpResponse {
    /// The answer; panics unless it is 200.
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.status, 200, "{}{}", self.head, String::from_utf8_lossy(&self.body));
        self
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub(crate) fn is_gzip(&self) -> bool {
        self.header("content-encoding") == Some("gzip")
    }

    /// The body, decompressed.
    pub(crate) fn unpacked(self) -> Vec<u8> {
        if !self.is_gzip() {
            return self.body;
        }
        let mut gzip = Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // A compressed answer fits into a pipe.
        gzip.stdin.take().unwrap().write_all(&self.body).unwrap();
        let output = gzip.wait_with_output().unwrap();
        assert!(output.status.success(), "the body is not gzip");
        output.stdout
    }
}
