//! Scores of the ticket shop by several teams, as one page for a room.

use drawing::canvas::{Axis, Cell, Drawn, Look, Plot, is_drawable};
use drawing::html::{Head, document, pictures, scrolled, section};
use drawing::scale::Scale;
use drawing::table::Table;
use engine::figures;
use maud::html;
use serde::{Deserialize, Serialize};

/// So many teams can be told apart in one picture.
const TOGETHER: usize = 6;

/// What teams leave in their file after each bench.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Seconds since 1970.
    pub time: u64,
    /// The commit that was there.
    pub commit: String,
    /// Whether the shop differed from it.
    pub is_changed: bool,
    /// 0 where the contract is broken.
    pub score: f64,
    /// 95 % of it; none where the contract is broken.
    pub interval: Option<[f64; 2]>,
}

/// Who plays.
#[derive(Debug, Clone, PartialEq)]
pub struct Team {
    /// As its file is called.
    pub name: String,
    /// In any order.
    pub runs: Vec<Run>,
}

impl Team {
    fn best(&self) -> Option<&Run> {
        self.runs.iter().max_by(|a, b| a.score.total_cmp(&b.score))
    }
}

/// The page, which loads itself again every few seconds.
pub fn page(teams: &[Team]) -> String {
    let ranked = ranked(teams);
    let runs = || ranked.iter().flat_map(|(team, _)| &team.runs);
    let time = Time {
        first: runs().map(|run| run.time).min().unwrap_or_default(),
        last: runs().map(|run| run.time).max().unwrap_or_default(),
    };
    let tops = runs().flat_map(|run| [run.score, run.interval.map_or(0.0, |[_, to]| to)]);
    let top = tops.filter(|top| is_drawable(*top)).fold(1.0, f64::max);

    let mut together: Vec<&Team> = ranked.iter().map(|(team, _)| *team).collect();
    together.truncate(TOGETHER);
    together.sort_unstable_by_key(|team| &team.name);
    let title = match ranked.len() {
        0..=TOGETHER => "Scores over time".to_owned(),
        _ => format!("The best {TOGETHER} teams over time"),
    };
    let names: Vec<&str> = together.iter().map(|team| team.name.as_str()).collect();
    let lines = together.iter().zip(Look::of_each(&names));
    let lines = lines.map(|(team, (_, look))| line(team, look, &time));
    let all = plot(&title, lines.collect(), &time, top);
    let each = ranked.iter().filter_map(|(team, _)| {
        let line = line(team, Look::nth(1), &time);
        let drawn = vec![
            intervals(team, &time),
            Drawn {
                name: String::new(),
                ..line
            },
        ];
        let svg = plot(&team.name, drawn, &time, top)?;
        Some((svg, format!("Scores of {} over time.", team.name), ""))
    });
    let each: Vec<_> = each.collect();
    let each = each
        .iter()
        .map(|(svg, alt, caption)| (svg.as_str(), alt.clone(), *caption));

    let (verdict, class, sentence) = leaders(&ranked);
    let head = Head {
        kicker: "A ticket shop with two dozen faults",
        title: "Which team's shop is the fastest?",
        verdict: &verdict,
        class,
        sentence: &sentence,
        provenance: html! { "The files of this folder, as they are now. The page loads itself again." },
    };
    let sections = html! {
        @if !ranked.is_empty() {
            (section("best", "Best scores", &scrolled(&table(&ranked, &time), "Best scores", "")))
            @if let Some(svg) = all {
                (section("curves", "Over time", &pictures([(svg.as_str(), title, "")].into_iter())))
            }
            (section("teams", "Each team, with intervals", &pictures(each)))
        }
        script { "setTimeout(location.reload.bind(location), 5000)" }
    };
    document(&head, &sections)
}

/// Teams with a score, and the best of each, the best first.
fn ranked(teams: &[Team]) -> Vec<(&Team, &Run)> {
    let scored = teams.iter().filter_map(|team| Some((team, team.best()?)));
    let mut ranked: Vec<_> = scored.collect();
    ranked.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score).then(a.time.cmp(&b.time)));
    ranked
}

/// Who leads, the colour of that, and what else there is to say.
fn leaders(ranked: &[(&Team, &Run)]) -> (String, &'static str, String) {
    let Some(((leader, best), others)) = ranked.split_first() else {
        let how = "cargo workshop capstone bench --team NAME writes one.";
        return ("No score yet".to_owned(), "inconclusive", how.to_owned());
    };
    let from = best.interval.map_or(0.0, |[from, _]| from);
    let near = others.iter().filter(|(_, run)| {
        let to = run.interval.map(|[_, to]| to);
        to.is_some_and(|to| to >= from)
    });
    let near: Vec<&str> = near.map(|(team, _)| team.name.as_str()).collect();
    let sentence = match near.as_slice() {
        [] => format!("leads with {:.1}.", best.score),
        near => format!(
            "has {:.1}, too close to call against {}: the intervals overlap.",
            best.score,
            near.join(", ")
        ),
    };
    (leader.name.clone(), "proved", sentence)
}

