//! The resource types of a server, and the names by which people call them.

use api::TypeDescription;

/// All types of a server.
#[derive(Clone, Debug)]
pub struct Types(Vec<TypeDescription>);

impl Types {
    /// These types.
    #[must_use]
    pub fn new(types: Vec<TypeDescription>) -> Self {
        Self(types)
    }

    /// All of them, the cluster first.
    pub fn iter(&self) -> impl Iterator<Item = &TypeDescription> {
        self.0.iter()
    }

    /// Those that clusters refer to.
    pub fn definitions(&self) -> impl Iterator<Item = &TypeDescription> {
        self.0.iter().filter(|ty| !ty.is_cluster())
    }

    /// The type of a name: by kind, plural, path or list, with `-` as good as `_`; or by the last word of its
    /// kind or plural (`component`), where no other type has it.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&TypeDescription> {
        let name = name.to_lowercase().replace('-', "_");
        let exact = |ty: &&TypeDescription| {
            [&ty.kind, &ty.plural].contains(&&name)
                || ty.path.replace('-', "_") == name
                || ty.list.as_ref() == Some(&name)
        };
        self.0.iter().find(exact).or_else(|| {
            let word = |text: &str| text.rsplit('_').next() == Some(name.as_str());
            let mut matches = self.0.iter().filter(|ty| word(&ty.kind) || word(&ty.plural));
            matches.next().filter(|_| matches.next().is_none())
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;

    fn types(kinds: &[(&str, &str)]) -> Types {
        let ty = |(kind, plural): &(&str, &str)| {
            let ty = json!({
                "kind": kind, "plural": plural, "path": plural.replace('_', "-"), "description": "", "patchable": false,
                "nest": {}, "filters": [], "schema": null, "list": plural
            });
            serde_json::from_value(ty).unwrap()
        };
        Types::new(kinds.iter().map(ty).collect())
    }

    #[test]
    fn a_type_is_known_by_all_its_names() {
        let types = types(&[("platform_component", "platform_components"), ("network_policy", "network_policies")]);
        for name in ["platform_component", "platform-components", "Platform_Components", "component", "components"] {
            assert_eq!(types.by_name(name).map(|ty| ty.kind.as_str()), Some("platform_component"), "{name}");
        }
        for name in ["network-policy", "network_policies", "policy", "policies"] {
            assert_eq!(types.by_name(name).map(|ty| ty.kind.as_str()), Some("network_policy"), "{name}");
        }
        assert!(types.by_name("platform").is_none());
    }

    #[test]
    fn a_last_word_that_two_types_share_names_none() {
        let types = types(&[("network_policy", "network_policies"), ("backup_policy", "backup_policies")]);
        assert!(types.by_name("policy").is_none());
        assert!(types.by_name("backup_policy").is_some());
    }
}
