//! Requests that look like those of the command line tool, with an error somewhere.
//!
//! Bodies follow the schemas that `GET /types` answers, so that many of them pass the first checks and reach the later ones;
//! ids are few, so that requests touch each other's documents. All randomness comes from one seed.

use model::Value;
use proptest::{
    collection::vec,
    prelude::*,
    sample::select,
    strategy::{BoxedStrategy, Union},
};
use serde_json::json;

use crate::{
    case::{BodyPart, Request},
    target::{encoded, text},
};

/// Ids that documents have, or could have.
const IDS: [&str; 10] = [
    "demo-cluster-01",
    "podinfo",
    "cert-manager",
    "dev-readers",
    "alpha",
    "beta",
    "gamma",
    "none",
    "Not_An.Id",
    "a..b/../c",
];

/// Names and values that are close to an edge of some rule.
const EDGE_CASES: [&str; 23] = [
    // The JSON library marks its own values by this name.
    "$serde_json::private::RawValue",
    "",
    "~1~0",
    "-",
    "$patch",
    "a.b[0].c",
    "a..b",
    "a[65536]",
    "a\\.b",
    "null",
    "true",
    "9007199254740993",
    "-1",
    "1e400",
    "*",
    "../..",
    "\u{0}",
    "\n\r\u{1b}[31m",
    "\u{202e}abc",
    "\u{feff}",
    "日本 🦀",
    "oci://registry.example/app",
    "demo-cluster-01.k8s.example.com",
];

fn id() -> impl Strategy<Value = String> {
    select(IDS.to_vec()).prop_map(str::to_owned)
}

fn edge_case() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => select(EDGE_CASES.to_vec()).prop_map(str::to_owned),
        2 => any::<String>(),
        1 => (1..5_000_usize).prop_map(|length| "k".repeat(length)),
    ]
}

/// Any JSON, also deep and wide.
fn anything() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        edge_case().prop_map(Value::from),
        id().prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((edge_case(), inner.clone()), 0..5).prop_map(|members| Value::Object(members.into_iter().collect())),
            vec((id(), inner), 0..4)
                .prop_map(|items| { items.into_iter().map(|(id, value)| json!({"id": id, "value": value})).collect() }),
        ]
    });
    // About as deep as a document may be, and as a parser goes.
    let deep = prop_oneof![56..70_usize, 118..132_usize].prop_map(|levels| {
        (0..levels).fold(json!(1), |inner, at| if at % 3 == 0 { json!([inner]) } else { json!({"a": inner}) })
    });
    let wide = (1..60_000_usize).prop_map(|items| json!(vec![0; items]));
    prop_oneof![30 => tree, 2 => deep, 1 => wide].boxed()
}

/// A value that usually matches a schema.
fn value_of(schema: &Value) -> BoxedStrategy<Value> {
    let good = match schema["type"].as_str() {
        Some("string") => match (schema["enum"].as_array(), schema.get("example")) {
            (Some(words), _) if !words.is_empty() => select(words.clone()).boxed(),
            (_, Some(example)) => prop_oneof![Just(example.clone()), id().prop_map(Value::from)].boxed(),
            _ => prop_oneof![4 => id(), 1 => edge_case()].prop_map(Value::from).boxed(),
        },
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("integer") => (-2..100_i64).prop_map(Value::from).boxed(),
        Some("array") => vec(value_of(&schema["items"]), 0..4).prop_map(Value::from).boxed(),
        Some("object") if schema["properties"].is_object() => fields_of(schema),
        Some("object") => {
            let name = prop_oneof![id(), edge_case()];
            vec((name, value_of(&schema["additionalProperties"])), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect()))
                .boxed()
        }
        _ => anything(),
    };
    prop_oneof![12 => good, 1 => anything()].boxed()
}

