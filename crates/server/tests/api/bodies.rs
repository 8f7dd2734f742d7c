//! What the sources keep to.

use std::{fs, path::Path};

/// A body that a handler wrote with `json!` would be a shape that the client, the CLI and the OpenAPI document do not know.
#[test]
fn no_handler_writes_json_by_hand() {
    let handlers = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/handlers");
    let mut count = 0;
    for entry in fs::read_dir(handlers).unwrap() {
        let path = entry.unwrap().path();
        let source = fs::read_to_string(&path).unwrap();
        assert!(!source.contains("json!"), "{} writes JSON with json!: use a type of crates/api", path.display());
        count += 1;
    }
    assert!(count > 30, "only {count} handlers were read");
}
