//! `bootstrap`: everything that a new cluster needs to poll, ready for `kubectl apply`.
//!
//! The server says what; the token is put in here, since the server does not give tokens away.

use std::{
    fs,
    io::Read as _,
    net::IpAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use client::{Problem, Token};
use model::{Value, yaml};
use serde_json::json;

use crate::{
    completion, documents,
    failure::{Failure, Outcome, Result},
    files::{self, Privacy},
    output,
    session::{Access, Global, Session, settings},
};

#[derive(Args)]
#[expect(clippy::doc_markdown, reason = "these texts are the help")]
pub(crate) struct Bootstrap {
    /// The cluster
    #[arg(add = completion::of(completion::clusters))]
    cluster: String,
    // It has the id of the global flag and so takes its place: here it is the cluster that calls.
    #[arg(
        id = "api_url",
        long = "api-url",
        value_name = "URL",
        help = "What the cluster calls; plain http makes its providers insecure [default: FLUX_API_URL, or the context's; if that is of this machine, the server's PUBLIC_URL first]"
    )]
    cluster_url: Option<String>,
    /// The token that the cluster sends [default: FLUX_API_TOKEN, or the context's for reading]
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["token_file", "without_token"])]
    token: Option<String>,
    /// A file with that token; "-" is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "without_token")]
    token_file: Option<PathBuf>,
    /// Leave the Secret with the token out: something else makes it
    #[arg(long)]
    without_token: bool,
    /// How often the cluster polls, about: each gets up to a tenth less, so that the fleet spreads out
    #[arg(long, value_name = "TIME", default_value = "5m")]
    interval: String,
    /// A Secret on the cluster with ca.crt, or with a client's tls.crt and tls.key, for calling the API
    #[arg(long, value_name = "NAME")]
    cert_secret: Option<String>,
    /// Leave the FluxInstance out: Flux is installed already
    #[arg(long)]
    without_flux_instance: bool,
    /// Write a kustomize tree instead of printing
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

/// The namespace and the name of the Secret that providers refer to.
const SECRET: (&str, &str) = ("flux-system", "internal-api-token");

impl Bootstrap {
    pub(crate) fn run(&self, global: &Global) -> Result<ExitCode> {
        let global = global.without_api_url();
        let session = Session::open(&global, Access::Read).map_err(|failure| match self.cluster_url {
            Some(_) if failure.is(Outcome::Usage) => failure.hint(
                "--api-url is here what the cluster calls; which server is asked is said by FLUX_API_URL or a context",
            ),
            _ => failure,
        })?;
        let secret = if self.without_token { None } else { Some(secret(&self.token(&global)?)) };
        let clusters = session.clusters()?;
        let document = session.client.get(clusters, &self.cluster, None);
        let document = session.about(clusters, &self.cluster, document)?;
        let text = self.bundle(&session, documents::text(&document.body, "cluster_dns"))?;

        let read = yaml::read_all(&text).map_err(|error| Failure::failed(format!("the server's answer: {error}")))?;
        let mut objects: Vec<Value> = read.into_iter().map(|document| document.value).collect();
        // After who the cluster is, before what needs it.
        let place = objects.iter().position(|object| object["kind"] == "ResourceSet").unwrap_or(objects.len());
        objects.splice(place..place, secret);
        // What the server says about the whole, such as which types it has no template of.
        let remarks: String = text.split_inclusive('\n').take_while(|line| line.starts_with('#')).collect();
        match &self.output_dir {
            None => print(&remarks, &objects)?,
            Some(folder) => write(&session, folder, &remarks, &objects)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What the server says that the cluster needs, to call what was named, or what this tool calls. An address of this
    /// machine is a way to the server that a cluster hardly has, so the server is asked first whether it knows a better one.
    fn bundle(&self, session: &Session, dns: &str) -> Result<String> {
        let ask = |url: Option<&str>| session.client.bootstrap(dns, &self.query(url));
        let own = session.client.url();
        match &self.cluster_url {
            Some(url) => Ok(ask(Some(url))?),
            None if !is_local(own) => Ok(ask(Some(own))?),
            None => match ask(None) {
                Err(error) if error.problem().is_some_and(lacks_address) => {
                    session.say(&format!("note: {own} is this machine; --api-url says what the cluster can call"));
                    Ok(ask(Some(own))?)
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

    /// The token for the cluster. One that may write is never handed out unless it is named.
    fn token(&self, global: &Global) -> Result<Token> {
        let no_token = |place: &str| Failure::usage(format!("{place} is no token, which is one word of text"));
        if let Some(text) = &self.token {
            return Token::new(text).ok_or_else(|| no_token("--token"));
        }
        if let Some(path) = &self.token_file {
            let text = if path.as_os_str() == "-" {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).map(|_| text)
            } else {
                fs::read_to_string(path)
            };
            let text = text.map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
            return Token::new(&text).ok_or_else(|| no_token(&path.display().to_string()));
        }
        settings(global, Access::HandOut)?.0.read.ok_or_else(|| {
            Failure::usage("there is no token that the cluster could send").hint(
                "give one with --token-file, --token or FLUX_API_TOKEN, or leave the Secret out with --without-token",
            )
        })
    }
}

/// Whether a server does not know under which address it is called.
fn lacks_address(problem: &Problem) -> bool {
    problem.errors.iter().any(|error| error.pointer == "/api_url")
}

/// Whether an address leads to this machine.
fn is_local(url: &str) -> bool {
    let authority = url.split("://").nth(1).unwrap_or_default().split('/').next().unwrap_or_default();
    // An address of version 6 has colons of its own, and brackets around them.
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

fn print(remarks: &str, objects: &[Value]) -> Result<()> {
    let mut text = remarks.to_owned();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&output::as_yaml(object)?);
    }
    output::print(&text)
}

fn write(session: &Session, folder: &Path, remarks: &str, objects: &[Value]) -> Result<()> {
    let mut names = Vec::new();
    for object in objects {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_ascii_lowercase();
        let name = format!("{}-{}.yaml", word(&object["kind"]), word(&object["metadata"]["name"]));
        let privacy = if object["kind"] == "Secret" { Privacy::Secret } else { Privacy::Public };
        files::write(&folder.join(&name), &output::as_yaml(object)?, privacy)?;
        if privacy == Privacy::Secret {
            session.say(&format!("note: {name} holds the token; keep it out of Git, or use --without-token"));
        }
        names.push(name);
    }
    let kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": names
    });
    let text = format!("{remarks}{}", output::as_yaml(&kustomization)?);
    files::write(&folder.join("kustomization.yaml"), &text, Privacy::Public)?;
    session.say(&format!(
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
    fn addresses_of_this_machine_are_known() {
        for url in [
            "http://127.0.0.1:8080",
            "http://localhost",
            "https://localhost:1/x",
            "http://[::1]",
            "http://[::1]:80",
            "http://0.0.0.0:1",
        ] {
            assert!(is_local(url), "{url}");
        }
        for url in
            ["https://fleet.example.com", "http://127.example.com", "http://10.0.0.1:8080", "https://[2001:db8::1]"]
        {
            assert!(!is_local(url), "{url}");
        }
    }
}
