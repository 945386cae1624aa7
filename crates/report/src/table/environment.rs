//! The machine and the tools.

use std::fmt::Write as _;

use measurement::{figures, record::Record};

/// The machine and the tools, as a list.
pub fn environment(record: &Record) -> String {
    let mut text = String::new();
    for (name, value) in environment_rows(record) {
        let _ = writeln!(text, "- {name}: {value}");
    }
    text
}

/// The machine and the tools, name by name.
pub(crate) fn environment_rows(record: &Record) -> Vec<(String, String)> {
    let here = &record.environment;
    let mut rows = vec![
        ("cpu".to_owned(), here.cpu_model.clone()),
        (
            "cpus".to_owned(),
            format!("{} usable of {} online", here.cpus_usable, here.cpus_online),
        ),
        (
            "memory".to_owned(),
            format!("{} MiB", figures::count(here.memory_mib as f64)),
        ),
        ("NUMA nodes".to_owned(), here.numa_nodes.to_string()),
        ("system".to_owned(), here.system.clone()),
        ("kernel".to_owned(), here.kernel.clone()),
        (
            "CPU quota".to_owned(),
            here.quota
                .map_or_else(|| "none".to_owned(), |quota| format!("{quota} CPUs")),
        ),
        (
            "frequency governor".to_owned(),
            here.governor
                .clone()
                .unwrap_or_else(|| "not known".to_owned()),
        ),
        (
            "build".to_owned(),
            format!(
                "{} ({})",
                here.build_profile,
                if here.optimised {
                    "optimised"
                } else {
                    "not optimised"
                }
            ),
        ),
    ];
    rows.extend(
        here.tools
            .iter()
            .map(|(tool, version)| (tool.clone(), version.clone())),
    );
    rows.push(("commit".to_owned(), record.commit.in_short()));
    rows.push(("date".to_owned(), format!("{} (UTC)", record.started)));
    rows.push(("seed".to_owned(), record.seed.to_string()));
    rows
}
