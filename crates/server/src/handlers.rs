//! One operation a file; each says who may, what is asked, and the answer.

pub(crate) mod flux_clusters;
pub(crate) mod flux_inputs;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod openapi;
pub(crate) mod problems;
pub(crate) mod ready;

use axum::{
    extract::{FromRequestParts, Path, Query},
    http::{HeaderValue, header, request::Parts},
    response::{IntoResponse, Response},
};
use fleet::{Answer, Empty};
use model::{FieldError, yaml};
use serde::de::DeserializeOwned;

use crate::{App, failure::Failure};

/// The parameters of a path, by place. A path that cannot be read is a path at which there is nothing.
pub(crate) struct Segments<T>(T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Segments<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Failure> {
        let Path(segments) = Path::from_request_parts(parts, app).await.map_err(|_| Failure::not_found())?;
        Ok(Self(segments))
    }
}

/// How a poll wants "no inputs" to be said.
pub(crate) struct EmptyAs(Empty);

impl FromRequestParts<App> for EmptyAs {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Failure> {
        let refuse = |name: &str, message: String| {
            Failure::invalid_query(FieldError::new(yaml::child("", name), "query", message))
        };
        let query = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let Query(query) = query.map_err(|error| refuse("", error.body_text()))?;
        // A misspelt query must not silently become the default, which can mean "delete".
        match query.as_slice() {
            [] => Ok(Self(Empty::Bare)),
            [(name, value)] if name == "empty" && value == "explicit" => Ok(Self(Empty::Explicit)),
            [(name, _)] if name == "empty" => {
                Err(refuse(name, "the one value of \"empty\" is \"explicit\"".to_owned()))
            }
            [(name, _), ..] if name == "empty" => Err(refuse(name, "\"empty\" stands alone and once".to_owned())),
            [(name, _), ..] => Err(refuse(name, format!("\"{name}\" is not a query of this path; \"empty\" is"))),
        }
    }
}

/// Sends a checked answer. No cache may keep it: a list that was true once is a delete command later.
pub(crate) fn send(answer: Answer) -> Response {
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
    ([(header::CONTENT_TYPE, JSON), (header::CACHE_CONTROL, NO_STORE)], answer.body).into_response()
}
