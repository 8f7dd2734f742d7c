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

/// Clears the screen, hides what follows, sets the title, and turns the direction of writing.
const HOSTILE: &str = "ok\u{1b}[2J\u{1b}[8m\u{1b}]0;title\u{7}\u{9b}31m\r\u{202e}dorp\u{2066}\u{61c}";
/// What a server takes in a document, which is no control character.
const TURNED: &str = "ok\u{202e}dorp\u{2066}\u{61c}";

/// What somebody else has written neither moves the cursor nor turns the direction of writing; programs get it as it is.
#[test]
fn texts_of_others_do_not_reach_a_terminal_as_commands() {
    let stage = Stage::demo();
    let body = serde_json::json!({"vm_image": TURNED}).to_string();
    stage.run(&["cluster", "patch", "demo-cluster-01", "-p", &body, "--yes"]).good();
    stage.run(&["namespace", "create", "team", "--reason", "right \u{202e}to left"]).good();
    for line in [
        &["changes"][..],
        &["changes", "-o", "wide"],
        &["changes", "show", "2"],
        &["cluster", "get", "demo-cluster-01", "-o", "yaml"],
        &["cluster", "get", "demo-cluster-01", "-o", "json"],
        &["cluster", "list", "-o", "wide"],
        &["cluster", "get", HOSTILE],
        &["cluster", "patch", "demo-cluster-01", "-p", &body.replace("ok", "new"), "--dry-run"],
        &["cluster", "patch", "demo-cluster-01", "-p", &format!("{{\"environment\": {}}}", serde_json::json!(HOSTILE))],
    ] {
        let shown = stage.on_terminal(120, line).out;
        let plain = anstream::adapter::strip_str(&shown).to_string();
        assert!(!shown.contains("\u{1b}[8m") && !shown.contains("\u{1b}]0"), "{line:?}: {shown:?}");
        let obeyed: Vec<_> = plain
            .replace("\r\u{1b}[2K", "")
            .chars()
            .filter(|c| {
                (c.is_control() && !matches!(c, '\n' | '\r'))
                    || ('\u{202a}'..='\u{2069}').contains(c)
                    || *c == '\u{61c}'
            })
            .collect();
        assert!(obeyed.is_empty(), "{line:?}: {obeyed:?} in {shown:?}");
    }
    let shown = plain(&stage.on_terminal(120, &["changes"]).out);
    assert!(shown.contains(r"right \u202eto left"), "{shown}");
    let piped = stage.run(&["cluster", "get", "demo-cluster-01", "-o", "json"]).json();
    assert_eq!(piped["vm_image"], TURNED);
}
