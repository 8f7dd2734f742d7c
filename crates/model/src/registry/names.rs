//! Names are addresses: two types cannot share one, nor take one of the API's own.

use super::{Entry, RegistryError};
use crate::TypeRecord;

/// Names that the API has given away: paths of its own, what stands behind a cluster's id, and what a cluster has beside
/// the types or calls otherwise.
const API: [&str; 22] = [
    "api",
    "batch",
    "bootstrap",
    "changes",
    "cluster-identity",
    "former_dns",
    "health",
    "history",
    "id",
    "inputs",
    "metrics",
    "openapi",
    "patches",
    "phone-home",
    "problems",
    "provider",
    "ready",
    "released_dns",
    "restore",
    "revert",
    "store",
    "types",
];

/// Refuses a type with a name that is taken.
pub(super) fn refuse_taken(entry: &Entry, before: &[Entry]) -> Result<(), RegistryError> {
    let this = &entry.declaration;
    if this.kind.as_str() == TypeRecord::KIND {
        return Err(entry.refuse("/kind", format!("the kind \"{}\" is the server's own", this.kind)));
    }
    for (what, name) in [("path", &this.path), ("list", &this.list), ("plural", &this.plural)] {
        if API.contains(&name.as_str()) {
            let rule = format!("the {what} of \"{}\" is \"{name}\", a name of the API's own", this.kind);
            return Err(entry.refuse(format!("/schema/x-flux/{what}"), rule));
        }
    }
    for other in before {
        let that = &other.declaration;
        for (what, taken) in
            [("path", this.path == that.path), ("list", this.list == that.list), ("plural", this.plural == that.plural)]
        {
            if taken {
                let rule =
                    format!("the {what} of \"{}\" is already that of \"{}\" in {}", this.kind, that.kind, other.file);
                return Err(entry.refuse(format!("/schema/x-flux/{what}"), rule));
            }
        }
    }
    Ok(())
}
