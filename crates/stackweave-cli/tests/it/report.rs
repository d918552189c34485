//! `stackweave report`: one page, which replaces an older report and nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use stackweave_export::is_report;

use crate::common::{Recorded, text};

#[test]
fn an_older_report_is_replaced() {
    let recorded = Recorded::new().with("run.swv", 3);
    for _ in 0..2 {
        let (out, printed) = recorded.printed(&["report", "run.swv"]);
        assert_eq!(out, "");
        assert!(printed.starts_with("Wrote run.html (report, ") && printed.lines().count() == 1, "{printed}");
        let whole = fs::canonicalize(recorded.path("run.html")).unwrap();
        let end = format!(". Open it in a browser: file://{}\n", whole.display());
        assert!(printed.ends_with(&end), "{printed}");
    }
    assert!(is_report(&recorded.path("run.html")));
    let page = fs::read_to_string(recorded.path("run.html")).unwrap();
    assert!(!page.contains("epoch"), "names are in blocks only");
}

#[test]
fn nothing_else_is_replaced() {
    let recorded = Recorded::new().with("run.swv", 3);
    fs::write(recorded.path("run.html"), "my page").unwrap();
    let printed = recorded.failure(&["report", "run.swv"]);
    assert_eq!(printed, "stackweave: run.html already exists; --overwrite replaces it");
    assert_eq!(fs::read_to_string(recorded.path("run.html")).unwrap(), "my page");
    recorded.printed(&["report", "run.swv", "--overwrite"]);
    assert!(is_report(&recorded.path("run.html")));
}

#[test]
fn folders_parts_and_changes_are_shown() {
    let recorded = Recorded::new().with("before.swv", 2);
    fs::create_dir(recorded.path("many")).unwrap();
    crate::common::record(&recorded.path("many/1.swv"), 1);
    crate::common::record(&recorded.path("many/2.swv"), 2);
    let (_, printed) = recorded.printed(&["report", "many", "before.swv", "--no-sources", "--title", "All of them"]);
    assert!(printed.starts_with("Wrote many.html"), "{printed}");
    recorded.printed(&["report", "many", "--before", "before.swv", "-o", "change.html", "--thread", "trainer"]);
    recorded.printed(&["export", "many", "-o", "by-export.html", "--no-sources"]);
    assert!(["many.html", "change.html", "by-export.html"].iter().all(|name| is_report(&recorded.path(name))));
    let printed = recorded.failure(&["report", "many", "--thread", "unknown"]);
    assert!(printed.contains("there is no thread unknown"), "{printed}");
    let printed = recorded.failure(&["report", "many", "--start", "2s", "--end", "1s"]);
    assert!(printed.contains("--start must be before --end"), "{printed}");
    let printed = recorded.failure(&["report", "no-such.swv"]);
    assert!(printed.contains("no-such.swv"), "{printed}");
}

fn opened(recorded: &Recorded, browser: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stackweave"));
    command.args(["report", "run.swv", "--open"]).current_dir(recorded.path("."));
    command.env("BROWSER", browser).env("PATH", recorded.path("no-programs")).output().unwrap()
}

#[test]
fn a_browser_opens_it() {
    let recorded = Recorded::new().with("run.swv", 1);
    let browser = recorded.path("browser");
    fs::write(&browser, "#!/bin/sh\necho \"$@\" > opening && /bin/mv opening opened\n").unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let output = opened(&recorded, &format!("/no/such/browser:{} --new-tab", browser.display()));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let until = Instant::now() + Duration::from_secs(30);
    while !recorded.path("opened").exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let arguments = fs::read_to_string(recorded.path("opened")).unwrap();
    assert!(arguments.starts_with("--new-tab file:///") && arguments.ends_with("/run.html\n"), "{arguments}");
    let output = opened(&recorded, "/no/such/browser");
    assert_eq!(output.status.code(), Some(1));
    let printed = text(&output.stderr);
    assert!(
        printed.contains("there is no browser to open file:///") && is_report(&recorded.path("run.html")),
        "{printed}"
    );
}
