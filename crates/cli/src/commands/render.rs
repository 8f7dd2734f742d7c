//! `render`: the manifests that a cluster makes of its inputs, by the program that makes them there.

use std::{
    io::{self, Write as _},
    process::{Command, ExitCode},
};

use api::TypeDescription;
use clap::Args;
use model::{Map, Value};
use serde_json::json;

use crate::{
    commands::inputs::list,
    completion,
    failure::{Failure, Result},
    output,
    session::Session,
};

#[derive(Args)]
pub(crate) struct Render {
    /// The cluster
    #[arg(add = completion::of(completion::clusters))]
    cluster: String,
    /// Only this type
    #[arg(value_name = "TYPE", add = completion::of(completion::types))]
    ty: Option<String>,
    /// As it was at this revision
    #[arg(long)]
    revision: Option<u64>,
    /// The Flux Operator's command line tool
    #[arg(long, value_name = "PROGRAM", default_value = "flux-operator")]
    flux_operator: String,
}

impl Render {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let clusters = session.clusters()?;
        for ty in session.definitions(self.ty.as_deref())? {
            let Some(template) = &ty.template else {
                let message = format!("the type {} has no template", ty.kind);
                if self.ty.is_some() {
                    return Err(Failure::failed(message).hint("a type says what its inputs become in x-flux.template"));
                }
                session.say(&message);
                continue;
            };
            let answer = session.client.inputs(&self.cluster, ty, self.revision);
            let answer = session.about(clusters, &self.cluster, answer)?;
            // Flux Operator refuses to render nothing; a cluster that has nothing is no failure.
            let is_component = ty.kind == model::ResourceType::COMPONENT;
            let renders = |input: &&Map| !is_component || input.get("enabled") != Some(&json!(false));
            let rendered: Vec<_> = list(&answer).filter(renders).collect();
            if rendered.is_empty() {
                session.say(&format!("{}: nothing to render", ty.path));
                continue;
            }
            output::print(&self.build(ty, template, &json!(rendered))?)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn build(&self, ty: &TypeDescription, template: &str, inputs: &Value) -> Result<String> {
        let set = json!({
            "apiVersion": "fluxcd.controlplane.io/v1",
            "kind": "ResourceSet",
            "metadata": {"name": ty.path, "namespace": "flux-system"},
            "spec": {"resourcesTemplate": format!("<<- $in := inputs >>\n{template}")}
        });
        let file = |text: String| -> io::Result<_> {
            let mut file = tempfile::NamedTempFile::new()?;
            file.write_all(text.as_bytes())?;
            Ok(file)
        };
        let (set, inputs) = (file(set.to_string())?, file(inputs.to_string())?);
        let mut command = Command::new(&self.flux_operator);
        command.args(["build", "resourceset", "-f"]).arg(set.path()).arg("--inputs-from").arg(inputs.path());
        let output = command.output().map_err(|error| {
            let message = format!("{} cannot be started: {error}", self.flux_operator);
            Failure::failed(message).hint(
                "render needs the Flux Operator's command line tool: \
                 https://fluxcd.control-plane.io/operator/cli/, or say where it is with --flux-operator",
            )
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().map(str::to_owned).collect();
            let message = format!("{} could not render {}", self.flux_operator, ty.path);
            return Err(Failure::failed(message).details(said));
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // One stream of documents, whichever type they came from.
        Ok(if text.starts_with("---") { text } else { format!("---\n{text}") })
    }
}
