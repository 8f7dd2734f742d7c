//! The metadata that Kubernetes and Flux accept.
//!
//! An object that the API server rejects blocks every change of its ResourceSet, and some annotations make Flux delete the object
//! that has them. Neither can be saved.

use crate::{FieldError, Map, Value, limits::ERRORS, yaml::child};

/// The most bytes of all annotations together.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// The only safe key of Flux: it prevents garbage collection of an object.
const PRUNE: &str = "fluxcd.controlplane.io/prune";

/// The prefix of Pod Security labels; the admission refuses namespaces with unknown values.
const POD_SECURITY: &str = "pod-security.kubernetes.io/";

fn is_pod_security(label: &str, value: &str) -> bool {
    match label {
        "enforce" | "audit" | "warn" => ["privileged", "baseline", "restricted"].contains(&value),
        "enforce-version" | "audit-version" | "warn-version" => {
            let minor = value.strip_prefix("v1.").and_then(|minor| minor.parse::<u8>().ok());
            value == "latest" || minor.is_some_and(|minor| value == format!("v1.{minor}"))
        }
        _ => true,
    }
}

/// Checks labels.
pub(crate) fn check_labels(labels: &Map, pointer: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in labels {
        if errors.len() >= ERRORS {
            return;
        }
        let at = child(pointer, key);
        check_key(key, &at, errors);
        if key == "kubernetes.io/metadata.name" {
            errors.push(FieldError::new(&at, "label", "Kubernetes sets this label"));
        }
        if let Value::String(text) = value
            && let Some(level) = key.strip_prefix(POD_SECURITY)
            && !is_pod_security(level, text)
        {
            let rule =
                "the value is privileged, baseline or restricted, and for a -version latest or a version such as v1.36";
            errors.push(FieldError::new(&at, "pod-security", rule));
        }
        if let Value::String(text) = value
            && !(text.is_empty() || is_word(text))
        {
            let rule = "a label's value has at most 63 letters, digits, '-', '_' and '.', and starts and ends with a letter or digit";
            errors.push(FieldError::new(at, "label", rule));
        }
    }
}

/// Checks annotations.
pub(crate) fn check_annotations(annotations: &Map, pointer: &str, errors: &mut Vec<FieldError>) {
    let mut bytes = 0;
    for (key, value) in annotations {
        if errors.len() < ERRORS {
            check_key(key, &child(pointer, key), errors);
        }
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > MAX_ANNOTATIONS {
        let message = format!("annotations have at most {MAX_ANNOTATIONS} bytes in all, these have {bytes}");
        errors.push(FieldError::new(pointer, "annotation", message));
    }
}

fn check_key(key: &str, pointer: &str, errors: &mut Vec<FieldError>) {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if !is_word(name) || prefix.is_some_and(|prefix| !is_dns_name(prefix)) {
        let rule =
            "a key is a name of at most 63 letters, digits, '-', '_' and '.', optionally after a DNS name and '/'";
        errors.push(FieldError::new(pointer, "metadata-key", rule));
    }
    let of_flux = |prefix: &str| {
        ["fluxcd.controlplane.io", "toolkit.fluxcd.io"]
            .iter()
            .any(|flux| prefix.strip_suffix(flux).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
    };
    if key != PRUNE && prefix.is_some_and(of_flux) {
        let rule = format!("Flux acts on this key, and may delete the object; only {PRUNE} can be set");
        errors.push(FieldError::new(pointer, "flux-metadata", rule));
    }
}

fn is_word(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= 63
        && edge(text.chars().next())
        && edge(text.chars().next_back())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Whether a text is a DNS name in lower case, as most names of objects are.
#[must_use]
pub fn is_dns_name(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn broken(labels: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        check_labels(labels.as_object().unwrap(), "/labels", &mut errors);
        errors.into_iter().map(|error| error.rule).collect()
    }

    #[test]
    fn good_metadata_passes() {
        assert_eq!(
            broken(&json!({"app": "x", "example.com/team": "a-b_c.D", "empty": "", PRUNE: "disabled",
                "pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "v1.36"})),
            [""; 0]
        );
    }

    #[test]
    fn metadata_that_kubernetes_rejects_or_flux_acts_on_is_refused() {
        for (labels, rule) in [
            (json!({"-a": "x"}), "metadata-key"),
            (json!({"A_b/c": "x"}), "metadata-key"),
            (json!({"a/b/c": "x"}), "metadata-key"),
            (json!({"": "x"}), "metadata-key"),
            (json!({"a": "spaces here"}), "label"),
            (json!({"a": "x".repeat(64)}), "label"),
            (json!({"kubernetes.io/metadata.name": "x"}), "label"),
            (json!({"pod-security.kubernetes.io/enforce": "strict"}), "pod-security"),
            (json!({"pod-security.kubernetes.io/warn-version": "1.36"}), "pod-security"),
            (json!({"fluxcd.controlplane.io/reconcile": "disabled"}), "flux-metadata"),
            (json!({"resourceset.fluxcd.controlplane.io/name": "x"}), "flux-metadata"),
            (json!({"kustomize.toolkit.fluxcd.io/prune": "disabled"}), "flux-metadata"),
        ] {
            assert_eq!(broken(&labels), [rule], "{labels}");
        }
        let mut errors = Vec::new();
        check_annotations(json!({"a": "x".repeat(MAX_ANNOTATIONS)}).as_object().unwrap(), "/a", &mut errors);
        assert_eq!(errors.len(), 1);
    }
}
