//! The book's examples, run: a `sh` block with one curl command, and the `json` block after it with its answer.

use crate::harness::{Server, repository};

/// The fenced blocks of a text: their language and their content.
fn blocks(text: &str) -> Vec<(&str, &str)> {
    let fenced = text.split("```").skip(1).step_by(2);
    fenced
        .filter_map(|block| block.split_once('\n'))
        .map(|(language, content)| (language.trim(), content.trim()))
        .collect()
}

#[test]
fn every_example_of_the_book_is_true() {
    let server = Server::start(&[
        ("API_MODE", "crud"),
        ("AUTH_TOKEN", "demo"),
        ("SEED_FILE", repository("data/seed.json").to_str().unwrap()),
    ]);
    let mut tried = 0;
    let chapters = std::fs::read_dir(repository("docs/src")).unwrap().map(|file| file.unwrap().path());
    for file in chapters.filter(|file| file.extension().is_some_and(|extension| extension == "md")) {
        let text = std::fs::read_to_string(&file).unwrap();
        for pair in blocks(&text).windows(2) {
            let [("sh", command), ("json", expected)] = pair else { continue };
            let Some(path) = command.strip_prefix("curl ").and_then(|rest| rest.split("http://127.0.0.1:8080").nth(1))
            else {
                continue;
            };
            let token = command.contains("Bearer demo").then_some("Bearer demo");
            let answer = server.request("GET", path.trim_matches(['\'', '"']), token);
            let expected: model::Value =
                serde_json::from_str(expected).unwrap_or_else(|error| panic!("{file:?}: {error}"));
            assert_eq!(answer.json(), expected, "{}: {command}", file.display());
            tried += 1;
        }
    }
    assert!(tried >= 10, "only {tried} examples were found");
}