fn table(ranked: &[(&Team, &Run)], time: &Time) -> Table {
    let row = |(team, best): &(&Team, &Run)| {
        let last = team.runs.iter().max_by_key(|run| run.time);
        let broken = team.runs.iter().filter(|run| run.interval.is_none());
        let interval = best
            .interval
            .map_or("contract broken".to_owned(), |[from, to]| {
                format!("{from:.1} to {to:.1}")
            });
        let changed = if best.is_changed { "+" } else { "" };
        vec![
            team.name.clone(),
            format!("{:.1}", best.score),
            interval,
            format!("{:.0} min", time.minutes(best)),
            format!("{:.1}", last.map_or(0.0, |run| run.score)),
            team.runs.len().to_string(),
            broken.count().to_string(),
            format!("{}{changed}", best.commit),
        ]
    };
    let figures = [
        "best",
        "95 % interval",
        "after",
        "last",
        "benches",
        "broken",
        "commit",
    ];
    Table::new(&["team"], &figures, ranked.iter().map(row).collect())
}

/// When the first and the last score came.
struct Time {
    first: u64,
    last: u64,
}

impl Time {
    fn minutes(&self, run: &Run) -> f64 {
        (run.time - self.first) as f64 / 60.0
    }

    /// What is drawn, in minutes.
    fn width(&self) -> f64 {
        ((self.last - self.first) as f64 / 60.0).max(10.0)
    }
}

fn line(team: &Team, look: Look, time: &Time) -> Drawn {
    let mut runs: Vec<&Run> = team
        .runs
        .iter()
        .filter(|run| is_drawable(run.score))
        .collect();
    runs.sort_by_key(|run| run.time);
    let points: Vec<_> = runs
        .iter()
        .map(|run| (time.minutes(run), run.score))
        .collect();
    Drawn {
        marks: points.clone(),
        line: points,
        ..Drawn::of(&team.name, look)
    }
}

fn intervals(team: &Team, time: &Time) -> Drawn {
    let half = time.width() / 120.0;
    let cell = |run: &Run| {
        let [from, to] = run.interval?;
        let at = time.minutes(run);
        Some(Cell {
            across: at - half..at + half,
            up: from.max(0.0)..to,
            share: 0.4,
        })
    };
    let cells = team.runs.iter().filter_map(cell);
    Drawn {
        cells: cells.filter(|cell| is_drawable(cell.up.end)).collect(),
        ..Drawn::of("", Look::nth(1))
    }
}

fn plot(title: &str, drawn: Vec<Drawn>, time: &Time, top: f64) -> Option<String> {
    let width = time.width();
    let plot = Plot {
        title,
        description: format!(
            "{} min, scores of up to {top:.1}.",
            figures::count(width.round())
        ),
        across: Axis {
            scale: Scale::linear(-0.05 * width..1.05 * width),
            name: "minutes since the first score".to_owned(),
            label: &figures::count,
            labels: 7,
        },
        has_columns: false,
        up: Axis {
            scale: Scale::over((0.0, top), Vec::new()),
            name: "score".to_owned(),
            label: &figures::count,
            labels: 6,
        },
        drawn,
    };
    plot.svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn team(name: &str, scores: &[(u64, f64)]) -> Team {
        let run = |&(minute, score)| Run {
            time: 1_700_000_000 + minute * 60,
            commit: "abcdef0".to_owned(),
            is_changed: false,
            score,
            interval: (score > 0.0).then_some([score - 2.0, score + 2.0]),
        };
        Team {
            name: name.to_owned(),
            runs: scores.iter().map(run).collect(),
        }
    }

    #[test]
    fn the_best_score_leads_unless_another_interval_overlaps() {
        let red = team("red", &[(0, 5.0), (20, 30.0), (40, 0.0)]);
        let blue = team("blue", &[(10, 20.0)]);
        let page = page(&[blue, red.clone()]);
        assert!(page.contains("leads with 30.0"), "{page}");
        let cells: Vec<&str> = page.split("<td class=\"number\">").skip(1).collect();
        let cells: Vec<&str> = cells
            .iter()
            .map(|cell| cell.split('<').next().unwrap())
            .collect();
        assert_eq!(
            cells,
            [
                "30.0",
                "28.0 to 32.0",
                "20 min",
                "0.0",
                "3",
                "1",
                "abcdef0", //
                "20.0",
                "18.0 to 22.0",
                "10 min",
                "20.0",
                "1",
                "0",
                "abcdef0",
            ]
        );
        let near = team("near", &[(10, 27.0)]);
        let page = super::page(&[red, near]);
        assert!(page.contains("too close to call against near:"), "{page}");
    }

    /// Everybody has a curve, whatever their file holds.
    #[test]
    fn each_team_has_a_picture() {
        let pictures = |teams: &[Team]| page(teams).matches("<img ").count();
        assert_eq!(pictures(&[]), 0);
        let teams = "abcdefghijkl".split("").filter(|name| !name.is_empty());
        let teams: Vec<_> = teams
            .map(|name| team(name, &[(3, 1e200), (2, 4.0)]))
            .collect();
        assert_eq!(pictures(&teams), 1 + 12);
        assert_eq!(pictures(&[team("broken", &[(0, 0.0)])]), 2);
    }
}
