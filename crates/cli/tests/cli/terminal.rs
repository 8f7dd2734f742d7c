//! On a terminal: tables that fit, colours, and questions.

use insta::assert_snapshot;

use crate::stage::{Stage, settled};

/// What is left to read: without colours, and without what was written over.
fn plain(text: &str) -> String {
    let left = |line: &str| format!("{}\n", line.rsplit('\r').next().unwrap_or(line).trim_end());
    anstream::adapter::strip_str(text).to_string().lines().map(left).collect()
}

#[test]
fn tables_fit_a_narrow_terminal_and_use_a_wide_one() {
    let stage = Stage::demo();
    stage
        .run(&["namespace", "create", "team", "--reason", "a new team with quite a story to tell about its name"])
        .good();
    for columns in [80, 160] {
        for (name, line) in [
            ("clusters", &["cluster", "list"][..]),
            ("components", &["component", "list"]),
            ("changes", &["changes"]),
            ("plan", &["fleet", "patch", "podinfo", "--all", "--set", "a=b", "--dry-run"]),
        ] {
            let shown = stage.on_terminal(columns, line).good();
            let shown = plain(&shown.out);
            settled(|| assert_snapshot!(format!("terminal-{columns}-{name}"), shown));
            let widest = shown.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= usize::from(columns), "{widest} columns: {shown}");
        }
    }
}

#[test]
fn colours_are_for_terminals_and_can_be_refused() {
    let stage = Stage::demo();
    let bold = "\u{1b}[1m";
    assert!(stage.on_terminal(80, &["cluster", "list"]).out.contains(bold));
    assert!(!stage.run(&["cluster", "list", "-o", "table"]).out.contains('\u{1b}'));
    let quiet = stage.shell("NO_COLOR=1 script -qec 'flux-resourceset-cli cluster list' /dev/null");
    assert!(!quiet.out.contains(bold), "{quiet:?}");
}

#[test]
fn a_question_is_answered_with_yes_or_nothing_happens() {
    let stage = Stage::demo();
    let delete = ["cluster", "delete", "demo-cluster-01"];
    for no in ["n\n", "\n", "what?\n"] {
        let declined = stage.asked(80, no, &delete);
        assert_eq!(declined.code, 1, "{}", declined.out);
        assert!(
            declined.out.contains("Go on with") && declined.out.contains("nothing was changed"),
            "{}",
            declined.out
        );
    }
    assert_eq!(stage.revision(), 1);
    let agreed = stage.asked(80, "y\n", &delete).good();
    settled(|| assert_snapshot!("terminal-delete", plain(&agreed.out)));
    assert_eq!(stage.revision(), 2);
}