/// An object with the fields that a schema needs and some of the others.
fn fields_of(schema: &Value) -> BoxedStrategy<Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let fields: Vec<_> = schema["properties"].as_object().into_iter().flatten().collect();
    let field = |(name, schema): &(&String, &Value)| {
        let is_there = if required.contains(&json!(name)) { 0.97 } else { 0.3 };
        let name = (*name).clone();
        proptest::option::weighted(is_there, value_of(schema))
            .prop_map(move |value| value.map(|value| (name.clone(), value)))
    };
    let fields: Vec<_> = fields.iter().map(field).collect();
    let more = proptest::option::weighted(0.05, (edge_case(), anything()));
    (fields, more).prop_map(|(fields, more)| Value::Object(fields.into_iter().flatten().chain(more).collect())).boxed()
}

/// A pointer for a JSON Patch.
fn pointer() -> impl Strategy<Value = String> {
    let step = prop_oneof![
        6 => select(vec!["patches", "podinfo", "labels", "namespaces", "platform_components", "0", "1", "-", "id", "a", "x"])
            .prop_map(str::to_owned),
        1 => edge_case(),
    ];
    prop_oneof![
        12 => vec(step, 0..5).prop_map(|steps| steps.iter().fold(String::new(), |path, step| format!("{path}/{step}"))),
        1 => (1..2_000_usize).prop_map(|steps| "/a".repeat(steps)),
        1 => edge_case(),
    ]
}

fn json_patch() -> impl Strategy<Value = Value> {
    let operation = prop_oneof![
        (pointer(), anything()).prop_map(|(path, value)| json!({"op": "add", "path": path, "value": value})),
        (pointer(), anything()).prop_map(|(path, value)| json!({"op": "replace", "path": path, "value": value})),
        (pointer(), anything()).prop_map(|(path, value)| json!({"op": "test", "path": path, "value": value})),
        (pointer(), pointer()).prop_map(|(path, from)| json!({"op": "move", "path": path, "from": from})),
        (pointer(), pointer()).prop_map(|(path, from)| json!({"op": "copy", "path": path, "from": from})),
        pointer().prop_map(|path| json!({"op": "remove", "path": path})),
    ];
    // Copies of the document into itself, and levels around levels.
    let doubling = (1..40_usize).prop_map(|times| {
        let copies = (0..times).map(|_| json!({"op": "copy", "from": "/patches", "path": "/patches/x"}));
        copies.collect()
    });
    let digging = (1..300_usize).prop_map(|times| {
        let dig = |_| {
            [
                json!({"op": "add", "path": "/x", "value": {}}),
                json!({"op": "move", "from": "/patches", "path": "/x/y"}),
                json!({"op": "move", "from": "/x", "path": "/patches"}),
            ]
        };
        (0..times).flat_map(dig).collect()
    });
    prop_oneof![8 => vec(operation, 0..6).prop_map(Value::from), 1 => doubling, 1 => digging]
}

/// Parameters of all paths, and one that no path takes.
const PARAMETERS: [&str; 27] = [
    "dry_run",
    "expected_revision",
    "expected_epoch",
    "allow_removals",
    "cascade",
    "purge",
    "all",
    "label",
    "limit",
    "offset",
    "revision",
    "environment",
    "cluster_dns",
    "namespaces",
    "platform_components",
    "decommissioned",
    "shard",
    "before",
    "since",
    "until",
    "actor",
    "kind",
    "id",
    "rule",
    "empty",
    "role",
    "unknown",
];

/// Values that some parameter takes.
const VALUES: [&str; 9] = ["true", "false", "1", "0", "dev", "a=b", "podinfo", "explicit", "18446744073709551616"];

