use std::process;

use super::*;

fn folder_of_this_test(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("stackweave-bench-{name}-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs one program under one tracer, and checks the figures that the process reports.
#[test]
fn a_script_reports_the_cost_of_a_tracer() {
    let Some(python) = interpreters().into_iter().next() else { return };
    let folder = folder_of_this_test("trace");
    let environment = Environment { executable: python.executable.clone(), packages: None, missing: Vec::new() };
    let case = format!("{}, exceptions", python.version);
    let stage = Stage { pythons: Vec::new(), package: Err("none".to_owned()), folder: folder.clone() };
    let pair = (python, environment);
    let counts = folder.join("counts.json");
    fs::write(&counts, r#"{"exceptions": [[4002, 1], [8002, 1]]}"#).unwrap();
    let mut command = stage.script(&pair, "measure.py", "cProfile");
    command.arg("cProfile").arg(&counts).arg(&folder).args(["no library", "1", "exceptions"]);
    let reported = lines_of(&mut command, "measure.py").unwrap();
    for bench in PROGRAMS {
        let costs = reported.iter().filter_map(|reported| reported.cost_in(bench, &case, "cProfile"));
        assert_eq!(costs.filter(|cost| *cost > 0.0).count(), 1, "{bench}: {reported:?}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_table_has_the_programs_of_the_scripts() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/tracing/programs.py");
    let text = fs::read_to_string(scripts).unwrap();
    let list = text.split_once("\nPROGRAMS = {").unwrap().1;
    let names = list.lines().filter_map(|line| line.trim().strip_prefix('"')?.split('"').next()).collect::<Vec<_>>();
    assert_eq!(names, table::PROGRAMS);
}

#[test]
fn the_newest_of_each_version_is_chosen() {
    let python = |minor, version: &str| Python {
        minor,
        version: version.to_owned(),
        executable: version.into(),
        library: None,
        home: PathBuf::new(),
        refusal: None,
    };
    let all = vec![python(11, "3.11.2"), python(11, "3.11.7"), python(12, "3.12.1")];
    let versions = one_of_each_version(all).into_iter().map(|python| python.version).collect::<Vec<_>>();
    assert_eq!(versions, ["3.11.7", "3.12.1"]);
}
