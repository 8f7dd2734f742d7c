//! The change log as it grows: server-sent events, read line by line.

use std::io::{BufRead, BufReader, Read};

use api::ChangeSummary;

use crate::ClientError;

/// Changes as they come; ends where the server ends the stream.
pub struct Changes {
    lines: BufReader<Box<dyn Read>>,
    url: String,
}

impl Changes {
    pub(crate) fn new(body: Box<dyn Read>, url: String) -> Self {
        Self { lines: BufReader::new(body), url }
    }
}

impl Iterator for Changes {
    type Item = Result<ChangeSummary, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut data = String::new();
        loop {
            let mut line = String::new();
            match self.lines.read_line(&mut line) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => {
                    return Some(Err(ClientError::Interrupted { url: self.url.clone(), cause: error.to_string() }));
                }
            }
            match line.trim_end_matches(['\r', '\n']) {
                // Comments keep the connection alive.
                "" if data.is_empty() => {}
                "" => {
                    let strange = |error: serde_json::Error| ClientError::Strange {
                        url: self.url.clone(),
                        cause: error.to_string(),
                    };
                    return Some(serde_json::from_str(&data).map_err(strange));
                }
                line => data.extend(line.strip_prefix("data:").map(str::trim_start)),
            }
        }
    }
}