/// A value that a parameter takes or nearly takes, one of another parameter, or any.
fn parameter_value(name: &str) -> BoxedStrategy<String> {
    let own: &[&'static str] = match name {
        "shard" => {
            &["1/1", "1/2", "2/2", "1000/1000", "0/1", "2/1", "1/0", "1/1001", "+1/2", "1/2/3", "/", "1/4294967296"]
        }
        "allow_removals" | "limit" | "offset" => &["0", "1", "3", "1000000", "1000001", "-1", "+1", "1.0", "0x1", ""],
        "rule" => &[
            "missing-definition",
            "invalid-variable",
            "types-changed",
            "former-dns-polled",
            "unknown-kind",
            "Missing-Definition",
            "missing_definition",
            "",
        ],
        "kind" => {
            &["cluster", "namespaces", "platform-components", "resource_type", "former_dns", "Cluster", "namespac", ""]
        }
        "id" => &IDS,
        "actor" => &["crud-auth-token", "auth-token", "seed", "Seed", "crud%", "_", "' OR '1'='1", ""],
        "since" | "until" => &[
            "2026-01-31T12:00:00Z",
            "1970-01-01T00:00:00Z",
            "2026-01-31T12:00:00+14:00",
            "2026-01-31t12:00:00.123456789z",
            // The first and the last time that there is, and beyond.
            "-009999-01-02T01:59:59Z",
            "9999-12-30T22:00:00.999999999Z",
            "9999-12-31T23:59:59Z",
            "2026-06-30T23:59:60Z",
            "2026-02-30T12:00:00Z",
            "2026-01-31T12:00:00",
            "2026-01-31",
            "now",
        ],
        _ => &VALUES,
    };
    prop_oneof![
        6 => select(own.to_vec()).prop_map(str::to_owned),
        2 => select(VALUES.to_vec()).prop_map(str::to_owned),
        1 => edge_case(),
    ]
    .boxed()
}

fn query() -> BoxedStrategy<String> {
    query_of(&PARAMETERS)
}

/// A query with some of these parameters, none or anything.
fn query_of(names: &[&'static str]) -> BoxedStrategy<String> {
    let pair = select(names.to_vec())
        .prop_flat_map(|name| parameter_value(name).prop_map(move |value| format!("{name}={}", encoded(&value))));
    let raw = "[ -~]{0,30}".prop_map(|raw| raw.replace([' ', '#', '"', '<', '>', '\\', '^', '`', '{', '|', '}'], "%"));
    prop_oneof![
        5 => Just(String::new()),
        4 => vec(pair, 1..4).prop_map(|pairs| format!("?{}", pairs.join("&"))),
        1 => raw.prop_map(|raw| format!("?{raw}")),
    ]
    .boxed()
}

/// A list, usually with parameters that its path allows.
fn listing(path: &'static str, parameters: &[&'static str]) -> BoxedStrategy<Request> {
    prop_oneof![3 => query_of(parameters), 1 => query()]
        .prop_map(move |query| Request {
            method: "GET".to_owned(),
            path: format!("{path}{query}"),
            media: None,
            body: Vec::new(),
        })
        .boxed()
}

/// A body as it is, or damaged.
fn maybe_damaged(body: BoxedStrategy<Value>) -> BoxedStrategy<Vec<BodyPart>> {
    let whole = |value: Value| vec![BodyPart::Text(value.to_string())];
    let damaged = (body.clone(), any::<prop::sample::Index>(), edge_case()).prop_map(|(value, at, insert)| {
        let text = value.to_string();
        let at = text.floor_char_boundary(at.index(text.len() + 1));
        vec![BodyPart::Text(format!("{}{insert}{}", &text[..at], &text[at..]))]
    });
    let cut = (body.clone(), any::<prop::sample::Index>()).prop_map(|(value, at)| {
        let text = value.to_string();
        vec![BodyPart::Text(text[..text.floor_char_boundary(at.index(text.len() + 1))].to_owned())]
    });
    let huge = (select(vec!["[", "{\"a\":", "0,", "\"x\","]), 1..400_000_usize).prop_map(|(text, times)| {
        vec![BodyPart::Text("[".to_owned()), BodyPart::Repeat { text: text.to_owned(), times }]
    });
    prop_oneof![40 => body.prop_map(whole), 2 => damaged, 1 => cut, 1 => huge].boxed()
}

