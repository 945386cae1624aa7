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
pub(crate) fn environment_rows(record: &Record) -> Vec<(&str, String)> {
    let here = &record.environment;
    let quota = here.quota.map(|quota| format!("{quota} CPUs"));
    let optimised = if here.optimised {
        "optimised"
    } else {
        "not optimised"
    };
    let cpus = format!("{} usable of {} online", here.cpus_usable, here.cpus_online);
    let memory = format!("{} MiB", figures::count(here.memory_mib as f64));
    let governor = here.governor.clone();
    let machine = [
        ("cpu", here.cpu_model.clone()),
        ("cpus", cpus),
        ("memory", memory),
        ("NUMA nodes", here.numa_nodes.to_string()),
        ("system", here.system.clone()),
        ("kernel", here.kernel.clone()),
        ("CPU quota", quota.unwrap_or("none".to_owned())),
        (
            "frequency governor",
            governor.unwrap_or("not known".to_owned()),
        ),
        ("build", format!("{} ({optimised})", here.build_profile)),
    ];
    let tools = here.tools.iter();
    let tools = tools.map(|(tool, version)| (tool.as_str(), version.clone()));
    let run = [
        ("commit", record.commit.in_short()),
        ("date", format!("{} (UTC)", record.started)),
    ];
    let placement = here
        .placement
        .clone()
        .map(|placement| ("placement", placement));
    machine
        .into_iter()
        .chain(placement)
        .chain(tools)
        .chain(run)
        .collect()
}
