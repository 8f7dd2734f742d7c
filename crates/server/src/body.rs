//! Request bodies: JSON, of a bounded size and depth, in a bounded time.
//!
//! A parsed body takes many times its length in memory. So only a few large bodies are received at a time, and only one body that
//! is not small is parsed at a time.
//! Each write of a batch has the limits of a request about one document; a larger one is refused while it is parsed.

use std::time::Duration;

use axum::{
    body::{Body, Bytes, HttpBody as _},
    extract::{FromRequest, MatchedPath, Request},
    http::{
        HeaderValue,
        header::{CONTENT_TYPE, HeaderName},
    },
};
use http_body_util::BodyExt as _;
use model::{
    FieldError, ItemLimits, Map, Patch, Value,
    limits::{
        BATCH_BYTES, BATCH_ELEMENTS, BODY_BYTES, BYTES_RULE, DEPTH_RULE, ELEMENTS, ELEMENTS_RULE, LARGE_BODY_BYTES,
        SMALL_BODY_BYTES,
    },
    read_json,
};
use serde::de::DeserializeOwned;

use crate::{
    App,
    failure::{ErrorStatus, Failure},
    request_limits::{ConcurrencyLimit, Permit},
};

/// The limits of a request body.
#[derive(Clone, Copy)]
pub(crate) struct BodyLimits {
    bytes: usize,
    elements: usize,
    /// The limits of each write, in a batch.
    writes: Option<ItemLimits>,
}

/// The path of batches, the only one whose requests contain many documents.
pub(crate) const BATCH: &str = "/batch";

impl BodyLimits {
    const BATCH: Self = Self {
        bytes: BATCH_BYTES,
        elements: BATCH_ELEMENTS,
        writes: Some(ItemLimits { bytes: BODY_BYTES, elements: ELEMENTS }),
    };

    pub(crate) fn for_request(request: &Request) -> Self {
        match request.extensions().get::<MatchedPath>().map(MatchedPath::as_str) {
            Some(BATCH) => Self::BATCH,
            _ => Self { bytes: BODY_BYTES, elements: ELEMENTS, writes: None },
        }
    }

    /// Refuses a body whose `Content-Length` is over the largest limit, before any of it is read.
    pub(crate) fn check_length(length: u64) -> Result<(), Failure> {
        if length > BATCH_BYTES as u64 { Err(Self::BATCH.too_large()) } else { Ok(()) }
    }

    fn too_large(self) -> Failure {
        let detail = format!("the body of this request has at most {} bytes", self.bytes);
        Failure::new(ErrorStatus::PAYLOAD_TOO_LARGE, "body-too-large", detail)
    }

    /// Receives a body. One that is too large for its path, or is refused because of other large ones, is read to its end and
    /// discarded: a client that is still sending would otherwise see a broken connection and not the error.
    async fn receive(self, mut body: Body, large: &ConcurrencyLimit) -> Result<(Bytes, Option<Permit>), Failure> {
        let (mut bytes, mut length, mut permit) = (Vec::new(), 0, None);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                let broken = FieldError::new("", "body", "the request body ended before it was complete");
                Failure::invalid_body(broken).because(error)
            })?;
            let Ok(data) = frame.into_data() else { continue };
            length += data.len();
            if length > BATCH_BYTES {
                return Err(self.too_large());
            }
            if length > LARGE_BODY_BYTES && length <= self.bytes && permit.is_none() {
                permit = Some(large.enter().await);
                // Allocated once: a buffer that grows by doubling takes up to three times the memory.
                let rest = body.size_hint().exact().and_then(|rest| usize::try_from(rest).ok()).unwrap_or_default();
                bytes.reserve_exact(data.len() + rest.min(self.bytes - length));
            }
            if length <= self.bytes && !matches!(permit, Some(Err(_))) {
                bytes.extend_from_slice(&data);
            } else {
                bytes = Vec::new();
            }
        }
        if length > self.bytes { Err(self.too_large()) } else { Ok((bytes.into(), permit.transpose()?)) }
    }
}

/// The time in which a body must be received.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A received body and its limits.
struct Received {
    bytes: Bytes,
    limits: BodyLimits,
    permit: BodyPermit,
}

/// The right to have a body that is not small in memory, until the request needs neither the body nor its parsed value.
#[derive(Default)]
pub(crate) struct BodyPermit {
    _received: Option<Permit>,
    _parsed: Option<Permit>,
}