fn batch(types: &[Value]) -> BoxedStrategy<Value> {
    let kinds: Vec<_> = types.iter().map(|ty| text(ty, "kind").to_owned()).collect();
    let document = Union::new(types.iter().map(|ty| {
        let kind = text(ty, "kind").to_owned();
        fields_of(&ty["schema"]).prop_map(move |body| (kind.clone(), body))
    }));
    let write = prop_oneof![
        document.clone().prop_map(|(kind, body)| json!({"op": "create", "kind": kind, "body": body})),
        (document.clone(), id()).prop_map(|((kind, body), id)| json!({"op": "put", "kind": kind, "id": id, "body": body})),
        (document, id()).prop_map(|((kind, body), id)| json!({"op": "patch", "kind": kind, "id": id, "body": body})),
        (select(kinds.clone()), id(), any::<bool>())
            .prop_map(|(kind, id, cascade)| json!({"op": "delete", "kind": kind, "id": id, "cascade": cascade})),
        id().prop_map(|id| json!({"op": "restore", "id": id})),
        id().prop_map(|id| json!({"op": "purge", "id": id})),
        (id(), select(kinds.clone()), id(), anything())
            .prop_map(|(cluster, kind, id, body)| json!({"op": "assign", "cluster": cluster, "kind": kind, "id": id, "body": body})),
        (id(), select(kinds), id())
            .prop_map(|(cluster, kind, id)| json!({"op": "unassign", "cluster": cluster, "kind": kind, "id": id})),
        anything(),
    ];
    vec(write, 0..6).prop_map(|writes| json!({"writes": writes})).boxed()
}

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const JSON: &str = "application/json";

/// A request of any kind.
pub(crate) fn request(types: &[Value]) -> BoxedStrategy<Request> {
    let mut all = vec![
        with_body("POST", Just("/batch".to_owned()).boxed(), &[JSON], batch(types)),
        with_body("PUT", cluster_path("/patches/"), &[JSON], fields()),
        with_body("PATCH", cluster_path("/patches/"), &[JSON], fields()),
        without_body("DELETE", cluster_path("/patches/")),
        without_body("DELETE", cluster_path("/former_dns/")),
        without_body("POST", id().prop_map(|id| format!("/clusters/{}/restore", encoded(&id))).boxed()),
        without_body("POST", (0..30_u64).prop_map(|revision| format!("/changes/{revision}/revert")).boxed()),
        without_body("GET", (0..30_u64).prop_map(|revision| format!("/changes/{revision}")).boxed()),
        listing("/changes", &["kind", "id", "actor", "since", "until", "before", "limit"]),
        listing("/problems", &["rule", "kind", "id", "limit", "offset"]),
        listing("/api/v2/flux/clusters", &["environment", "label", "shard", "empty"]),
        without_body("POST", select(vec!["/types/accept", "/store/accept"]).prop_map(str::to_owned).boxed()),
        without_body(
            "GET",
            vec(prop_oneof![id(), edge_case()], 1..5)
                .prop_map(|parts| parts.iter().fold(String::new(), |path, part| format!("{path}/{}", encoded(part))))
                .boxed(),
        ),
    ];
    for ty in types {
        let (plural, schema) = (text(ty, "plural").to_owned(), &ty["schema"]);
        let list = Just(format!("/{plural}")).boxed();
        let one = id().prop_map(move |id| format!("/{plural}/{}", encoded(&id))).boxed();
        let document = fields_of(schema);
        all.extend([
            with_body("POST", list.clone(), &[JSON], document.clone()),
            with_body("PATCH", list.clone(), &[STRATEGIC, JSON, MERGE], document.clone()),
            with_body("PUT", one.clone(), &[JSON], document.clone()),
            with_body("PATCH", one.clone(), &[MERGE, STRATEGIC, JSON, "text/plain"], document),
            with_body("PATCH", one.clone(), &[JSON_PATCH], json_patch().boxed()),
            without_body("DELETE", one.clone()),
            without_body("GET", list),
            without_body("GET", one.clone()),
            without_body("GET", one.clone().prop_map(|one| format!("{one}/history")).boxed()),
            with_body(
                "POST",
                one.prop_map(|one| format!("{one}/revert")).boxed(),
                &[JSON],
                prop_oneof![3 => (0..30_u64).prop_map(|revision| json!({"revision": revision})), 1 => anything()]
                    .boxed(),
            ),
        ]);
        if let Some(name) = ty["list"].as_str() {
            let reference = cluster_path(&format!("/{name}/"));
            all.push(with_body("PUT", reference.clone(), &[JSON], fields()));
            all.push(without_body("DELETE", reference));
        }
    }
    Union::new(all).boxed()
}

