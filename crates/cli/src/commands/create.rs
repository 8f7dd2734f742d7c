//! `create`: creates a document and, with `--cluster`, references to it, as one change. With `--cluster`, an existing
//! document is accepted and left unchanged, because other clusters may use it too.

use std::{path::PathBuf, process::ExitCode, str::FromStr};

use api::{BatchWrite, TypeDescription};
use clap::Args;
use client::Edit;
use model::{Map, Unambiguous, Value};
use serde_json::json;

use crate::{
    commands::references,
    completion,
    consent::{ChangeRequest, Confirm, ConsentArgs},
    documents::{self, brief},
    failure::{CliError, CliErrorKind, Result},
    files,
    plan::counted,
    session::Session,
    values::{KeyValue, string_object},
};

/// The clusters that get the document, and the flags for confirmation.
#[derive(Args)]
pub(crate) struct AttachArgs {
    /// Assign the document to this cluster in the same change; repeat the flag for several clusters
    #[arg(long, value_name = "CLUSTER", add = completion::completer(completion::clusters))]
    cluster: Vec<String>,
    #[command(flatten)]
    consent: ConsentArgs,
}

/// The flags of a command that creates a document of a built-in type.
pub(crate) trait DocumentArgs {
    /// The document: its id and the fields from the flags.
    fn body(&self) -> Result<Map>;
    fn attach(&self) -> &AttachArgs;
}

#[derive(Args)]
pub(crate) struct CreateNamespaceArgs {
    /// Name of the namespace
    id: String,
    /// Label; repeat the flag for several labels
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<KeyValue>,
    /// Annotation; repeat the flag for several annotations
    #[arg(long, value_name = "KEY=VALUE")]
    annotation: Vec<KeyValue>,
    #[command(flatten)]
    attach: AttachArgs,
}

impl CreateNamespaceArgs {
    pub(crate) fn new(
        id: String,
        label: Vec<KeyValue>,
        annotation: Vec<KeyValue>,
        cluster: String,
        consent: ConsentArgs,
    ) -> Self {
        Self { id, label, annotation, attach: AttachArgs { cluster: vec![cluster], consent } }
    }
}

impl DocumentArgs for CreateNamespaceArgs {
    fn body(&self) -> Result<Map> {
        let mut body = documents::with_id(&self.id);
        body.insert("labels".to_owned(), Value::Object(string_object(&self.label)?));
        body.insert("annotations".to_owned(), Value::Object(string_object(&self.annotation)?));
        Ok(body)
    }

    fn attach(&self) -> &AttachArgs {
        &self.attach
    }
}

#[derive(Args)]
#[allow(clippy::struct_field_names, reason = "the field names are the names of the flags")]
pub(crate) struct CreateComponentArgs {
    /// Id of the component
    id: String,
    /// Name of the Helm chart, or path in the OCI artifact
    #[arg(long, value_name = "PATH")]
    component_path: Option<String>,
    /// Version of the Helm chart
    #[arg(long, value_name = "VERSION")]
    component_version: Option<String>,
    /// URL of the Helm repository (https://) or of the OCI artifact (oci://)
    #[arg(long, value_name = "URL")]
    oci_url: Option<String>,
    /// Tag of the OCI artifact
    #[arg(long, value_name = "TAG")]
    oci_tag: Option<String>,
    /// Content of the OCI artifact: manifests or chart [default: manifests]
    #[arg(long, value_name = "CONTENT")]
    oci_content: Option<String>,
    /// Use plain HTTP for the registry
    #[arg(long)]
    oci_insecure: bool,
    /// Secret on the cluster with the credentials of the registry
    #[arg(long, value_name = "NAME")]
    oci_secret: Option<String>,
    /// Append the environment of the cluster to the path
    #[arg(long)]
    cluster_env_enabled: bool,
    /// Component that must be healthy first; repeat the flag for several components
    #[arg(long, value_name = "COMPONENT", add = completion::completer(completion::components))]
    depends_on: Vec<String>,
    #[command(flatten)]
    attach: AttachArgs,
}

impl DocumentArgs for CreateComponentArgs {
    fn body(&self) -> Result<Map> {
        let mut body = documents::with_id(&self.id);
        let texts = [
            ("component_path", &self.component_path),
            ("component_version", &self.component_version),
            ("oci_url", &self.oci_url),
            ("oci_tag", &self.oci_tag),
            ("oci_content", &self.oci_content),
            ("oci_secret", &self.oci_secret),
        ];
        body.extend(texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), json!(text.as_ref()?)))));
        let switches = [("oci_insecure", self.oci_insecure), ("cluster_env_enabled", self.cluster_env_enabled)];
        body.extend(switches.into_iter().filter(|(_, on)| *on).map(|(name, on)| (name.to_owned(), json!(on))));
        body.extend((!self.depends_on.is_empty()).then(|| ("depends_on".to_owned(), json!(self.depends_on))));
        Ok(body)
    }

    fn attach(&self) -> &AttachArgs {
        &self.attach
    }
}

