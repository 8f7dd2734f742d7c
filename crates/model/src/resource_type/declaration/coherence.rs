//! Whether the parts of a type's file fit one another: what the Flux block names is there, what it says can be kept on a
//! cluster, and no field takes a name that inputs need for themselves.

use super::{Declaration, FLUX, Refusal};
use crate::{ResourceType, Value, kubernetes, yaml::child};

pub(super) fn check(declaration: &Declaration) -> Result<(), Refusal> {
    check_values(declaration)?;
    check_names(declaration)?;
    check_fixed(declaration)?;
    check_cluster_side(declaration)?;
    check_extensions(&declaration.schema, &declaration.schema_pointer)?;
    check_needed(declaration)?;
    // A cluster is no input of itself.
    if declaration.kind.as_str() == ResourceType::CLUSTER { Ok(()) } else { check_taken(declaration) }
}

/// Whether what clusters may say in a reference fits the type: by the cluster's own schema or, where that has no such list, by
/// the type's file.
pub(super) fn check_reference(declaration: &Declaration, reference: &Value) -> Result<(), Refusal> {
    let at = || child(FLUX, "list");
    let refuse = |name: &str, rule: &str| {
        let list = &declaration.list;
        Refusal::new(
            at(),
            format!("references in the list \"{list}\" of a cluster have the field \"{name}\", and {rule}"),
        )
    };
    let properties = || reference["properties"].as_object().into_iter().flatten();
    for name in taken(declaration) {
        if properties().any(|(field, _)| field == name) {
            return Err(refuse(name, "that is a name that inputs need for themselves"));
        }
    }
    for nest in &declaration.nests {
        if properties().any(|(field, _)| *field == nest.name) {
            return Err(refuse(&nest.name, "the type's x-flux.nest gives that name to an object"));
        }
    }
    if let Some(keyword) = open_keyword(reference) {
        let list = &declaration.list;
        let rule =
            format!("references in the list \"{list}\" of a cluster name all their fields, so they have no {keyword}");
        return Err(Refusal::new(at(), rule));
    }
    properties().try_for_each(|(name, field)| value_rule(name, field).map_or(Ok(()), |rule| Err(refuse(name, rule))))
}

/// The keyword by which a schema lets in fields that it does not name, so that nobody knows what they do to a template.
fn open_keyword(schema: &Value) -> Option<&'static str> {
    let is_open = schema.get("additionalProperties").is_some_and(|rest| *rest != Value::Bool(false));
    let has_patterns = schema.get("patternProperties").is_some();
    is_open.then_some("additionalProperties").or(has_patterns.then_some("patternProperties"))
}

/// The values that fields may have by default, and the type of the one field that every template looks at.
fn check_values(declaration: &Declaration) -> Result<(), Refusal> {
    if let Some(keyword) = open_keyword(&declaration.schema) {
        let rule =
            "a document names all its fields: what it does not name may be a name that inputs need for themselves";
        return Err(Refusal::new(child(&declaration.schema_pointer, keyword), rule));
    }
    let properties = declaration.schema["properties"].as_object().into_iter().flatten();
    let mut broken = properties.filter_map(|(name, field)| Some((name, value_rule(name, field)?)));
    broken.next().map_or(Ok(()), |(name, rule)| {
        let pointer = child(&child(&declaration.schema_pointer, "properties"), name);
        Err(Refusal::new(pointer, rule))
    })
}

/// The rule that the schema of a field breaks.
fn value_rule(name: &str, field: &Value) -> Option<&'static str> {
    let default = field.get("default");
    match name {
        "id" if default.is_some() => Some("an id has no default: all documents would have the same one"),
        // A template takes 0, an empty text and null for false, and a plan would not know.
        "enabled" if field["type"] != "boolean" => Some("\"enabled\" is a boolean"),
        _ if default.is_some_and(Value::is_null) => Some("null is no default; leave the default out"),
        "enabled" if default.is_some_and(|default| !default.is_boolean()) => Some("its default is true or false"),
        _ => None,
    }
}

/// Whether the type has a field.
fn has(declaration: &Declaration, name: &str) -> bool {
    !declaration.schema["properties"][name].is_null()
}

/// Whether clusters may say a field in a reference.
fn is_said_by_references(declaration: &Declaration, name: &str) -> bool {
    !declaration.reference["properties"][name].is_null()
}

fn known(declaration: &Declaration, name: &str, pointer: &str) -> Result<(), Refusal> {
    if has(declaration, name) {
        Ok(())
    } else {
        Err(Refusal::new(pointer, format!("\"{name}\" is not a field of the type")))
    }
}