/// Fields of a cluster's patch or reference.
fn fields() -> BoxedStrategy<Value> {
    let name = prop_oneof![
        select(vec!["enabled", "oci_tag", "ui.color", "replicaCount"]).prop_map(str::to_owned),
        edge_case()
    ];
    let members = vec((name, anything()), 0..4).prop_map(|members| Value::Object(members.into_iter().collect()));
    prop_oneof![8 => members, 1 => anything()].boxed()
}

fn cluster_path(between: &str) -> BoxedStrategy<String> {
    let between = between.to_owned();
    let last = prop_oneof![3 => id(), 1 => edge_case()];
    (id(), last).prop_map(move |(id, last)| format!("/clusters/{}{between}{}", encoded(&id), encoded(&last))).boxed()
}

fn without_body(method: &'static str, path: BoxedStrategy<String>) -> BoxedStrategy<Request> {
    (path, query())
        .prop_map(move |(path, query)| Request {
            method: method.to_owned(),
            path: path + &query,
            media: None,
            body: Vec::new(),
        })
        .boxed()
}

fn with_body(
    method: &'static str,
    path: BoxedStrategy<String>,
    media: &[&'static str],
    body: BoxedStrategy<Value>,
) -> BoxedStrategy<Request> {
    (path, query(), select(media.to_vec()), maybe_damaged(body))
        .prop_map(move |(path, query, media, body)| Request {
            method: method.to_owned(),
            path: path + &query,
            media: Some(media.to_owned()),
            body,
        })
        .boxed()
}

/// A YAML text: a value as we write it, or with a typical error.
pub(crate) fn yaml() -> BoxedStrategy<Vec<BodyPart>> {
    let written = anything().prop_map(|value| model::yaml::write(&value).unwrap_or_default());
    let mark = select(vec![
        "- ", "? ", ": ", "&a ", "*a ", "!!str ", "[", "{", "]", "|\n", ">", "%", "---\n", "<<: *a\n", "\t", "\"", "'",
        "#",
    ]);
    let damaged = (written.clone(), any::<prop::sample::Index>(), mark.clone()).prop_map(|(text, at, mark)| {
        let at = text.floor_char_boundary(at.index(text.len() + 1));
        vec![BodyPart::Text(format!("{}{mark}{}", &text[..at], &text[at..]))]
    });
    let repeated = (mark, 1..20_000_usize).prop_map(|(text, times)| {
        vec![
            BodyPart::Text("a: ".to_owned()),
            BodyPart::Repeat { text: text.to_owned(), times },
            BodyPart::Text("x\n".to_owned()),
        ]
    });
    let aliases = (1..40_usize, 1..12_usize).prop_map(|(levels, width)| {
        let line = |level: usize| match level {
            0 => "a0: &a0 [x, x]\n".to_owned(),
            level => format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); width].join(", ")),
        };
        vec![BodyPart::Text((0..levels).map(line).collect())]
    });
    let aliased_keys = (1..8_usize, 1..9_usize, select(vec!["x", "''", "[]"])).prop_map(|(levels, width, leaf)| {
        let item = |level: usize| match level {
            0 => leaf.to_owned(),
            level => format!("{{? *a{} : x}}", level - 1),
        };
        let line = |level: usize| format!("a{level}: &a{level} [{}]\n", vec![item(level); width].join(", "));
        vec![BodyPart::Text((0..levels).map(line).collect())]
    });
    let marks = "[-?:&*!|>%{}\\[\\],#'\" a\n\t]{0,60}".prop_map(|text| vec![BodyPart::Text(text)]);
    let written = written.prop_map(|text| vec![BodyPart::Text(text)]);
    prop_oneof![2 => written, 4 => damaged, 1 => repeated, 1 => aliases, 1 => aliased_keys, 3 => marks].boxed()
}
