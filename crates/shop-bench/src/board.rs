//! Scores of the ticket shop by several teams, as one page for a room.

use drawing::canvas::{Axis, Cell, Drawn, Look, Plot, is_drawable};
use drawing::html::{Head, document, pictures, scrolled, section};
use drawing::scale::Scale;
use drawing::table::{Column, Table};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use statistics::figures;

use crate::history::Expectation;

/// Largest number of teams that a reader can tell apart in one picture.
const TOGETHER: usize = 6;
/// Notes that are shown, the latest first.
const NOTES: usize = 20;
/// Colors of the teams that have a color's name, and of the others in turn. They suit light and dark pages.
const COLOURS: [(&str, u32); 9] = [
    ("orange", 0xd5_6e_00),
    ("blue", 0x2a_7f_d4),
    ("green", 0x00_9e_73),
    ("pink", 0xcc_79_a7),
    ("purple", 0x8a_63_d2),
    ("yellow", 0xb5_93_00),
    ("red", 0xd0_3a_3a),
    ("brown", 0x9a_6a_42),
    ("grey", 0x80_86_8c),
];

/// A score in a team's file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Seconds since 1970.
    pub time: u64,
    /// The commit that was there.
    pub commit: String,
    /// `true` if the shop differed from that commit.
    pub is_changed: bool,
    /// The score; 0 if the contract is broken.
    pub score: f64,
    /// 95 % interval of the score; `None` if the contract is broken.
    pub interval: Option<[f64; 2]>,
    /// The score that the team expected.
    #[serde(default)]
    pub expected: Option<f64>,
    /// The team's words on what it changed.
    #[serde(default)]
    pub note: Option<String>,
}

/// A team that plays.
#[derive(Debug, Clone, PartialEq)]
pub struct Team {
    /// Name of the team, which is that of its file.
    pub name: String,
    /// In any order.
    pub runs: Vec<Run>,
}

impl Team {
    fn best(&self) -> Option<&Run> {
        self.runs.iter().max_by(|a, b| a.score.total_cmp(&b.score))
    }

    /// Expectations that were hit, and all that there were.
    fn hits(&self) -> (usize, usize) {
        let (mut hits, mut all) = (0, 0);
        for run in &self.runs {
            if let Some(expected) = run.expected {
                all += 1;
                hits += usize::from(Expectation::of(expected, run.interval) == Expectation::Hit);
            }
        }
        (hits, all)
    }
}

/// Writes the page, which loads itself again every few seconds. Scores that came later than `freeze_after` minutes after the
/// first one are left out.
pub fn page(teams: &[Team], freeze_after: Option<u64>) -> String {
    let (shown, hidden) = frozen(teams, freeze_after);
    let ranked = ranked(&shown);
    let scores = Scores::of(&ranked);

    let mut together: Vec<&Team> = ranked.iter().map(|(team, _)| *team).collect();
    together.truncate(TOGETHER);
    together.sort_unstable_by_key(|team| &team.name);
    let title = match ranked.len() {
        0..=TOGETHER => "Scores over time".to_owned(),
        _ => format!("The best {TOGETHER} teams over time"),
    };
    let looks = looks(&ranked);
    let mut lines = Vec::new();
    for team in together {
        lines.push(scores.line(team, look_of(&looks, team)));
    }
    let all = scores.plot(&title, lines);
    let mut each = Vec::new();
    for (team, _) in &ranked {
        let look = look_of(&looks, team);
        let line = Drawn {
            name: String::new(),
            ..scores.line(team, look)
        };
        if let Some(svg) = scores.plot(&team.name, vec![scores.intervals(team, look), line]) {
            each.push((svg, format!("Scores of {} over time.", team.name)));
        }
    }
    let each = each
        .iter()
        .map(|(svg, alt)| (svg.as_str(), alt.clone(), ""));

    let (verdict, class, mut sentence) = leaders(&ranked);
    if let Some(hidden) = hidden {
        sentence += &hidden;
    }
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
            (section("best", "Best scores", &html! {
                (scrolled(&table(&ranked, &scores), "Best scores", ""))
                p { "A + stands for changes that were not committed." }
            }))
            @if let Some(svg) = all {
                (section("curves", "Over time", &pictures([(svg.as_str(), title, "")].into_iter())))
            }
            (section("notes", "What they changed", &notes(&ranked, &scores)))
            (section("teams", "Each team, with intervals", &pictures(each)))
        }
        script { "setTimeout(location.reload.bind(location), 5000)" }
    };
    document(&head, &sections)
}

