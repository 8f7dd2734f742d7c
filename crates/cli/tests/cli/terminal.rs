//! On a terminal: the width of tables, colours, questions and escaping.

use insta::assert_snapshot;

use crate::environment::{TestEnvironment, with_stable_values};

/// The visible text: without colours and overwritten text.
fn plain(text: &str) -> String {
    let left = |line: &str| format!("{}\n", line.rsplit('\r').next().unwrap_or(line).trim_end());
    anstream::adapter::strip_str(text).to_string().lines().map(left).collect()
}

#[test]
fn tables_fit_narrow_and_wide_terminals() {
    let env = TestEnvironment::demo();
    env.run(&["namespace", "create", "team", "--reason", "a new team with quite a story to tell about its name"])
        .success();
    for columns in [80, 160] {
        for (name, line) in [
            ("clusters", &["cluster", "list"][..]),
            ("components", &["component", "list"]),
            ("changes", &["changes"]),
            ("plan", &["fleet", "patch", "podinfo", "--all", "--set", "a=b", "--dry-run"]),
        ] {
            let shown = env.on_terminal(columns, line).success();
            let shown = plain(&shown.out);
            with_stable_values(|| assert_snapshot!(format!("terminal-{columns}-{name}"), shown));
            let widest = shown.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= usize::from(columns), "{widest} columns: {shown}");
        }
    }
}

#[test]
fn colours_are_used_on_terminals_and_can_be_disabled() {
    let env = TestEnvironment::demo();
    let bold = "\u{1b}[1m";
    assert!(env.on_terminal(80, &["cluster", "list"]).out.contains(bold));
    assert!(!env.run(&["cluster", "list", "-o", "table"]).out.contains('\u{1b}'));
    let quiet = env.shell("NO_COLOR=1 script -qec 'flux-resourceset-cli cluster list' /dev/null");
    assert!(!quiet.out.contains(bold), "{quiet:?}");
}

#[test]
fn a_question_that_is_not_answered_with_yes_changes_nothing() {
    let env = TestEnvironment::demo();
    let delete = ["cluster", "delete", "demo-cluster-01"];
    for no in ["n\n", "\n", "what?\n"] {
        let declined = env.run_and_answer(80, no, &delete);
        assert_eq!(declined.code, 1, "{}", declined.out);
        assert!(
            declined.out.contains("Make this change on") && declined.out.contains("nothing was changed"),
            "{}",
            declined.out
        );
    }
    assert_eq!(env.revision(), 1);
    let agreed = env.run_and_answer(80, "y\n", &delete).success();
    with_stable_values(|| assert_snapshot!("terminal-delete", plain(&agreed.out)));
    assert_eq!(env.revision(), 2);
}

/// Clears the screen, hides the following text, sets the title, and changes the writing direction.
const HOSTILE: &str = "ok\u{1b}[2J\u{1b}[8m\u{1b}]0;title\u{7}\u{9b}31m\r\u{202e}dorp\u{2066}\u{61c}";
/// Characters that a server accepts in a document: they are not control characters.
const REORDERED: &str = "ok\u{202e}dorp\u{2066}\u{61c}";

/// Untrusted text neither moves the cursor nor changes the writing direction. Programs get it unchanged.
#[test]
fn untrusted_text_is_escaped_on_a_terminal() {
    let env = TestEnvironment::demo();
    let body = serde_json::json!({"vm_image": REORDERED}).to_string();
    env.run(&["cluster", "patch", "demo-cluster-01", "-p", &body, "--yes"]).success();
    env.run(&["namespace", "create", "team", "--reason", "right \u{202e}to left"]).success();
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
        let shown = env.on_terminal(120, line).out;
        let plain = anstream::adapter::strip_str(&shown).to_string();
        assert!(!shown.contains("\u{1b}[8m") && !shown.contains("\u{1b}]0"), "{line:?}: {shown:?}");
        let unescaped: Vec<_> = plain
            .replace("\r\u{1b}[2K", "")
            .chars()
            .filter(|c| {
                (c.is_control() && !matches!(c, '\n' | '\r'))
                    || ('\u{202a}'..='\u{2069}').contains(c)
                    || *c == '\u{61c}'
            })
            .collect();
        assert!(unescaped.is_empty(), "{line:?}: {unescaped:?} in {shown:?}");
    }
    let shown = plain(&env.on_terminal(120, &["changes"]).out);
    assert!(shown.contains(r"right \u202eto left"), "{shown}");
    let piped = env.run(&["cluster", "get", "demo-cluster-01", "-o", "json"]).json();
    assert_eq!(piped["vm_image"], REORDERED);
}