/// Every name in the block is that of a field.
fn check_names(declaration: &Declaration) -> Result<(), Refusal> {
    for (at, name) in declaration.fields.iter().flatten().enumerate() {
        known(declaration, name, &format!("{FLUX}/fields/{at}"))?;
    }
    for nest in &declaration.nests {
        let pointer = child(&child(FLUX, "nest"), &nest.name);
        for name in &nest.fields {
            known(declaration, name, &pointer)?;
        }
        if has(declaration, &nest.name) {
            return Err(Refusal::new(pointer, format!("\"{}\" is already a field of the type", nest.name)));
        }
    }
    declaration.ordered_by.iter().try_for_each(|name| known(declaration, name, &child(FLUX, "ordered_by")))
}

/// What is fixed can be let go by a field that is true or false, and is the same for all clusters.
fn check_fixed(declaration: &Declaration) -> Result<(), Refusal> {
    for (name, unless) in &declaration.fixed {
        let pointer = child(&child(FLUX, "fixed"), name);
        known(declaration, name, &pointer)?;
        known(declaration, unless, &pointer)?;
        if declaration.schema["properties"][unless]["type"] != "boolean" {
            return Err(Refusal::new(pointer, format!("\"{unless}\" is not true or false")));
        }
        if is_said_by_references(declaration, name) {
            return Err(Refusal::new(pointer, format!("a reference may say \"{name}\", so it is not fixed")));
        }
    }
    Ok(())
}

/// What clusters make of it.
fn check_cluster_side(declaration: &Declaration) -> Result<(), Refusal> {
    if declaration.template.as_ref().is_some_and(|template| template.trim().is_empty()) {
        let rule = "an empty template would let clusters delete everything";
        return Err(Refusal::new(child(FLUX, "template"), rule));
    }
    let is_definition = |name: &String| kubernetes::is_dns_name(name) && name.contains('.');
    if let Some(at) = declaration.requires.iter().position(|name| !is_definition(name)) {
        let rule = "a custom resource definition is named PLURAL.GROUP, such as helmreleases.helm.toolkit.fluxcd.io";
        return Err(Refusal::new(format!("{FLUX}/requires/{at}"), rule));
    }
    match declaration.reserved.iter().position(|name| name.trim_end_matches('*').contains('*')) {
        Some(at) => Err(Refusal::new(format!("{FLUX}/reserved/{at}"), "a '*' stands at the end only")),
        None => Ok(()),
    }
}

/// What the block speaks of reaches Flux.
fn check_needed(declaration: &Declaration) -> Result<(), Refusal> {
    let Some(only) = &declaration.fields else { return Ok(()) };
    let fixed = declaration.fixed.iter().flat_map(|(name, unless)| [name, unless]);
    let nested = declaration.nests.iter().flat_map(|nest| &nest.fields);
    match declaration.ordered_by.iter().chain(nested).chain(fixed).find(|name| !only.contains(name)) {
        Some(name) => {
            let rule = format!("\"{name}\" is needed and not among the fields");
            Err(Refusal::new(child(FLUX, "fields"), rule))
        }
        None => Ok(()),
    }
}

/// No field has a name that inputs need for themselves.
fn check_taken(declaration: &Declaration) -> Result<(), Refusal> {
    let is_nest = |name: &str| declaration.nests.iter().any(|nest| nest.name == name);
    for name in taken(declaration) {
        let pointer = match name {
            name if has(declaration, name) => child(&child(&declaration.schema_pointer, "properties"), name),
            name if is_nest(name) => child(&child(FLUX, "nest"), name),
            name if is_said_by_references(declaration, name) => child(&child(FLUX, "reference"), name),
            _ => continue,
        };
        return Err(Refusal::new(pointer, format!("\"{name}\" is a name that inputs need for themselves")));
    }
    Ok(())
}

/// The names that inputs need for themselves.
fn taken(declaration: &Declaration) -> Vec<&'static str> {
    // The operator overwrites `provider`; the others are ours.
    let mut taken = vec!["provider", "cluster", "none"];
    taken.extend(declaration.patchable.then_some(["patches", "values"]).into_iter().flatten());
    taken.extend(declaration.ordered_by.is_some().then_some("effective_depends_on"));
    taken
}

/// Whether our own words in a schema are ones that we know.
fn check_extensions(schema: &Value, pointer: &str) -> Result<(), Refusal> {
    let Value::Object(map) = schema else { return Ok(()) };
    for (name, value) in map {
        let pointer = child(pointer, name);
        match (name.as_str(), value) {
            ("x-kubernetes", value) if !["labels", "annotations"].map(Value::from).contains(value) => {
                return Err(Refusal::new(pointer, "x-kubernetes is \"labels\" or \"annotations\""));
            }
            ("x-rules", value) if !value.is_array() => {
                return Err(Refusal::new(pointer, "x-rules is a list of schemas"));
            }
            (_, value) => check_extensions(value, &pointer)?,
        }
    }
    Ok(())
}