async fn read(request: Request, app: &App) -> Result<Received, Failure> {
    let limits = BodyLimits::for_request(&request);
    let slow = |_| {
        let detail = format!("the request body was not received within {} seconds", TIMEOUT.as_secs());
        Failure::new(ErrorStatus::REQUEST_TIMEOUT, "body-too-slow", detail)
    };
    let receive = limits.receive(request.into_body(), &app.limits.large_bodies);
    let (bytes, received) = tokio::time::timeout(TIMEOUT, receive).await.map_err(slow)??;
    // Taken only after the body is received: a client that sends slowly delays no other.
    let is_small = bytes.len() <= SMALL_BODY_BYTES;
    let parsed = if is_small { None } else { Some(app.limits.bodies.enter().await?) };
    Ok(Received { bytes, limits, permit: BodyPermit { _received: received, _parsed: parsed } })
}

impl Received {
    /// Parses a body in two steps: a duplicate field can no longer be detected in a value of a type.
    fn decode<T: DeserializeOwned>(self) -> Result<(T, BodyPermit), Failure> {
        let Self { bytes, limits, permit } = self;
        let value = read_json(&bytes, limits.elements, limits.writes).map_err(|error| {
            let is_limit = [DEPTH_RULE, ELEMENTS_RULE, BYTES_RULE].contains(&error.rule.as_str());
            if is_limit { Failure::invalid(vec![error]) } else { Failure::invalid_body(error) }
        })?;
        drop(bytes);
        Ok((model::decode(value).map_err(Failure::invalid_body)?, permit))
    }
}

/// A JSON body of a type.
pub(crate) struct Json<T>(pub(crate) T, pub(crate) BodyPermit);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Self, Failure> {
        let (value, permit) = read(request, app).await?.decode()?;
        Ok(Self(value, permit))
    }
}

/// A JSON object. An empty body is an empty object.
pub(crate) struct Fields(pub(crate) Map, pub(crate) BodyPermit);

impl FromRequest<App> for Fields {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Self, Failure> {
        let received = read(request, app).await?;
        let (fields, permit) =
            if received.bytes.is_empty() { (Map::new(), BodyPermit::default()) } else { received.decode()? };
        Ok(Self(fields, permit))
    }
}

/// The media types of patches; plain JSON is a merge patch.
pub(crate) const PATCHES: [&str; 4] = [
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/json",
];

/// The header that names the media types of patches that the path accepts.
pub(crate) const ACCEPT_PATCH: HeaderName = HeaderName::from_static("accept-patch");

/// Plain JSON does not specify how a patch treats lists.
const PLAIN: &str = PATCHES[3];

/// A patch, of the kind that its media type specifies.
pub(crate) struct PatchBody {
    pub(crate) patch: Patch,
    /// Whether its media type is plain JSON: such a patch must not shorten a list of references.
    pub(crate) is_plain: bool,
    pub(crate) permit: BodyPermit,
}

impl FromRequest<App> for PatchBody {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Self, Failure> {
        let media = media(&request, &PATCHES)?;
        let received = read(request, app).await?;
        if media == PATCHES[1] {
            let (operations, permit) = received.decode()?;
            return Ok(Self { patch: Patch::Json(operations), is_plain: false, permit });
        }
        let (fields, permit) = received.decode()?;
        let fields = Value::Object(fields);
        let patch = if media == PATCHES[2] { Patch::Strategic(fields) } else { Patch::Merge(fields) };
        Ok(Self { patch, is_plain: media == PLAIN, permit })
    }
}

/// A strategic merge patch; plain JSON is accepted as one.
pub(crate) struct StrategicPatch(pub(crate) PatchBody);

impl FromRequest<App> for StrategicPatch {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Self, Failure> {
        let is_plain = media(&request, &PATCHES[2..])? == PLAIN;
        let (fields, permit) = read(request, app).await?.decode()?;
        Ok(Self(PatchBody { patch: Patch::Strategic(Value::Object(fields)), is_plain, permit }))
    }
}

/// The media type of a patch, if it is one of these.
fn media(request: &Request, known: &[&str]) -> Result<String, Failure> {
    // A header value that is not text matches no known media type.
    let media = request.headers().get(CONTENT_TYPE).map_or(PLAIN, |value| value.to_str().unwrap_or_default());
    let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if known.contains(&media.as_str()) {
        return Ok(media);
    }
    let known = known.join(", ");
    let header = HeaderValue::try_from(&known).map_err(Failure::internal)?;
    let failure = Failure::new(
        ErrorStatus::UNSUPPORTED_MEDIA_TYPE,
        "unsupported-media-type",
        format!("the media type of a patch is one of {known}"),
    );
    Err(failure.with_header(ACCEPT_PATCH, header))
}
