//! `create`: a new document and, with `--cluster`, references to it, as one change. With `--cluster` it is enough that
//! the document is there: what is there already is left as it is, since other clusters may have it too.

use std::{path::PathBuf, process::ExitCode, str::FromStr};

use clap::Args;
use client::{BatchWrite, Edit, ResourceType};
use model::{Map, Unambiguous, Value};
use serde_json::json;

use crate::{
    commands::references,
    completion,
    consent::{Asked, Consent, Deed},
    documents::{self, brief},
    failure::{Failure, Outcome, Result},
    files,
    plan::counted,
    session::Session,
    settings::{Pair, object},
};

/// Which clusters get it, and whether only to try.
#[derive(Args)]
pub(crate) struct Attach {
    /// Give it to this cluster in the same change; may stand several times
    #[arg(long, value_name = "CLUSTER", add = completion::of(completion::clusters))]
    cluster: Vec<String>,
    #[command(flatten)]
    consent: Consent,
}

/// Flags that describe a document.
pub(crate) trait Describe {
    /// The document: its id and what is said of it.
    fn body(&self) -> Result<Map>;
    fn attach(&self) -> &Attach;
}

#[derive(Args)]
pub(crate) struct Namespace {
    /// The namespace's name
    id: String,
    /// A label; may stand several times
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<Pair>,
    /// An annotation; may stand several times
    #[arg(long, value_name = "KEY=VALUE")]
    annotation: Vec<Pair>,
    #[command(flatten)]
    attach: Attach,
}

impl Namespace {
    pub(crate) fn new(id: String, label: Vec<Pair>, annotation: Vec<Pair>, cluster: String, consent: Consent) -> Self {
        Self { id, label, annotation, attach: Attach { cluster: vec![cluster], consent } }
    }
}

impl Describe for Namespace {
    fn body(&self) -> Result<Map> {
        let mut body = documents::with_id(&self.id);
        body.insert("labels".to_owned(), Value::Object(object(&self.label)?));
        body.insert("annotations".to_owned(), Value::Object(object(&self.annotation)?));
        Ok(body)
    }

    fn attach(&self) -> &Attach {
        &self.attach
    }
}

#[derive(Args)]
#[expect(clippy::struct_field_names, reason = "they are the names of the flags")]
pub(crate) struct Component {
    /// The component's id in the catalogue
    id: String,
    /// The chart's name, or the path in the artifact
    #[arg(long, value_name = "PATH")]
    component_path: Option<String>,
    /// The chart's version
    #[arg(long, value_name = "VERSION")]
    component_version: Option<String>,
    /// The Helm repository (https://) or the artifact (oci://)
    #[arg(long, value_name = "URL")]
    oci_url: Option<String>,
    /// The artifact's tag
    #[arg(long, value_name = "TAG")]
    oci_tag: Option<String>,
    /// What is at an oci:// URL: manifests, or chart [default: manifests]
    #[arg(long, value_name = "CONTENT")]
    oci_content: Option<String>,
    /// The registry is reached over plain HTTP
    #[arg(long)]
    oci_insecure: bool,
    /// The Secret on the cluster with the credentials for it
    #[arg(long, value_name = "NAME")]
    oci_secret: Option<String>,
    /// Append the cluster's environment to the path
    #[arg(long)]
    cluster_env_enabled: bool,
    /// What must be healthy first; may stand several times
    #[arg(long, value_name = "COMPONENT", add = completion::of(completion::components))]
    depends_on: Vec<String>,
    #[command(flatten)]
    attach: Attach,
}

impl Describe for Component {
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

    fn attach(&self) -> &Attach {
        &self.attach
    }
}

/// `Group:platform-team`, `User:ada`, `ServiceAccount:flux-system/deployer`.
#[derive(Clone, Debug)]
struct Subject(Value);