/// The teams with the scores that are shown, and a sentence on those that are not.
fn frozen(teams: &[Team], freeze_after: Option<u64>) -> (Vec<Team>, Option<String>) {
    let mut shown = teams.to_vec();
    let runs = teams.iter().flat_map(|team| &team.runs);
    let (Some(minutes), Some(first)) = (freeze_after, runs.map(|run| run.time).min()) else {
        return (shown, None);
    };
    let mut hidden = 0;
    for team in &mut shown {
        let before = team.runs.len();
        team.runs.retain(|run| run.time <= first + minutes * 60);
        hidden += before - team.runs.len();
    }
    let sentence = match hidden {
        0 => String::new(),
        1 => format!(" The board is frozen after {minutes} minutes: 1 later score is hidden."),
        _ => format!(
            " The board is frozen after {minutes} minutes: {hidden} later scores are hidden."
        ),
    };
    (shown, Some(sentence))
}

/// Teams with a score, and the best of each, the best first.
fn ranked(teams: &[Team]) -> Vec<(&Team, &Run)> {
    let mut ranked = Vec::new();
    for team in teams {
        if let Some(best) = team.best() {
            ranked.push((team, best));
        }
    }
    ranked.sort_by(|(_, a), (_, b)| b.score.total_cmp(&a.score).then(a.time.cmp(&b.time)));
    ranked
}

/// A look for each team: of its own colour where it is called so.
fn looks(ranked: &[(&Team, &Run)]) -> Vec<(String, Look)> {
    let mut names: Vec<&str> = ranked.iter().map(|(team, _)| team.name.as_str()).collect();
    names.sort_unstable();
    let of_name = |name: &str| {
        let name = name.to_lowercase();
        COLOURS.iter().find(|(colour, _)| *colour == name)
    };
    let mut free = Vec::new();
    for colour in &COLOURS {
        if !names.iter().any(|name| of_name(name) == Some(colour)) {
            free.push(colour);
        }
    }
    let mut looks = Vec::new();
    let mut next = 0;
    for name in names {
        let (_, colour) = if let Some(own) = of_name(name) {
            own
        } else {
            // Teams that share a colour have different marks.
            next += 1;
            match free.len() {
                0 => &COLOURS[next % COLOURS.len()],
                count => free[(next - 1) % count],
            }
        };
        looks.push((name.to_owned(), Look::of(*colour, looks.len() % 2 == 0)));
    }
    looks
}

fn look_of(looks: &[(String, Look)], team: &Team) -> Look {
    for (name, look) in looks {
        if *name == team.name {
            return *look;
        }
    }
    Look::nth(0)
}

