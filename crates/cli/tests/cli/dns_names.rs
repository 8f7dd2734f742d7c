//! A DNS name that a cluster had before: the cluster answers to it until `cluster release-dns` releases it.

use model::Value;
use serde_json::json;

use crate::stage::Stage;

const CLUSTER: &str = "demo-cluster-01";
const OLD: &str = "demo-cluster-01.k8s.example.com";
const NEW: &str = "new.example.com";

#[test]
fn a_former_dns_name_is_answered_until_it_is_released() {
    let stage = Stage::demo();
    let polled = || stage.run(&["demo", "flux-namespaces", OLD]).code;
    let cluster = || stage.run(&["cluster", "get", CLUSTER]).good().json();
    let renamed = format!("cluster_dns: {NEW}");
    stage.run(&["cluster", "patch", CLUSTER, "-p", &renamed, "--yes"]).good();
    assert_eq!((polled(), &cluster()["former_dns"]), (0, &json!([OLD])));

    let release = ["cluster", "release-dns", CLUSTER, OLD];
    let planned = stage.run(&[&release[..], &["--dry-run"]].concat()).good().json();
    assert_eq!((&planned["dry_run"], &planned["documents"][0]["id"]), (&json!(true), &json!(CLUSTER)));
    assert_eq!((polled(), stage.revision()), (0, 2), "a dry run releases nothing");

    let done = stage.run(&[&release[..], &["--reason", "nobody polls there", "-o", "table"]].concat()).good();
    assert_eq!(done.out, format!("cluster/{CLUSTER} released {OLD} (revision 3)\n"));
    assert_eq!(polled(), 3, "it is 404, which deletes nothing");
    let released = cluster();
    assert_eq!((&released["former_dns"], &released["released_dns"][0]["name"]), (&Value::Null, &json!(OLD)));
    assert_eq!(stage.run(&["changes"]).json()[0]["reason"], "nobody polls there");

    for name in [OLD, NEW] {
        let refused = stage.run(&["cluster", "release-dns", CLUSTER, name]);
        assert_eq!(refused.code, 3, "it is no former name of the cluster: {refused:?}");
    }
    assert_eq!(stage.revision(), 3);
}