/// `Group:platform-team`, `User:ada`, `ServiceAccount:flux-system/deployer`.
#[derive(Clone, Debug)]
struct SubjectArg(Value);

impl FromStr for SubjectArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const GROUP: &str = "rbac.authorization.k8s.io";
        match text.split_once(':') {
            Some((kind @ ("Group" | "User"), name)) if !name.is_empty() => {
                Ok(Self(json!({"kind": kind, "name": name, "apiGroup": GROUP})))
            }
            Some(("ServiceAccount", name)) => match name.split_once('/') {
                Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
                    Ok(Self(json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})))
                }
                _ => Err("a service account has the form ServiceAccount:NAMESPACE/NAME".to_owned()),
            },
            _ => Err("a subject has the form Group:NAME, User:NAME or ServiceAccount:NAMESPACE/NAME".to_owned()),
        }
    }
}

#[derive(Args)]
pub(crate) struct CreateRolebindingArgs {
    /// Name of the role binding
    id: String,
    /// Name of the cluster role
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Subject that gets the role: Group:NAME, User:NAME or ServiceAccount:NAMESPACE/NAME; repeat the flag for several
    /// subjects
    #[arg(long, value_name = "SUBJECT")]
    subject: Vec<SubjectArg>,
    #[command(flatten)]
    attach: AttachArgs,
}

impl DocumentArgs for CreateRolebindingArgs {
    fn body(&self) -> Result<Map> {
        let mut body = documents::with_id(&self.id);
        body.extend(self.role.as_ref().map(|role| ("role".to_owned(), json!(role))));
        let subjects = self.subject.iter().map(|SubjectArg(subject)| subject.clone()).collect();
        body.insert("subjects".to_owned(), Value::Array(subjects));
        Ok(body)
    }

    fn attach(&self) -> &AttachArgs {
        &self.attach
    }
}

#[derive(Args)]
pub(crate) struct CreateClusterArgs {
    /// Id of the cluster
    id: String,
    /// DNS name with which the cluster polls
    #[arg(long, value_name = "NAME")]
    dns: String,
    /// Environment, such as dev or prod
    #[arg(long)]
    environment: String,
    /// Name of the cluster in its inputs [default: the id]
    #[arg(long)]
    name: Option<String>,
    /// Label; repeat the flag for several labels
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<KeyValue>,
    /// Document to assign to the cluster, such as component=podinfo; repeat the flag for several documents
    #[arg(long, value_name = "TYPE=ID")]
    assign: Vec<KeyValue>,
    #[command(flatten)]
    consent: ConsentArgs,
}

impl CreateClusterArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let ty = session.cluster_type()?;
        let mut body = documents::with_id(&self.id);
        body.insert("cluster_name".to_owned(), json!(self.name.as_ref().unwrap_or(&self.id)));
        body.insert("cluster_dns".to_owned(), json!(self.dns));
        body.insert("environment".to_owned(), json!(self.environment));
        if !self.label.is_empty() {
            body.insert("labels".to_owned(), Value::Object(string_object(&self.label)?));
        }
        for KeyValue { key, value } in &self.assign {
            let list = session.definition_type(key)?.list.clone().unwrap_or_default();
            if let Value::Array(references) = body.entry(list).or_insert_with(|| json!([])) {
                references.push(json!({"id": value}));
            }
        }
        create_unassigned(session, ty, body, self.consent)
    }
}

/// A document of any type.
#[derive(Args)]
pub(crate) struct CreateDocumentArgs {
    /// Id of the document
    id: Option<String>,
    /// Field of the document; the value is JSON unless the field is a string; repeat the flag for several fields
    #[arg(long, value_name = "NAME=VALUE")]
    field: Vec<KeyValue>,
    /// File that contains the document; - is standard input
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["id", "field"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    attach: AttachArgs,
}

impl CreateDocumentArgs {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        let ty = session.resource_type(ty)?;
        let body = match (&self.id, &self.file) {
            (Some(id), _) => self.body_from_flags(ty, id)?,
            (None, Some(file)) => from_file(session, ty, file)?,
            (None, None) => return Err(CliError::usage("an id is required, or a file with -f")),
        };
        create_and_assign(session, ty, body, &self.attach)
    }

