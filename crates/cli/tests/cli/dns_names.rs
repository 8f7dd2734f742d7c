//! Former DNS names: polls under them are answered until `cluster release-dns` releases them.

use model::Value;
use serde_json::json;

use crate::environment::TestEnvironment;

const CLUSTER: &str = "demo-cluster-01";
const OLD: &str = "demo-cluster-01.k8s.example.com";
const NEW: &str = "new.example.com";

#[test]
fn polls_under_a_former_dns_name_are_answered_until_it_is_released() {
    let env = TestEnvironment::demo();
    let polled = || env.run(&["demo", "flux-namespaces", OLD]).code;
    let cluster = || env.run(&["cluster", "get", CLUSTER]).success().json();
    let renamed = format!("cluster_dns: {NEW}");
    env.run(&["cluster", "patch", CLUSTER, "-p", &renamed, "--yes"]).success();
    assert_eq!((polled(), &cluster()["former_dns"]), (0, &json!([OLD])));

    let release = ["cluster", "release-dns", CLUSTER, OLD];
    let planned = env.run(&[&release[..], &["--dry-run"]].concat()).success().json();
    assert_eq!((&planned["dry_run"], &planned["documents"][0]["id"]), (&json!(true), &json!(CLUSTER)));
    assert_eq!((polled(), env.revision()), (0, 2), "a dry run releases nothing");

    let done = env.run(&[&release[..], &["--reason", "not used any more", "-o", "table"]].concat()).success();
    assert_eq!(done.out, format!("cluster/{CLUSTER} released {OLD} (revision 3)\n"));
    assert_eq!(polled(), 3, "the poll gets 404, which deletes nothing");
    let released = cluster();
    assert_eq!((&released["former_dns"], &released["released_dns"][0]["name"]), (&Value::Null, &json!(OLD)));
    assert_eq!(env.run(&["changes"]).json()[0]["reason"], "not used any more");

    for name in [OLD, NEW] {
        let refused = env.run(&["cluster", "release-dns", CLUSTER, name]);
        assert_eq!(refused.code, 3, "not a former name of the cluster: {refused:?}");
    }
    assert_eq!(env.revision(), 3);
}
