//! The measured fleets: 20 components, 15 namespaces and 8 role bindings for each cluster, and patches for 5 of the
//! components. A cluster follows from its number alone, so a larger fleet has all the clusters of a smaller one, and two
//! runs have the same. Each fleet exists in three styles: clean, with references as the seed writes them, and full of problems.

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::Path,
};

use serde_json::{Map, Value, json};

use crate::catalogue::{
    self, BASE, COMPONENTS, NAMESPACES, ROLEBINDINGS, component_id, is_chart, namespace_id, rolebinding_id,
};

const COMPONENTS_OF_A_CLUSTER: usize = 20;
const NAMESPACES_OF_A_CLUSTER: usize = 15;
const ROLEBINDINGS_OF_A_CLUSTER: usize = 8;
const PATCHED_COMPONENTS: usize = 5;
/// Of a hundred references.
const OVERRIDES: usize = 10;

const REGIONS: [&str; 6] = ["eu-west", "eu-central", "us-east", "us-west", "ap-south", "ap-northeast"];
const ENVIRONMENTS: [&str; 4] = ["dev", "qa", "uat", "prod"];
const LOG_LEVELS: [&str; 3] = ["debug", "info", "warn"];

/// The style of a fleet's documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Clean,
    /// References repeat what they do not override: `"enabled": true, "oci_tag": null, "component_path": null`.
    SeedWritten,
    /// As an import may bring it: artifacts patched with the paths of Helm values, and dependencies that are not enabled. About
    /// 27 problems a cluster.
    Troubled,
}

impl Style {
    pub(crate) const ALL: [Self; 3] = [Self::Clean, Self::SeedWritten, Self::Troubled];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::SeedWritten => "seed-written",
            Self::Troubled => "troubled",
        }
    }
}

/// The resource types that clusters poll, by their paths.
pub(crate) const TYPES: [&str; 3] = ["platform-components", "namespaces", "rolebindings"];

pub(crate) fn cluster_id(number: usize) -> String {
    format!("{}-{}-{number:06}", REGIONS[number % REGIONS.len()], environment(number))
}

pub(crate) fn cluster_dns(number: usize) -> String {
    format!("{}.k8s.example.com", cluster_id(number))
}

/// The path of a poll.
pub(crate) fn poll(dns: &str, kind: &str) -> String {
    format!("/api/v2/flux/clusters/{dns}/{kind}")
}

fn environment(number: usize) -> &'static str {
    ENVIRONMENTS[number / REGIONS.len() % ENVIRONMENTS.len()]
}

/// The first cluster that has a component without overrides, with the catalogue's tag.
pub(crate) fn first_with(component: usize) -> usize {
    let plain = json!({"id": component_id(component), "enabled": true});
    let has =
        |number: &usize| cluster(*number, Style::Clean)["platform_components"].as_array().unwrap().contains(&plain);
    (0..1_000).find(has).unwrap()
}

/// Writes a fleet as a seed file.
pub(crate) fn write_seed(file: &Path, clusters: usize, style: Style) {
    let mut out = BufWriter::new(File::create(file).unwrap());
    for (plural, documents) in [
        ("platform_components", catalogue::components(style)),
        ("namespaces", catalogue::namespaces()),
        ("rolebindings", catalogue::rolebindings()),
    ] {
        let start = if plural == "platform_components" { '{' } else { ',' };
        write!(out, "{start}\"{plural}\":{}", Value::from(documents)).unwrap();
    }
    // One by one: a large fleet would take more memory than this program should use during a measurement.
    for number in 0..clusters {
        let start = if number == 0 { ",\"clusters\":[" } else { "," };
        write!(out, "{start}{}", cluster(number, style)).unwrap();
    }
    writeln!(out, "]}}").unwrap();
    out.flush().unwrap();
}

fn cluster(number: usize, style: Style) -> Value {
    let mut random = SeededRandom::new(number as u64);
    let mut components = random.draw(COMPONENTS_OF_A_CLUSTER, COMPONENTS);
    if !components.contains(&BASE) {
        components[0] = BASE;
    }
    let references: Vec<_> = components.iter().map(|&component| reference(component, style, &mut random)).collect();
    let ids = |numbers: Vec<usize>, id: fn(usize) -> String| -> Vec<Value> {
        numbers.into_iter().map(|number| json!({"id": id(number)})).collect()
    };
    let namespaces = ids(random.draw(NAMESPACES_OF_A_CLUSTER, NAMESPACES), namespace_id);
    let rolebindings = ids(random.draw(ROLEBINDINGS_OF_A_CLUSTER, ROLEBINDINGS), rolebinding_id);
    let patches: Map<_, _> = components[..PATCHED_COMPONENTS]
        .iter()
        .map(|&component| (component_id(component), patch(component, number, style, &mut random)))
        .collect();
    json!({
        "id": cluster_id(number),
        "cluster_name": cluster_id(number),
        "cluster_dns": cluster_dns(number),
        "environment": environment(number),
        "labels": {"region": REGIONS[number % REGIONS.len()], "wave": (number % 10).to_string()},
        "node_count": 3 + random.below(20),
        "vm_image": "ubuntu-24.04",
        "k0s_version": "v1.34.1+k0s.0",
        "platform_components": references,
        "namespaces": namespaces,
        "rolebindings": rolebindings,
        "patches": patches,
    })
}

fn reference(component: usize, style: Style, random: &mut SeededRandom) -> Value {
    let mut reference = json!({"id": component_id(component), "enabled": true});
    if style == Style::SeedWritten {
        reference["oci_tag"] = Value::Null;
        reference["component_path"] = Value::Null;
    }
    if random.below(100) < OVERRIDES {
        reference["oci_tag"] = format!("{}-hotfix.{}", catalogue::tag(component), random.below(9)).into();
    }
    reference
}

fn patch(component: usize, cluster: usize, style: Style, random: &mut SeededRandom) -> Value {
    let replicas = (1 + random.below(5)).to_string();
    let host = format!("{}.apps.example.com", cluster_id(cluster));
    if style == Style::Troubled {
        json!({
            "replica.count": replicas,
            "resources.requests.memory": format!("{}Mi", 64 << random.below(5)),
            "ingress.hosts[0].host": host,
        })
    } else if is_chart(component) {
        json!({
            "replicaCount": replicas,
            "resources.requests.memory": format!("{}Mi", 64 << random.below(5)),
            "ingress.hosts[0].host": host,
        })
    } else {
        json!({"REPLICAS": replicas, "LOG_LEVEL": LOG_LEVELS[random.below(LOG_LEVELS.len())], "DOMAIN": host})
    }
}

/// Random numbers that are the same every time.
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        // SplitMix64: neighbouring seeds have nothing in common.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// So many different numbers below a bound.
    fn draw(&mut self, count: usize, bound: usize) -> Vec<usize> {
        let mut numbers: Vec<_> = (0..bound).collect();
        for index in 0..count {
            let other = index + self.below(bound - index);
            numbers.swap(index, other);
        }
        numbers.truncate(count);
        numbers
    }
}
