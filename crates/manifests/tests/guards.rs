//! Missing records never delete anything on a cluster: each ResourceSet has the guard, and each provider accepts all inputs, in the
//! bundle and in the files.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use manifests::{Bootstrap, Identity, tree};
use model::{Registry, Value, yaml};
use serde_json::json;

fn registry() -> Registry {
    Registry::built_in().unwrap()
}

fn objects(text: &str) -> Vec<Value> {
    yaml::read_all(text).unwrap().into_iter().map(|document| document.value).collect()
}

/// All objects of the bundle of a cluster and of the files for all clusters, each with its source.
fn installed() -> Vec<(String, Value)> {
    let bundle = Bootstrap {
        identity: Identity { name: "one".to_owned(), dns: "one.example".to_owned(), environment: "dev".to_owned() },
        api_url: "https://fleet.example.com".parse().unwrap(),
        interval: "5m".parse().unwrap(),
        cert_secret: None,
        flux_instance: true,
    };
    let bundle = ("bundle".to_owned(), bundle.write(&registry()).unwrap());
    let files = tree(&registry()).unwrap().into_iter().map(|file| (file.path, file.text));
    let all = [bundle].into_iter().chain(files);
    all.flat_map(|(from, text)| objects(&text).into_iter().map(move |object| (from.clone(), object))).collect()
}

fn of_kind(kind: &str) -> Vec<(String, Value)> {
    installed().into_iter().filter(|(_, object)| object["kind"] == kind).collect()
}

/// Flux Operator's name for a provider in a template.
fn input_name(provider: &str) -> String {
    format!("inputs.{}", provider.replace('-', "_"))
}

#[test]
fn every_resource_set_renders_even_without_records() {
    let sets = of_kind("ResourceSet");
    // A bundle has those of the three built-in types and phone-home, and so has the tree.
    assert_eq!(sets.len(), 2 * 4, "{:?}", sets.iter().map(|(from, _)| from).collect::<Vec<_>>());
    for (from, set) in sets {
        let (name, spec) = (set["metadata"]["name"].as_str().unwrap(), &set["spec"]);
        assert_eq!(spec["inputStrategy"], json!({"name": "Permute"}), "{from} {name}");
        assert_eq!(spec["inputs"], json!([{"guard": true}]), "{from} {name}: one inline input, with nothing to render");
        assert_eq!(spec["inputsFrom"].as_array().map(Vec::len), Some(1), "{from} {name}: one provider");
        let provider =
            spec["inputsFrom"][0]["name"].as_str().expect("by its name: a selector that finds none is empty");
        assert_eq!(spec["inputsFrom"][0], json!({"name": provider}), "{from} {name}");
        let answered = json!({
            "apiVersion": "fluxcd.controlplane.io/v1", "kind": "ResourceSetInputProvider", "name": provider,
            "namespace": "flux-system", "ready": true, "readyExpr": "has(status.lastExportedRevision)"
        });
        assert!(spec["dependsOn"].as_array().unwrap().contains(&answered), "{from} {name}");
    }
}

/// A provider without records is missing in the inputs: its name is then the ResourceSet's own input, if the two have the same
/// name, or undefined.
#[test]
fn the_template_of_a_type_fails_before_it_renders_anything_without_a_record() {
    let is_type = |set: &Value| set["metadata"]["name"] != "phone-home";
    let sets: Vec<_> = of_kind("ResourceSet").into_iter().filter(|(_, set)| is_type(set)).collect();
    assert_eq!(sets.len(), 2 * 3);
    for (from, set) in sets {
        let provider = set["spec"]["inputsFrom"][0]["name"].as_str().unwrap();
        let template = set["spec"]["resourcesTemplate"].as_str().unwrap();
        let guard = format!(
            "<<- $in := {} >>\n\
             <<- if ne $in.provider.kind \"ResourceSetInputProvider\" >>\n\
             << fail \"the API gave no record: nothing is changed\" >>\n\
             <<- end >>\n\
             <<- if not (get $in \"none\") >>\n",
            input_name(provider)
        );
        let rest = template.strip_prefix(&guard).unwrap_or_else(|| panic!("{from} {provider} begins with\n{template}"));
        assert!(rest.contains("kind: "), "{from} {provider}: what is guarded renders objects");
        assert!(rest.trim_end().ends_with("<<- end >>"), "{from} {provider}");
    }
}

/// A scenario of `e2e` tests the expression; without `ready` it would not be evaluated.
#[test]
fn the_resource_set_of_a_type_waits_until_its_deletions_are_settled() {
    for (from, set) in of_kind("ResourceSet").into_iter().filter(|(_, set)| set["metadata"]["name"] != "phone-home") {
        let needs = set["spec"]["dependsOn"].as_array().unwrap();
        let itself = needs.iter().find(|it| it["kind"] == "ResourceSet" && it["name"] == set["metadata"]["name"]);
        let itself = itself.unwrap_or_else(|| panic!("{from}: {needs:?}"));
        assert_eq!((&itself["namespace"], &itself["ready"]), (&json!("flux-system"), &json!(true)), "{from}");
        assert!(itself["readyExpr"].as_str().unwrap().contains("lastReconciledDuration"), "{from}");
    }
}

#[test]
fn phone_home_fails_without_the_identity() {
    for (from, set) in of_kind("ResourceSet").into_iter().filter(|(_, set)| set["metadata"]["name"] == "phone-home") {
        let template = set["spec"]["resourcesTemplate"].as_str().unwrap();
        // Its name differs from its provider's, so a key that is missing fails by itself.
        assert_eq!(set["spec"]["inputsFrom"][0]["name"], "cluster-identity", "{from}");
        assert!(template.starts_with("<<- $id := inputs.cluster_identity >>\n"), "{from}: {template}");
    }
}

#[test]
fn every_provider_accepts_all_inputs_and_requests_explicit_emptiness() {
    let check = |from: &str, provider: &Value| {
        assert_eq!(provider["spec"]["filter"], json!({"limit": 10_000}), "{from}: the default cuts at 100");
        let url = provider["spec"]["url"].as_str().unwrap();
        assert!(url.contains("?empty=explicit"), "{from}: {url}");
    };
    let providers = of_kind("ResourceSetInputProvider");
    let polling: Vec<_> = providers.iter().filter(|(_, it)| it["spec"]["type"] == "ExternalService").collect();
    assert_eq!(polling.len(), 3, "those with variables, in a file of the tree");
    for (from, provider) in polling {
        check(from, provider);
    }
    // The providers that phone-home creates are text in its template.
    let templates: Vec<_> =
        of_kind("ResourceSet").into_iter().filter(|(_, set)| set["metadata"]["name"] == "phone-home").collect();
    assert_eq!(templates.len(), 2);
    for (from, set) in templates {
        let template = set["spec"]["resourcesTemplate"].as_str().unwrap();
        let (_, provider) = template.split_once("---\n").unwrap();
        assert!(!provider.contains("---"), "{from}: one text is rendered for each type");
        // Without what is not YAML: lines of conditions, and values that are computed.
        let lines = provider.lines().filter(|line| !line.trim_start().starts_with("<<"));
        let text: Vec<_> = lines.map(|line| line.replace("<< ", "'<< ").replace(" >>", " >>'")).collect();
        check(&from, &objects(&text.join("\n"))[0]);
        assert!(
            template.contains("fluxcd.controlplane.io/prune: disabled"),
            "{from}: providers are never garbage-collected"
        );
    }
}