/// The name of the leader, the colour of the verdict, and a sentence.
fn leaders(ranked: &[(&Team, &Run)]) -> (String, &'static str, String) {
    let Some(((leader, best), others)) = ranked.split_first() else {
        let how = "cargo workshop capstone bench --team NAME writes one.";
        return ("No score yet".to_owned(), "inconclusive", how.to_owned());
    };
    let from = match best.interval {
        Some([from, _]) => from,
        None => 0.0,
    };
    let mut near = Vec::new();
    for (team, run) in others {
        if let Some([_, to]) = run.interval
            && to >= from
        {
            near.push(team.name.as_str());
        }
    }
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

fn table(ranked: &[(&Team, &Run)], scores: &Scores) -> Table {
    let mut rows = Vec::new();
    for (team, best) in ranked {
        let last = match team.runs.iter().max_by_key(|run| run.time) {
            Some(run) => run.score,
            None => 0.0,
        };
        let broken = team.runs.iter().filter(|run| run.interval.is_none());
        let interval = match best.interval {
            Some([from, to]) => format!("{from:.1} to {to:.1}"),
            None => "contract broken".to_owned(),
        };
        let changed = if best.is_changed { "+" } else { "" };
        let (hits, all) = team.hits();
        rows.push(vec![
            team.name.clone(),
            format!("{:.1}", best.score),
            interval,
            format!("{:.0} min", scores.minutes(best)),
            format!("{last:.1}"),
            team.runs.len().to_string(),
            broken.count().to_string(),
            format!("{hits} of {all}"),
            format!("{}{changed}", best.commit),
        ]);
    }
    let mut columns = vec![Column::text("team")];
    for head in [
        "best",
        "95 % interval",
        "after",
        "last",
        "benches",
        "broken",
        "expected right",
        "commit",
    ] {
        columns.push(Column::figures(head));
    }
    Table::new(columns, rows)
}

/// Teams' words on their changes, the latest first.
fn notes(ranked: &[(&Team, &Run)], scores: &Scores) -> Markup {
    let mut runs = Vec::new();
    for (team, _) in ranked {
        for run in &team.runs {
            if run.note.is_some() || run.expected.is_some() {
                runs.push((*team, run));
            }
        }
    }
    runs.sort_by_key(|(_, run)| std::cmp::Reverse(run.time));
    runs.truncate(NOTES);
    let mut rows = Vec::new();
    for (team, run) in runs {
        let met = match run.expected {
            Some(expected) => {
                format!("{expected}: {}", Expectation::of(expected, run.interval))
            }
            None => String::new(),
        };
        rows.push(vec![
            team.name.clone(),
            run.note.clone().unwrap_or_default(),
            met,
            format!("{:.1}", run.score),
            format!("{:.0} min", scores.minutes(run)),
        ]);
    }
    let columns = [
        Column::text("team"),
        Column::text("change"),
        Column::text("expected"),
        Column::figures("score"),
        Column::figures("after"),
    ];
    scrolled(&Table::new(columns, rows), "What they changed", "")
}

/// The span of all scores that are drawn.
struct Scores {
    /// Seconds since 1970.
    first: u64,
    last: u64,
    /// Lowest score above 0; 1 if there is none. The ends of intervals do not count.
    low: f64,
    high: f64,
}

impl Scores {
    fn of(ranked: &[(&Team, &Run)]) -> Self {
        let mut scores = Self {
            first: u64::MAX,
            last: 0,
            low: f64::INFINITY,
            high: 0.0,
        };
        for run in ranked.iter().flat_map(|(team, _)| &team.runs) {
            scores.first = scores.first.min(run.time);
            scores.last = scores.last.max(run.time);
            if run.score > 0.0 && is_drawable(run.score) {
                scores.low = scores.low.min(run.score);
                scores.high = scores.high.max(run.score);
            }
        }
        if scores.high == 0.0 {
            (scores.low, scores.high) = (1.0, 1.0);
        }
        scores
    }

    fn minutes(&self, run: &Run) -> f64 {
        (run.time - self.first) as f64 / 60.0
    }

    /// Minutes that are drawn.
    fn width(&self) -> f64 {
        let seconds = self.last.saturating_sub(self.first);
        (seconds as f64 / 60.0).max(10.0)
    }

    /// The lower end of the axis, where broken contracts stand.
    fn bottom(&self) -> f64 {
        self.low / 2.0
    }

    fn line(&self, team: &Team, look: Look) -> Drawn {
        let mut runs: Vec<&Run> = team.runs.iter().collect();
        runs.retain(|run| is_drawable(run.score));
        runs.sort_by_key(|run| run.time);
        let mut points = Vec::new();
        for run in runs {
            points.push((self.minutes(run), run.score.max(self.bottom())));
        }
        Drawn {
            marks: points.clone(),
            line: points,
            ..Drawn::of(&team.name, look)
        }
    }

    fn intervals(&self, team: &Team, look: Look) -> Drawn {
        let half = self.width() / 120.0;
        let top = self.high * 2.0;
        let mut drawn = Drawn::of("", look);
        for run in &team.runs {
            if let Some([from, to]) = run.interval
                && is_drawable(to)
            {
                let at = self.minutes(run);
                let [from, to] = [from, to].map(|score| score.clamp(self.bottom(), top));
                drawn.cells.push(Cell {
                    across: at - half..at + half,
                    up: from..to,
                    share: 0.4,
                });
            }
        }
        drawn
    }

    fn plot(&self, title: &str, drawn: Vec<Drawn>) -> Option<String> {
        let width = self.width();
        let plot = Plot {
            title,
            description: format!(
                "{} min, scores of up to {:.1}.",
                figures::count(width.round()),
                self.high
            ),
            across: Axis {
                scale: Scale::linear(-0.05 * width..1.05 * width),
                name: "minutes since the first score".to_owned(),
                label: &figures::count,
                labels: 7,
            },
            has_columns: false,
            up: Axis {
                scale: Scale::log(self.bottom() / 1.1..self.high * 2.0),
                name: "score (log scale)".to_owned(),
                label: &figures::count,
                labels: 6,
            },
            drawn,
        };
        plot.svg()
    }
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
            expected: None,
            note: None,
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
        let page = page(&[blue, red.clone()], None);
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
                "0 of 0",
                "abcdef0", //
                "20.0",
                "18.0 to 22.0",
                "10 min",
                "20.0",
                "1",
                "0",
                "0 of 0",
                "abcdef0",
            ]
        );
        let near = team("near", &[(10, 27.0)]);
        let page = super::page(&[red, near], None);
        assert!(page.contains("too close to call against near:"), "{page}");
    }

    /// Checks that each team has a curve, whatever its file holds.
    #[test]
    fn each_team_has_a_picture() {
        let pictures = |teams: &[Team]| page(teams, None).matches("<img ").count();
        assert_eq!(pictures(&[]), 0);
        let teams = "abcdefghijkl".split("").filter(|name| !name.is_empty());
        let teams: Vec<_> = teams
            .map(|name| team(name, &[(3, 1e200), (2, 4.0)]))
            .collect();
        assert_eq!(pictures(&teams), 1 + 12);
        assert_eq!(pictures(&[team("broken", &[(0, 0.0)])]), 2);
    }

    #[test]
    fn a_frozen_board_hides_later_scores_and_says_so() {
        let teams = [
            team("red", &[(0, 5.0), (90, 7.0), (130, 50.0)]),
            team("blue", &[(10, 6.0), (100, 8.0)]),
        ];
        let frozen = page(&teams, Some(120));
        assert!(frozen.contains("The board is frozen after 120 minutes: 1 later score is hidden."));
        assert!(!frozen.contains("50.0"), "{frozen}");
        assert!(page(&teams, None).contains("leads with 50.0"));
    }

    #[test]
    fn a_team_that_is_called_like_a_colour_has_it() {
        let teams = [
            team("Blue", &[(0, 5.0)]),
            team("apes", &[(0, 6.0)]),
            team("red", &[(0, 7.0)]),
        ];
        let looks = format!("{:?}", looks(&ranked(&teams)));
        for colour in [
            "(\"Blue\", Look { colour: RGBColor(42, 127, 212)",
            "(\"apes\", Look { colour: RGBColor(213, 110, 0)",
            "(\"red\", Look { colour: RGBColor(208, 58, 58)",
        ] {
            assert!(looks.contains(colour), "{looks}");
        }
        assert_eq!(page(&teams, None).matches("<img ").count(), 4);
    }

    #[test]
    fn notes_and_expectations_are_shown() {
        let mut red = team("red", &[(0, 20.0)]);
        red.runs[0].expected = Some(21.0);
        red.runs[0].note = Some("an <index>".to_owned());
        let page = page(&[red], None);
        assert!(
            page.contains("an &lt;index&gt;") && page.contains("21: hit"),
            "{page}"
        );
        assert!(page.contains("1 of 1"), "{page}");
    }
}