    fn body_from_flags(&self, ty: &TypeDescription, id: &str) -> Result<Map> {
        let mut body = documents::with_id(id);
        for KeyValue { key, value } in &self.field {
            let field = ty.field(key).ok_or_else(|| {
                let known: Vec<_> = ty.properties().into_iter().flat_map(Map::keys).map(String::as_str).collect();
                CliError::usage(format!("a {} has no field \"{key}\"; its fields are {}", ty.kind, known.join(", ")))
            })?;
            let value = match field["type"].as_str() {
                Some("string") => json!(value),
                kind => {
                    let parsed = serde_json::from_str(value).map_err(|error| {
                        CliError::usage(format!(
                            "--field {key}: the value is not valid JSON for type {}: {error}",
                            kind.unwrap_or("any")
                        ))
                    });
                    let Unambiguous(value) = parsed?;
                    value
                }
            };
            if body.insert(key.clone(), value).is_some() {
                return Err(CliError::usage(format!("--field {key} is given twice")));
            }
        }
        Ok(body)
    }
}

fn from_file(session: &Session, ty: &TypeDescription, file: &PathBuf) -> Result<Map> {
    let mut found = files::read(std::slice::from_ref(file), session.types()?, |_, _| {})?;
    match (found.pop(), found.is_empty()) {
        (Some(only), true) if only.ty.kind == ty.kind => Ok(only.body),
        (Some(only), true) => Err(CliError::usage(format!("the file contains a {}, not a {}", only.ty.kind, ty.kind))),
        _ => Err(CliError::usage("create takes exactly one document; for several documents, use apply -f")),
    }
}

/// Creates the document that the flags describe.
pub(crate) fn create_from_flags(session: &Session, ty: &str, flags: &impl DocumentArgs) -> Result<ExitCode> {
    create_and_assign(session, session.resource_type(ty)?, flags.body()?, flags.attach())
}

fn create_unassigned(session: &Session, ty: &TypeDescription, body: Map, consent: ConsentArgs) -> Result<ExitCode> {
    let name = documents::name(ty, &body);
    let (edit, done) = (Edit::create(ty, body), format!("{name} created"));
    // Another cluster may still poll under the DNS name, if it was released, and would then lose inputs.
    let confirm = if ty.is_cluster() { Confirm::OnLoss } else { Confirm::Never };
    consent.perform(session, ChangeRequest { edit, confirm, done, names: vec![name], named: Vec::new() })
}

/// Creates a document unless it exists, and assigns it to clusters.
fn create_and_assign(session: &Session, ty: &TypeDescription, body: Map, attach: &AttachArgs) -> Result<ExitCode> {
    if attach.cluster.is_empty() {
        return create_unassigned(session, ty, body, attach.consent);
    }
    if ty.is_cluster() {
        return Err(CliError::usage("a cluster cannot be assigned to a cluster"));
    }
    let (name, id) = (documents::name(ty, &body), documents::id(&body).to_owned());
    let existing = match session.client.get(ty, &id, None) {
        Ok(document) => Some(document.body),
        Err(error) => match CliError::from(error) {
            error if error.is(CliErrorKind::NotFound) => None,
            error => return Err(error),
        },
    };
    let mut writes = Vec::new();
    match &existing {
        Some(existing) => report_differences(session, &name, existing, &body),
        None => writes.push(BatchWrite::Create { kind: ty.kind.clone(), body }),
    }
    writes.extend(attach.cluster.iter().map(|cluster| references::assignment(ty, &id, cluster)));
    let what = if existing.is_some() { "exists" } else { "created" };
    let done = format!("{name} {what}, assigned to {}", counted(attach.cluster.len(), "cluster"));
    let clusters = session.cluster_type()?;
    let named = attach.cluster.iter().map(|id| (clusters, id.as_str())).collect();
    let edit = Edit::batch(writes);
    attach.consent.perform(session, ChangeRequest { edit, confirm: Confirm::Never, done, names: vec![name], named })
}

/// Reports the differences between an existing document, which is left unchanged, and the flags.
fn report_differences(session: &Session, name: &str, existing: &Map, requested: &Map) {
    let differs = |(field, value): &(&String, &Value)| {
        // An empty object or list comes from a flag that was not given.
        let empty = value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
        !empty && existing.get(*field) != Some(*value)
    };
    let differences: String = requested
        .iter()
        .filter(differs)
        .flat_map(|(field, value)| {
            let existing_value = existing.get(field).map_or("-".to_owned(), brief);
            ["\n  ".to_owned(), field.clone(), " is ".to_owned(), existing_value, ", not ".to_owned(), brief(value)]
        })
        .collect();
    if !differences.is_empty() {
        session.message(&format!("{name} already exists and is not changed:{differences}"));
    }
}
