//! What a `chapter.toml` may not say although it parses.

use super::{ChapterFile, Setting, damage::Nonsense};
use crate::{claim::Bound, law::Law, load::Exchange};

type Result = std::result::Result<(), Nonsense>;

/// Looks for values that no run could make sense of.
pub(super) fn check(file: &ChapterFile) -> Result {
    positive("chapter", f64::from(file.chapter))?;
    positive("minutes", f64::from(file.minutes))?;
    not_empty("package", &file.package)?;
    not_empty("title", &file.title)?;
    exchanges(file)?;
    setting(file, "load", &file.load)?;
    if let Some(times) = file.times_alone {
        positive("times_alone", times)?;
    }
    for (name, each) in &file.settings {
        setting(file, &format!("settings.{name}"), each)?;
    }
    law(file)?;
    claims(file)?;
    rounds(file)?;
    for (index, step) in file.steps.iter().enumerate() {
        not_empty(&format!("steps.{index}.name"), &step.name)?;
        not_empty(&format!("steps.{index}.variant"), &step.variant)?;
        not_empty(&format!("steps.{index}.why"), &step.why)?;
    }
    Ok(())
}

fn exchanges(file: &ChapterFile) -> Result {
    exchange("exchange", &file.exchange)?;
    for (key, other) in [("write", &file.write), ("probe", &file.probe)] {
        if let Some(other) = other {
            exchange(key, other)?;
        }
    }
    file.afterwards
        .as_ref()
        .map_or(Ok(()), |question| path("afterwards.path", &question.path))
}

fn exchange(key: &str, exchange: &Exchange) -> Result {
    path(&format!("{key}.path"), &exchange.path)?;
    if exchange.method.is_empty() || !exchange.method.bytes().all(|b| b.is_ascii_uppercase()) {
        return wrong(
            &format!("{key}.method"),
            format!("`{}` is not an HTTP method", exchange.method),
            "write it in upper case, such as `GET`",
        );
    }
    not_empty(&format!("{key}.answer"), &exchange.answer)
}

fn path(key: &str, path: &str) -> Result {
    if path.starts_with('/') {
        return Ok(());
    }
    wrong(
        key,
        format!("the path `{path}` does not start with `/`"),
        format!("write `/{path}`"),
    )
}

fn setting(file: &ChapterFile, key: &str, setting: &Setting) -> Result {
    if setting.users == 0 && setting.users_per_processor.is_none() {
        return wrong(
            &format!("{key}.users"),
            "`users` is not above 0",
            "say how many `users` there are, or how many `users_per_processor`",
        );
    }
    if let Some(each) = setting.users_per_processor {
        positive(&format!("{key}.users_per_processor"), f64::from(each))?;
    }
    seconds(&format!("{key}.think_s"), setting.think_s)?;
    seconds(&format!("{key}.warm_up_s"), setting.warm_up_s)?;
    seconds(&format!("{key}.duration_s"), setting.duration_s)?;
    seconds(&format!("{key}.time_out_s"), setting.time_out_s)?;
    positive(&format!("{key}.duration_s"), setting.duration_s)?;
    positive(&format!("{key}.time_out_s"), setting.time_out_s)?;
    if !(0.0..1.0).contains(&setting.write_share) {
        return wrong(
            &format!("{key}.write_share"),
            format!("{} is not a share of writes", setting.write_share),
            "write 0 or more, below 1",
        );
    }
    if !(0.0..=100_000.0).contains(&setting.probe_per_second) {
        return wrong(
            &format!("{key}.probe_per_second"),
            format!("{} is not a rate", setting.probe_per_second),
            "write a number between 0 and 100000",
        );
    }
    for (part, value, table, there) in [
        (
            "write_share",
            setting.write_share,
            "write",
            file.write.is_some(),
        ),
        (
            "probe_per_second",
            setting.probe_per_second,
            "probe",
            file.probe.is_some(),
        ),
    ] {
        if value > 0.0 && !there {
            return wrong(
                &format!("{key}.{part}"),
                format!("there is no [{table}] that says what to send"),
                format!("add [{table}] with method, path and answer"),
            );
        }
    }
    Ok(())
}

