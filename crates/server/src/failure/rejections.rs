//! Rejections of changes as failures: which status and which code each rule has.

use axum::http::HeaderValue;
use fleet::{EditError, Objections, Rule};
use model::{FieldError, Kind, ProtectedCluster, RefusedRemovals, ResourceType};

use super::{ErrorStatus, Failure};
use crate::body::ACCEPT_PATCH;

impl From<Objections> for Failure {
    fn from(objections: Objections) -> Self {
        let broken = match objections {
            Objections::Rules(broken) => broken,
            Objections::ProtectedCluster(id) => return EditError::Protected(id).into(),
            Objections::ProtectedInputs(removed) => {
                return removed
                    .refused(0)
                    .map_or_else(|| Self::internal("nothing is removed from protected clusters"), protected);
            }
        };
        let held = [Rule::DuplicateDns, Rule::TombstoneDns].map(Rule::name);
        match broken.first() {
            Some(first) if first.rule == Rule::TypesChanged.name() => Self::types_changed(first.message.clone()),
            Some(first) if broken.iter().all(|error| held.contains(&error.rule.as_ref())) => {
                Self::new(ErrorStatus::CONFLICT, "dns-held", first.message.clone()).with_errors(broken)
            }
            _ => Self::invalid(broken),
        }
    }
}

/// A change that would take inputs from protected clusters.
pub(crate) fn protected(refused: RefusedRemovals) -> Failure {
    let of_cluster = |ProtectedCluster { id, removed }: ProtectedCluster| {
        let kind = Kind::from(ResourceType::CLUSTER);
        FieldError::new("", "protected", format!("inputs that would be removed: {removed}")).in_document(&kind, &id)
    };
    let errors = refused.clusters.into_iter().map(of_cluster).collect();
    Failure::new(ErrorStatus::CONFLICT, "protected", refused.detail).with_errors(errors)
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        let (status, code) = match &error {
            EditError::NotFound { .. } => (ErrorStatus::NOT_FOUND, "not-found"),
            EditError::Decommissioned(_) => (ErrorStatus::GONE, "decommissioned"),
            EditError::NotDecommissioned(_) => (ErrorStatus::CONFLICT, "not-decommissioned"),
            EditError::Exists { .. } => (ErrorStatus::CONFLICT, "exists"),
            EditError::Referenced { by, .. } => {
                let referrer = |name: &String| FieldError {
                    document: Some(name.clone()),
                    ..FieldError::new("", "referenced", "it refers to the document")
                };
                let failure = Self::new(ErrorStatus::CONFLICT, "referenced", error.to_string());
                return failure.with_errors(by.iter().map(referrer).collect());
            }
            EditError::Protected(_) => (ErrorStatus::CONFLICT, "protected"),
            EditError::AmbiguousPatch { .. } | EditError::AmbiguousReferences { .. } => {
                let is_strategic = matches!(error, EditError::AmbiguousPatch { is_strategic: true, .. });
                let types = HeaderValue::from_static(if is_strategic {
                    "application/strategic-merge-patch+json"
                } else {
                    "application/merge-patch+json, application/strategic-merge-patch+json"
                });
                let failure = Self::new(ErrorStatus::UNSUPPORTED_MEDIA_TYPE, "ambiguous-patch", error.to_string());
                return failure.with_header(ACCEPT_PATCH, types);
            }
            EditError::Invalid(errors) => return Self::invalid(errors.clone()),
        };
        Self::new(status, code, error.to_string())
    }
}
