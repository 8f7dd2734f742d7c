//! `bootstrap`: all manifests that a new cluster needs to poll, ready for `kubectl apply`.
//!
//! The manifests come from the server. The Secret with the token is added here, because the server never returns
//! tokens.

use std::{
    fs,
    io::Read as _,
    net::IpAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use api::ProblemDetails;
use clap::Args;
use client::Token;
use model::{Value, yaml};
use serde_json::json;

use crate::{
    completion, documents,
    failure::{CliError, CliErrorKind, Result},
    files::{self, Privacy},
    output,
    session::{Access, GlobalArgs, Session, connection_settings},
};

#[derive(Args)]
#[allow(clippy::doc_markdown, reason = "these comments are the help texts")]
pub(crate) struct BootstrapArgs {
    /// Cluster id
    #[arg(add = completion::completer(completion::clusters))]
    cluster: String,
    // It has the id of the global flag and replaces it: here it is the URL that the cluster calls.
    #[arg(
        id = "api_url",
        long = "api-url",
        value_name = "URL",
        help = "URL of the server for the cluster; with http:// the providers are marked insecure \
                [default: FLUX_API_URL or the URL of the context; \
                if that is a loopback address, PUBLIC_URL of the server is preferred]"
    )]
    cluster_url: Option<String>,
    /// Token that the cluster sends [default: FLUX_API_TOKEN or the read token of the context]
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["token_file", "without_token"])]
    token: Option<String>,
    /// File that contains the token; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "without_token")]
    token_file: Option<PathBuf>,
    /// Omit the Secret with the token, because something else creates it
    #[arg(long)]
    without_token: bool,
    /// Poll interval; each cluster gets up to 10 % less, so that clusters do not poll at the same time
    #[arg(long, value_name = "TIME", default_value = "5m")]
    interval: String,
    /// Secret on the cluster with ca.crt, or with tls.crt and tls.key of a client, for calls to the server
    #[arg(long, value_name = "NAME")]
    cert_secret: Option<String>,
    /// Omit the FluxInstance, because Flux is already installed
    #[arg(long)]
    without_flux_instance: bool,
    /// Write a kustomize folder instead of printing
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

/// Namespace and name of the Secret that the providers refer to.
const SECRET: (&str, &str) = ("flux-system", "internal-api-token");