fn law(file: &ChapterFile) -> Result {
    match &file.law {
        Law::SetUp(set_up) => named(file, "law.set_up.setting", &set_up.setting),
        Law::Utilisation(utilisation) => match (utilisation.work_ms, &utilisation.setting) {
            (Some(work_ms), None) => positive("law.utilisation.work_ms", work_ms),
            (None, Some(setting)) => named(file, "law.utilisation.setting", setting),
            _ => wrong(
                "law.utilisation",
                "the law needs to know how long a piece of work takes, from one source",
                "write work_ms, or the setting in which it is measured, and not both",
            ),
        },
        Law::Workers(workers) => workers
            .within
            .map_or(Ok(()), |within| share("law.workers.within", within)),
        Law::Locality(locality) => {
            share("law.locality.memory_bound", locality.memory_bound)?;
            positive("law.locality.across", locality.across)
        }
        Law::Barrier(barrier) => positive("law.barrier.hold_ms", barrier.hold_ms),
        Law::Amdahl(amdahl) => {
            not_empty("law.amdahl.frames", &amdahl.frames.concat())?;
            not_empty("law.amdahl.removes", &amdahl.removes)?;
            amdahl
                .within
                .map_or(Ok(()), |within| share("law.amdahl.within", within))
        }
        Law::Little(little) => {
            positive("law.little.call_ms", little.call_ms)?;
            positive(
                "law.little.problem_in_flight",
                f64::from(little.problem_in_flight),
            )
        }
    }
}

fn claims(file: &ChapterFile) -> Result {
    not_empty("mechanism.name", &file.mechanism.name)?;
    not_empty("mechanism.metric", &file.mechanism.metric)?;
    for (index, beside) in file.beside.iter().enumerate() {
        not_empty(&format!("beside.{index}.name"), &beside.name)?;
        not_empty(&format!("beside.{index}.metric"), &beside.metric)?;
    }
    bound("mechanism.problem", file.mechanism.problem)?;
    bound("mechanism.solution", file.mechanism.solution)?;
    more_than_one("effect.at_least", file.effect.at_least)?;
    positive("check.at_least", file.check.at_least)?;
    if let Some(most) = file.check.at_most {
        more_than_one("check.at_most", most)?;
    }
    for (index, limit) in file.check.limits.iter().enumerate() {
        not_empty(&format!("check.limits.{index}.name"), &limit.name)?;
        not_empty(&format!("check.limits.{index}.metric"), &limit.metric)?;
        bound(
            &format!("check.limits.{index}.at_most"),
            Bound::AtMost(limit.at_most),
        )?;
    }
    named(file, "effect.setting", &file.effect.setting)?;
    named(file, "check.setting", &file.check.setting)?;
    for (key, setting) in [
        ("await_profile_setting", &file.rounds.await_profile_setting),
        ("heap_profile_setting", &file.rounds.heap_profile_setting),
    ] {
        if let Some(setting) = setting {
            named(file, &format!("rounds.{key}"), setting)?;
        }
    }
    if let Some(setting) = &file.mechanism.setting {
        named(file, "mechanism.setting", setting)?;
    }
    if let Some(series) = &file.series {
        named(file, "series.setting", &series.setting)?;
    }
    if let Some(yardsticks) = &file.yardsticks {
        named(file, "yardsticks.setting", &yardsticks.setting)?;
    }
    if let Some(utilised) = &file.utilised {
        share("utilised.at_least_share", utilised.at_least_share)?;
    }
    if let Some(price) = &file.price {
        share("price.throughput_share", price.throughput_share)?;
        share("price.check_throughput_share", price.check_throughput_share)?;
        for (index, limit) in price.limits.iter().enumerate() {
            not_empty(&format!("price.limits.{index}.name"), &limit.name)?;
            not_empty(&format!("price.limits.{index}.metric"), &limit.metric)?;
            positive(&format!("price.limits.{index}.at_most"), limit.at_most)?;
        }
    }
    for (index, point) in file.points.iter().enumerate() {
        named(file, &format!("points.{index}.setting"), &point.setting)?;
        if let Some(ratio) = point.at_least {
            more_than_one(&format!("points.{index}.at_least"), ratio)?;
        }
    }
    if let Some(matrix) = &file.matrix {
        not_empty("matrix.title", &matrix.title)?;
        not_empty("matrix.variants", &matrix.variants.concat())?;
        for setting in &matrix.settings {
            named(file, "matrix.settings", setting)?;
        }
    }
    if let Some(near) = &file.bound {
        named(file, "bound.setting", &near.setting)?;
        share("bound.at_least_share", near.at_least_share)?;
    }
    Ok(())
}

