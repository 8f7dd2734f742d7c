//! `render`: the manifests that a cluster creates from its inputs, rendered by the command line program of Flux
//! Operator.

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
    failure::{CliError, Result},
    output,
    session::Session,
};

#[derive(Args)]
pub(crate) struct RenderArgs {
    /// Cluster id
    #[arg(add = completion::completer(completion::clusters))]
    cluster: String,
    /// Render only this resource type
    #[arg(value_name = "TYPE", add = completion::completer(completion::types))]
    ty: Option<String>,
    /// Render the inputs of this revision
    #[arg(long)]
    revision: Option<u64>,
    /// Path of the command line program of Flux Operator
    #[arg(long, value_name = "PROGRAM", default_value = "flux-operator")]
    flux_operator: String,
}

impl RenderArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<ExitCode> {
        let clusters = session.cluster_type()?;
        for ty in session.definition_types(self.ty.as_deref())? {
            let Some(template) = &ty.template else {
                let message = format!("the type {} has no template", ty.kind);
                if self.ty.is_some() {
                    return Err(
                        CliError::failed(message).hint("the template of a type is x-flux.template in its type file")
                    );
                }
                session.message(&message);
                continue;
            };
            let answer = session.client.inputs(&self.cluster, ty, self.revision);
            let answer = session.with_suggestion(clusters, &self.cluster, answer)?;
            // Flux Operator refuses to render an empty list, but a cluster without inputs is not an error.
            let is_component = ty.kind == model::ResourceType::COMPONENT;
            let is_rendered = |input: &&Map| !is_component || input.get("enabled") != Some(&json!(false));
            let rendered: Vec<_> = list(&answer).filter(is_rendered).collect();
            if rendered.is_empty() {
                session.message(&format!("{}: nothing to render", ty.path));
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
            let message = format!("cannot start {}: {error}", self.flux_operator);
            CliError::failed(message).hint(
                "install the command line program of Flux Operator (https://fluxcd.control-plane.io/operator/cli/), \
                 or give its path with --flux-operator",
            )
        })?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let lines = stderr.lines().map(str::to_owned).collect();
            let message = format!("{} could not render {}", self.flux_operator, ty.path);
            return Err(CliError::failed(message).details(lines));
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // The documents of all types form one YAML stream.
        Ok(if text.starts_with("---") { text } else { format!("---\n{text}") })
    }
}
