//! Checks that the parts of a type's file are consistent: the fields that the Flux block names exist, a cluster can apply the
//! result, and no field has a name that inputs use themselves.

use super::{Declaration, FLUX, InvalidType};
use crate::{ResourceType, Value, kubernetes, yaml::child};

pub(super) fn check(declaration: &Declaration) -> Result<(), InvalidType> {
    check_values(declaration)?;
    check_names(declaration)?;
    check_fixed(declaration)?;
    check_cluster_side(declaration)?;
    check_extensions(&declaration.schema, &declaration.schema_pointer)?;
    check_needed(declaration)?;
    // A cluster has no inputs of the type cluster.
    if declaration.kind.as_str() == ResourceType::CLUSTER { Ok(()) } else { check_reserved_names(declaration) }
}

/// Checks that the schema of references fits the type. It comes from the cluster's own schema or, if that has no such list, from
/// the type's file.
pub(super) fn check_reference(declaration: &Declaration, reference: &Value) -> Result<(), InvalidType> {
    let at = || child(FLUX, "list");
    let refuse = |name: &str, rule: &str| {
        let list = &declaration.list;
        InvalidType::new(
            at(),
            format!("references in the list \"{list}\" of a cluster have the field \"{name}\", and {rule}"),
        )
    };
    let properties = || reference["properties"].as_object().into_iter().flatten();
    for name in reserved_names(declaration) {
        if properties().any(|(field, _)| field == name) {
            return Err(refuse(name, "inputs use that name themselves"));
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
        return Err(InvalidType::new(at(), rule));
    }
    properties().try_for_each(|(name, field)| value_rule(name, field).map_or(Ok(()), |rule| Err(refuse(name, rule))))
}

/// The keyword by which a schema allows fields that it does not name, whose effect on a template is unknown.
fn open_keyword(schema: &Value) -> Option<&'static str> {
    let is_open = schema.get("additionalProperties").is_some_and(|rest| *rest != Value::Bool(false));
    let has_patterns = schema.get("patternProperties").is_some();
    is_open.then_some("additionalProperties").or(has_patterns.then_some("patternProperties"))
}

/// Checks the defaults of fields, and the type of `enabled`, which every template reads.
fn check_values(declaration: &Declaration) -> Result<(), InvalidType> {
    if let Some(keyword) = open_keyword(&declaration.schema) {
        let rule =
            "a schema names all fields of a document: an unnamed field could have a name that inputs use themselves";
        return Err(InvalidType::new(child(&declaration.schema_pointer, keyword), rule));
    }
    let properties = declaration.schema["properties"].as_object().into_iter().flatten();
    let mut broken = properties.filter_map(|(name, field)| Some((name, value_rule(name, field)?)));
    broken.next().map_or(Ok(()), |(name, rule)| {
        let pointer = child(&child(&declaration.schema_pointer, "properties"), name);
        Err(InvalidType::new(pointer, rule))
    })
}