fn bound(key: &str, bound: Bound) -> Result {
    match bound {
        Bound::AtLeastShareOfUsers(value) => {
            share(&format!("{key}.at_least_share_of_users"), value)
        }
        Bound::AtMost(value) | Bound::AtLeast(value) if !value.is_finite() || value < 0.0 => wrong(
            key,
            format!("a count cannot be limited to {value}"),
            "write 0 or more",
        ),
        Bound::AtMost(_) | Bound::AtLeast(_) => Ok(()),
    }
}

fn rounds(file: &ChapterFile) -> Result {
    let rounds = &file.rounds;
    positive("rounds.equal_pairs", f64::from(rounds.equal_pairs))?;
    positive("rounds.pairs", f64::from(rounds.pairs))?;
    positive(
        "conditions.pairs_at_least",
        f64::from(file.conditions.pairs_at_least),
    )?;
    seconds("rounds.cpu_profile_s", rounds.cpu_profile_s)?;
    seconds("rounds.await_profile_s", rounds.await_profile_s)?;
    if let Some(heap) = rounds.heap_profile_s {
        seconds("rounds.heap_profile_s", heap)?;
    }
    if !(1..=1000).contains(&rounds.cpu_profile_hz) {
        return wrong(
            "rounds.cpu_profile_hz",
            format!("{} samples a second cannot be taken", rounds.cpu_profile_hz),
            "write a number from 1 to 1000",
        );
    }
    if rounds.pairs < file.conditions.pairs_at_least {
        return wrong(
            "rounds.pairs",
            format!(
                "{} pairs of rounds can never meet conditions.pairs_at_least = {}",
                rounds.pairs, file.conditions.pairs_at_least
            ),
            "plan more pairs or ask for fewer",
        );
    }
    Ok(())
}

fn named(file: &ChapterFile, key: &str, name: &str) -> Result {
    if file.settings.contains_key(name) {
        return Ok(());
    }
    let known: Vec<_> = file.settings.keys().map(String::as_str).collect();
    wrong(
        key,
        format!("there is no setting `{name}`"),
        format!("add [settings.{name}] or name one of: {}", known.join(", ")),
    )
}

fn positive(key: &str, value: f64) -> Result {
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    wrong(
        key,
        format!("{value} is not above 0"),
        "write a number above 0",
    )
}

/// A day is more than any round lasts, and keeps `Duration` from overflowing.
fn seconds(key: &str, value: f64) -> Result {
    if (0.0..=86_400.0).contains(&value) {
        return Ok(());
    }
    wrong(
        key,
        format!("{value} is not a time in seconds"),
        "write a number between 0 and 86400",
    )
}

fn share(key: &str, value: f64) -> Result {
    if value > 0.0 && value <= 1.0 {
        return Ok(());
    }
    wrong(
        key,
        format!("{value} is not a share"),
        "write a number above 0, at most 1",
    )
}

fn more_than_one(key: &str, value: f64) -> Result {
    if value.is_finite() && value > 1.0 {
        return Ok(());
    }
    wrong(
        key,
        format!("a gain of {value} times is no gain"),
        "write the ratio that the chapter claims, above 1",
    )
}

fn not_empty(key: &str, value: &str) -> Result {
    if !value.trim().is_empty() {
        return Ok(());
    }
    wrong(key, "it is empty", "write at least a word")
}

fn wrong(key: &str, what: impl Into<String>, remedy: impl Into<String>) -> Result {
    Err(Nonsense {
        key: key.to_owned(),
        what: what.into(),
        remedy: remedy.into(),
    })
}