impl FromStr for Subject {
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
                _ => Err("a service account is written as ServiceAccount:NAMESPACE/NAME".to_owned()),
            },
            _ => Err("a subject is written as Group:NAME, User:NAME or ServiceAccount:NAMESPACE/NAME".to_owned()),
        }
    }
}

#[derive(Args)]
pub(crate) struct Rolebinding {
    /// The role binding's name
    id: String,
    /// The cluster role that is bound
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Who gets it: Group:NAME, User:NAME or ServiceAccount:NAMESPACE/NAME; may stand several times
    #[arg(long, value_name = "SUBJECT")]
    subject: Vec<Subject>,
    #[command(flatten)]
    attach: Attach,
}

impl Describe for Rolebinding {
    fn body(&self) -> Result<Map> {
        let mut body = documents::with_id(&self.id);
        body.extend(self.role.as_ref().map(|role| ("role".to_owned(), json!(role))));
        let subjects = self.subject.iter().map(|Subject(subject)| subject.clone()).collect();
        body.insert("subjects".to_owned(), Value::Array(subjects));
        Ok(body)
    }

    fn attach(&self) -> &Attach {
        &self.attach
    }
}

#[derive(Args)]
pub(crate) struct Cluster {
    /// The cluster's id
    id: String,
    /// The name under which it polls
    #[arg(long, value_name = "NAME")]
    dns: String,
    /// The tier, such as dev or prod
    #[arg(long)]
    environment: String,
    /// The name that inputs carry [default: the id]
    #[arg(long)]
    name: Option<String>,
    /// A label; may stand several times
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<Pair>,
    /// What it gets, as TYPE=ID, such as component=podinfo; may stand several times
    #[arg(long, value_name = "TYPE=ID")]
    assign: Vec<Pair>,
    #[command(flatten)]
    consent: Consent,
}

impl Cluster {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let ty = session.clusters()?;
        let mut body = documents::with_id(&self.id);
        body.insert("cluster_name".to_owned(), json!(self.name.as_ref().unwrap_or(&self.id)));
        body.insert("cluster_dns".to_owned(), json!(self.dns));
        body.insert("environment".to_owned(), json!(self.environment));
        if !self.label.is_empty() {
            body.insert("labels".to_owned(), Value::Object(object(&self.label)?));
        }
        for Pair { key, value } in &self.assign {
            let list = session.definition(key)?.list.clone().unwrap_or_default();
            if let Value::Array(references) = body.entry(list).or_insert_with(|| json!([])) {
                references.push(json!({"id": value}));
            }
        }
        alone(session, ty, body, self.consent)
    }
}

/// A document of any type.
#[derive(Args)]
pub(crate) struct Any {
    /// Its id
    id: Option<String>,
    /// A field; JSON where the field is not text; may stand several times
    #[arg(long, value_name = "NAME=VALUE")]
    field: Vec<Pair>,
    /// A file with the document; - is standard input
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["id", "field"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    attach: Attach,
}

impl Any {
    pub(crate) fn run(&self, session: &Session, ty: &str) -> Result<ExitCode> {
        let ty = session.ty(ty)?;
        let body = match (&self.id, &self.file) {
            (Some(id), _) => self.described(ty, id)?,
            (None, Some(file)) => from_file(session, ty, file)?,
            (None, None) => return Err(Failure::usage("an id is needed, or a file with -f")),
        };
        attached(session, ty, body, &self.attach)
    }