/// The rule that the schema of a field breaks.
fn value_rule(name: &str, field: &Value) -> Option<&'static str> {
    let default = field.get("default");
    match name {
        "id" if default.is_some() => Some("an id has no default: all documents would have the same one"),
        // For a template, 0, an empty text and null are false, which a plan would not know.
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

/// Whether references may have a field.
fn is_field_of_references(declaration: &Declaration, name: &str) -> bool {
    !declaration.reference["properties"][name].is_null()
}

fn known(declaration: &Declaration, name: &str, pointer: &str) -> Result<(), InvalidType> {
    if has(declaration, name) {
        Ok(())
    } else {
        Err(InvalidType::new(pointer, format!("\"{name}\" is not a field of the type")))
    }
}

/// Every name in the block is that of a field.
fn check_names(declaration: &Declaration) -> Result<(), InvalidType> {
    for (at, name) in declaration.fields.iter().flatten().enumerate() {
        known(declaration, name, &format!("{FLUX}/fields/{at}"))?;
    }
    for nest in &declaration.nests {
        let pointer = child(&child(FLUX, "nest"), &nest.name);
        for name in &nest.fields {
            known(declaration, name, &pointer)?;
        }
        if has(declaration, &nest.name) {
            return Err(InvalidType::new(pointer, format!("\"{}\" is already a field of the type", nest.name)));
        }
    }
    declaration.ordered_by.iter().try_for_each(|name| known(declaration, name, &child(FLUX, "ordered_by")))
}

/// A fixed field has a boolean field that allows its change, and is the same for all clusters.
fn check_fixed(declaration: &Declaration) -> Result<(), InvalidType> {
    for (name, unless) in &declaration.fixed {
        let pointer = child(&child(FLUX, "fixed"), name);
        known(declaration, name, &pointer)?;
        known(declaration, unless, &pointer)?;
        if declaration.schema["properties"][unless]["type"] != "boolean" {
            return Err(InvalidType::new(pointer, format!("\"{unless}\" is not true or false")));
        }
        if is_field_of_references(declaration, name) {
            return Err(InvalidType::new(pointer, format!("a reference may override \"{name}\", so it is not fixed")));
        }
    }
    Ok(())
}

/// Checks the settings for the cluster's side: template, required CRDs and reserved ids.
fn check_cluster_side(declaration: &Declaration) -> Result<(), InvalidType> {
    if declaration.template.as_ref().is_some_and(|template| template.trim().is_empty()) {
        let rule = "an empty template would let clusters delete everything";
        return Err(InvalidType::new(child(FLUX, "template"), rule));
    }
    let is_definition = |name: &String| kubernetes::is_dns_name(name) && name.contains('.');
    if let Some(at) = declaration.requires.iter().position(|name| !is_definition(name)) {
        let rule = "a custom resource definition is named PLURAL.GROUP, such as helmreleases.helm.toolkit.fluxcd.io";
        return Err(InvalidType::new(format!("{FLUX}/requires/{at}"), rule));
    }
    match declaration.reserved.iter().position(|name| name.trim_end_matches('*').contains('*')) {
        Some(at) => Err(InvalidType::new(format!("{FLUX}/reserved/{at}"), "a '*' is allowed only at the end")),
        None => Ok(()),
    }
}

/// Checks that the fields that the block uses reach Flux.
fn check_needed(declaration: &Declaration) -> Result<(), InvalidType> {
    let Some(only) = &declaration.fields else { return Ok(()) };
    let fixed = declaration.fixed.iter().flat_map(|(name, unless)| [name, unless]);
    let nested = declaration.nests.iter().flat_map(|nest| &nest.fields);
    match declaration.ordered_by.iter().chain(nested).chain(fixed).find(|name| !only.contains(name)) {
        Some(name) => {
            let rule = format!("\"{name}\" is needed, but is not listed in fields");
            Err(InvalidType::new(child(FLUX, "fields"), rule))
        }
        None => Ok(()),
    }
}

/// Checks that no field has a name that inputs use themselves.
fn check_reserved_names(declaration: &Declaration) -> Result<(), InvalidType> {
    let is_nest = |name: &str| declaration.nests.iter().any(|nest| nest.name == name);
    for name in reserved_names(declaration) {
        let pointer = match name {
            name if has(declaration, name) => child(&child(&declaration.schema_pointer, "properties"), name),
            name if is_nest(name) => child(&child(FLUX, "nest"), name),
            name if is_field_of_references(declaration, name) => child(&child(FLUX, "reference"), name),
            _ => continue,
        };
        return Err(InvalidType::new(pointer, format!("\"{name}\" is a name that inputs use themselves")));
    }
    Ok(())
}

/// The names that inputs use themselves.
fn reserved_names(declaration: &Declaration) -> Vec<&'static str> {
    // The operator overwrites `provider`; the others are ours.
    let mut names = vec!["provider", "cluster", "none"];
    names.extend(declaration.patchable.then_some(["patches", "values"]).into_iter().flatten());
    names.extend(declaration.ordered_by.is_some().then_some("effective_depends_on"));
    names
}

/// Checks our own keywords in a schema.
fn check_extensions(schema: &Value, pointer: &str) -> Result<(), InvalidType> {
    let Value::Object(map) = schema else { return Ok(()) };
    for (name, value) in map {
        let pointer = child(pointer, name);
        match (name.as_str(), value) {
            ("x-kubernetes", value) if !["labels", "annotations"].map(Value::from).contains(value) => {
                return Err(InvalidType::new(pointer, "x-kubernetes is \"labels\" or \"annotations\""));
            }
            ("x-rules", value) if !value.is_array() => {
                return Err(InvalidType::new(pointer, "x-rules is a list of schemas"));
            }
            (_, value) => check_extensions(value, &pointer)?,
        }
    }
    Ok(())
}
