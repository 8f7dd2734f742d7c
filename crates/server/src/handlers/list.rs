//! `GET /{type}`: the documents of a type that match the filters, or a page of them.

use std::iter;

use axum::{
    extract::State,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use model::Document;

use super::{Segments, answers::not_modified, chunks, past, selection::Selection, type_at};
use crate::{
    App,
    access::ReadAccess,
    failure::Failure,
    precondition::{Precondition, etag},
    query::Params,
};

const TOTAL: HeaderName = HeaderName::from_static("x-total-count");

pub(crate) async fn list(
    access: ReadAccess,
    State(app): State<App>,
    Segments(plural): Segments<String>,
    precondition: Precondition,
    mut params: Params,
) -> Result<Response, Failure> {
    let ty = type_at(&app, &plural)?;
    let (limit, offset) = (params.count("limit")?, params.count("offset")?);
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let revision = past::revision(&mut params)?;
    let selection = Selection::take(&mut params, ty, &[])?;
    let now = access.fleet()?;
    let past = past::known(&now, revision)?;
    // The ETag is that of the whole fleet: the list may contain anything that was written up to this revision.
    let (revision, epoch) = (past.unwrap_or(now.revision()), now.point().epoch);
    if precondition.is_known(revision, epoch) {
        return Ok(not_modified(revision, epoch));
    }
    let page = |found: Vec<&Document>| {
        let page = found.iter().skip(offset.map_or(0, size)).take(limit.map_or(usize::MAX, size));
        (found.len(), page.map(|it| it.body.clone()).collect::<Vec<_>>())
    };
    let (total, page) = match past {
        None => app.limits.lists.compute(|| selection.documents(now.documents(ty)).map(page)).await??,
        Some(revision) => {
            let _permit = app.limits.past.enter().await?;
            let then = past::documents(&access, ty, revision).await?;
            app.limits.lists.compute(|| selection.documents(then.documents.iter()).map(page)).await??
        }
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::ETAG, etag(revision, epoch)),
        (TOTAL, HeaderValue::from(total)),
    ];
    let texts = page.into_iter().enumerate();
    let texts = texts.map(|(at, body)| if at == 0 { body.text().into_owned() } else { format!(",{}", body.text()) });
    let parts = iter::once("[".to_owned()).chain(texts).chain(iter::once("]".to_owned()));
    Ok((headers, chunks::body(&app, chunks::joined(parts)).await?).into_response())
}