    fn described(&self, ty: &ResourceType, id: &str) -> Result<Map> {
        let mut body = documents::with_id(id);
        for Pair { key, value } in &self.field {
            let field = ty.field(key).ok_or_else(|| {
                let known: Vec<_> = ty.properties().into_iter().flat_map(Map::keys).map(String::as_str).collect();
                Failure::usage(format!("a {} has no field \"{key}\"; it has {}", ty.kind, known.join(", ")))
            })?;
            let value = match field["type"].as_str() {
                Some("string") => json!(value),
                kind => {
                    let parsed = serde_json::from_str(value).map_err(|error| {
                        Failure::usage(format!("--field {key}: the field is JSON ({}): {error}", kind.unwrap_or("any")))
                    });
                    let Unambiguous(value) = parsed?;
                    value
                }
            };
            if body.insert(key.clone(), value).is_some() {
                return Err(Failure::usage(format!("--field {key} is said twice")));
            }
        }
        Ok(body)
    }
}

fn from_file(session: &Session, ty: &ResourceType, file: &PathBuf) -> Result<Map> {
    let mut found = files::read(std::slice::from_ref(file), session.types()?, |_, _| {})?;
    match (found.pop(), found.is_empty()) {
        (Some(only), true) if only.ty.kind == ty.kind => Ok(only.body),
        (Some(only), true) => Err(Failure::usage(format!("the file has a {}, not a {}", only.ty.kind, ty.kind))),
        _ => Err(Failure::usage("create takes one document; apply -f takes many")),
    }
}

/// Creates what flags describe.
pub(crate) fn described(session: &Session, ty: &str, flags: &impl Describe) -> Result<ExitCode> {
    attached(session, session.ty(ty)?, flags.body()?, flags.attach())
}

fn alone(session: &Session, ty: &ResourceType, body: Map, consent: Consent) -> Result<ExitCode> {
    let name = documents::name(ty, &body);
    let (edit, done) = (Edit::create(ty, body), format!("{name} created"));
    // Under a DNS name that was released, others may still poll.
    let asked = if ty.is_cluster() { Asked::IfSomethingGoes } else { Asked::Never };
    consent.perform(session, Deed { edit, asked, done, names: vec![name], named: Vec::new() })
}

/// Creates a document, or makes sure that it is there, and gives it to clusters.
fn attached(session: &Session, ty: &ResourceType, body: Map, attach: &Attach) -> Result<ExitCode> {
    if attach.cluster.is_empty() {
        return alone(session, ty, body, attach.consent);
    }
    if ty.is_cluster() {
        return Err(Failure::usage("a cluster is not given to a cluster"));
    }
    let (name, id) = (documents::name(ty, &body), documents::id(&body).to_owned());
    let known = match session.client.get(ty, &id, None) {
        Ok(known) => Some(known.body),
        Err(error) => match Failure::from(error) {
            failure if failure.is(Outcome::NotFound) => None,
            failure => return Err(failure),
        },
    };
    let mut writes = Vec::new();
    match &known {
        Some(known) => tell_differences(session, &name, known, &body),
        None => writes.push(BatchWrite::Create { kind: ty.kind.clone(), body }),
    }
    writes.extend(attach.cluster.iter().map(|cluster| references::assignment(ty, &id, cluster)));
    let what = if known.is_some() { "was there" } else { "created" };
    let done = format!("{name} {what}, assigned to {}", counted(attach.cluster.len(), "cluster"));
    let clusters = session.clusters()?;
    let named = attach.cluster.iter().map(|id| (clusters, id.as_str())).collect();
    let edit = Edit::batch(&writes);
    attach.consent.perform(session, Deed { edit, asked: Asked::Never, done, names: vec![name], named })
}

/// What is there is left as it is; a person who said otherwise should know.
fn tell_differences(session: &Session, name: &str, known: &Map, said: &Map) {
    let differs = |(field, value): &(&String, &Value)| {
        // Flags that were not given say nothing.
        let empty = value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
        !empty && known.get(*field) != Some(*value)
    };
    let differences: String = said
        .iter()
        .filter(differs)
        .flat_map(|(field, value)| {
            let there = known.get(field).map_or("-".to_owned(), brief);
            ["\n  ".to_owned(), field.clone(), " is ".to_owned(), there, ", not ".to_owned(), brief(value)]
        })
        .collect();
    if !differences.is_empty() {
        session.say(&format!("{name} is there and stays as it is:{differences}"));
    }
}
