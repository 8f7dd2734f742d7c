//! Names of types are part of URLs: two types cannot have the same, and none can have a name of the API.

use super::{RegistryError, TypeFile};
use crate::TypeRecord;

/// Names that the API uses: its own paths, the parts after a cluster's id, and the other fields of a cluster.
const API_NAMES: [&str; 22] = [
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

/// Refuses a type with a name that is already in use.
pub(super) fn refuse_used_names(entry: &TypeFile, before: &[TypeFile]) -> Result<(), RegistryError> {
    let this = &entry.declaration;
    if this.kind.as_str() == TypeRecord::KIND {
        return Err(entry.refuse("/kind", format!("the kind \"{}\" is reserved for the server", this.kind)));
    }
    for (what, name) in [("path", &this.path), ("list", &this.list), ("plural", &this.plural)] {
        if API_NAMES.contains(&name.as_str()) {
            let rule = format!("the {what} of \"{}\" is \"{name}\", a name of the API", this.kind);
            return Err(entry.refuse(format!("/schema/x-flux/{what}"), rule));
        }
    }
    for other in before {
        let that = &other.declaration;
        for (what, is_used) in
            [("path", this.path == that.path), ("list", this.list == that.list), ("plural", this.plural == that.plural)]
        {
            if is_used {
                let rule =
                    format!("the {what} of \"{}\" is already that of \"{}\" in {}", this.kind, that.kind, other.file);
                return Err(entry.refuse(format!("/schema/x-flux/{what}"), rule));
            }
        }
    }
    Ok(())
}
