//! Request bodies: JSON, of a bounded size, in a bounded time.

use std::time::Duration;

use axum::{
    body::{Bytes, to_bytes},
    extract::{FromRequest, Request},
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, HeaderName},
    },
};
use http_body_util::LengthLimitError;
use model::{FieldError, Map, Patch, Unambiguous, Value};
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// The largest body. A batch of a thousand clusters has a few megabytes.
pub(crate) const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The time in which a body must be here.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) fn too_large() -> Failure {
    let detail = format!("a request body has at most {MAX_BYTES} bytes");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", detail)
}

async fn read(request: Request) -> Result<Bytes, Failure> {
    match tokio::time::timeout(TIMEOUT, to_bytes(request.into_body(), MAX_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_too_large(&error) => Err(too_large()),
        Ok(Err(error)) => {
            let broken = FieldError::new("", "body", "the request body ended before it was complete");
            Err(Failure::invalid_body(broken).because(error))
        }
        Err(_) => {
            Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "body-too-slow", "the request body did not come in time"))
        }
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<LengthLimitError>)
}

/// Reads a body in two steps: what is said twice cannot be told any more once it is a value of a type.
fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let Unambiguous(value) = model::decode(&mut json).map_err(Failure::invalid_body)?;
    json.end().map_err(|error| Failure::invalid_body(FieldError::new("", "json", error.to_string())))?;
    model::decode(value).map_err(Failure::invalid_body)
}

/// A JSON body of a type.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for Json<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        decode(&read(request).await?).map(Self)
    }
}

/// A JSON object, or nothing, which is an empty one.
pub(crate) struct Fields(pub(crate) Map);

impl<S: Sync> FromRequest<S> for Fields {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let bytes = read(request).await?;
        if bytes.is_empty() { Ok(Self(Map::new())) } else { decode(&bytes).map(Self) }
    }
}

/// The kinds of patches, by their media types; plain JSON is a merge patch.
pub(crate) const PATCHES: [&str; 4] = [
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/json",
];

/// A patch, of the kind that its media type says.
pub(crate) struct PatchBody(pub(crate) Patch);

impl<S: Sync> FromRequest<S> for PatchBody {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let media = media(&request, &PATCHES)?;
        let bytes = read(request).await?;
        Ok(Self(match media.as_str() {
            "application/json-patch+json" => Patch::Json(decode(&bytes)?),
            "application/strategic-merge-patch+json" => Patch::Strategic(Value::Object(decode(&bytes)?)),
            _ => Patch::Merge(Value::Object(decode(&bytes)?)),
        }))
    }
}

/// A strategic merge patch; plain JSON is taken for one.
pub(crate) struct StrategicPatch(pub(crate) Patch);

impl<S: Sync> FromRequest<S> for StrategicPatch {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        media(&request, &PATCHES[2..])?;
        Ok(Self(Patch::Strategic(Value::Object(decode(&read(request).await?)?))))
    }
}

/// The media type of a patch, if it is one of these.
fn media(request: &Request, known: &[&str]) -> Result<String, Failure> {
    const ACCEPT_PATCH: HeaderName = HeaderName::from_static("accept-patch");
    let media = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or(PATCHES[3]);
    let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if known.contains(&media.as_str()) {
        return Ok(media);
    }
    let known = known.join(", ");
    let header = HeaderValue::try_from(&known).map_err(Failure::internal)?;
    let failure = Failure::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported-media-type",
        format!("a patch here is one of {known}"),
    );
    Err(failure.with_header(ACCEPT_PATCH, header))
}