impl BootstrapArgs {
    pub(crate) fn run(&self, global: &GlobalArgs) -> Result<ExitCode> {
        let global = global.without_api_url();
        let session = Session::open(&global, Access::Read).map_err(|error| match self.cluster_url {
            Some(_) if error.is(CliErrorKind::Usage) => error.hint(
                "for bootstrap, --api-url is the URL that the cluster calls; \
                 select the server with FLUX_API_URL or --context",
            ),
            _ => error,
        })?;
        let secret = if self.without_token { None } else { Some(secret(&self.token(&global)?)) };
        let clusters = session.cluster_type()?;
        let document = session.client.get(clusters, &self.cluster, None);
        let document = session.with_suggestion(clusters, &self.cluster, document)?;
        let text = self.bundle(&session, documents::text(&document.body, "cluster_dns"))?;

        let read = yaml::read_all(&text).map_err(|error| CliError::failed(format!("the server's answer: {error}")))?;
        let mut objects: Vec<Value> = read.into_iter().map(|document| document.value).collect();
        // After the identity of the cluster, before the objects that need the Secret.
        let index = objects.iter().position(|object| object["kind"] == "ResourceSet").unwrap_or(objects.len());
        objects.splice(index..index, secret);
        // Comments of the server at the top, such as the types without a template.
        let comments: String = text.split_inclusive('\n').take_while(|line| line.starts_with('#')).collect();
        match &self.output_dir {
            None => print(&comments, &objects)?,
            Some(folder) => write(&session, folder, &comments, &objects)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The manifests of the server, for the URL that was given or that this tool uses. A cluster usually cannot reach a
    /// loopback address, so in that case the server is first asked for its own `PUBLIC_URL`.
    fn bundle(&self, session: &Session, dns: &str) -> Result<String> {
        let fetch = |url: Option<&str>| session.client.bootstrap(dns, &self.query(url));
        let own = session.client.url();
        match &self.cluster_url {
            Some(url) => Ok(fetch(Some(url))?),
            None if !is_loopback(own) => Ok(fetch(Some(own))?),
            None => match fetch(None) {
                Err(error) if error.problem().is_some_and(lacks_public_url) => {
                    session.message(&format!(
                        "warning: {own} is a loopback address; set the URL that the cluster can reach with --api-url"
                    ));
                    Ok(fetch(Some(own))?)
                }
                answer => Ok(answer?),
            },
        }
    }

    fn query(&self, url: Option<&str>) -> Vec<(String, String)> {
        let mut query = vec![
            ("interval".to_owned(), self.interval.clone()),
            ("flux_instance".to_owned(), (!self.without_flux_instance).to_string()),
        ];
        query.extend(url.map(|url| ("api_url".to_owned(), url.to_owned())));
        query.extend(self.cert_secret.iter().map(|name| ("cert_secret".to_owned(), name.clone())));
        query
    }

    /// The token for the cluster. A write token is only used if it is given explicitly.
    fn token(&self, global: &GlobalArgs) -> Result<Token> {
        let invalid = |source: &str| {
            CliError::usage(format!("{source} is not a valid token: a token is one word of printable ASCII characters"))
        };
        if let Some(text) = &self.token {
            return Token::new(text).ok_or_else(|| invalid("--token"));
        }
        if let Some(path) = &self.token_file {
            let text = if path.as_os_str() == "-" {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).map(|_| text)
            } else {
                fs::read_to_string(path)
            };
            let text = text.map_err(|error| CliError::failed(format!("{}: {error}", path.display())))?;
            return Token::new(&text).ok_or_else(|| invalid(&path.display().to_string()));
        }
        connection_settings(global, Access::HandOut)?.0.read.ok_or_else(|| {
            CliError::usage("no read token for the cluster is configured")
                .hint("set one with --token-file, --token or FLUX_API_TOKEN, or omit the Secret with --without-token")
        })
    }
}

/// Whether the server has no `PUBLIC_URL`.
fn lacks_public_url(problem: &ProblemDetails) -> bool {
    problem.errors.iter().any(|error| error.pointer == "/api_url")
}

/// Whether the host of a URL is a loopback or unspecified address.
fn is_loopback(url: &str) -> bool {
    let authority = url.split("://").nth(1).unwrap_or_default().split('/').next().unwrap_or_default();
    // An IPv6 address contains colons and is enclosed in brackets.
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

fn print(comments: &str, objects: &[Value]) -> Result<()> {
    let mut text = comments.to_owned();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&output::as_yaml(object)?);
    }
    output::print(&text)
}

fn write(session: &Session, folder: &Path, comments: &str, objects: &[Value]) -> Result<()> {
    let mut names = Vec::new();
    for object in objects {
        let lowercase = |value: &Value| value.as_str().unwrap_or_default().to_ascii_lowercase();
        let name = format!("{}-{}.yaml", lowercase(&object["kind"]), lowercase(&object["metadata"]["name"]));
        let privacy = if object["kind"] == "Secret" { Privacy::Secret } else { Privacy::Public };
        files::write(&folder.join(&name), &output::as_yaml(object)?, privacy)?;
        if privacy == Privacy::Secret {
            session.message(&format!(
                "warning: {name} contains the token; do not commit it to Git, or use --without-token"
            ));
        }
        names.push(name);
    }
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": names
    });
    let text = format!("{comments}{}", output::as_yaml(&kustomization)?);
    files::write(&folder.join("kustomization.yaml"), &text, Privacy::Public)?;
    session.message(&format!(
        "wrote {}; apply it with kubectl apply --server-side -k {}",
        folder.display(),
        folder.display()
    ));
    Ok(())
}

fn secret(token: &Token) -> Value {
    let (namespace, name) = SECRET;
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "stringData": {"token": token.reveal()}
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_are_recognised() {
        for url in [
            "http://127.0.0.1:8080",
            "http://localhost",
            "https://localhost:1/x",
            "http://[::1]",
            "http://[::1]:80",
            "http://0.0.0.0:1",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        for url in
            ["https://fleet.example.com", "http://127.example.com", "http://10.0.0.1:8080", "https://[2001:db8::1]"]
        {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
