//! Published figures keep their source, and an error names a wrong pointer to them.

use course::measurement::{chapter_file::Reference, reference::look_up};

const FIGURES: &str = include_str!("../../../../../reference/seed-figures.toml");

fn pointing_to(source: &str, figure: &str) -> Vec<Reference> {
    vec![Reference {
        source: source.into(),
        figure: figure.into(),
        label: "label".into(),
        caveat: None,
    }]
}

#[test]
fn figures_of_several_stages_are_told_in_their_order() {
    let pointed = pointing_to("structural_changes", "linux_rps");
    let published = look_up(FIGURES, "seed-figures.toml", &pointed).unwrap();
    assert_eq!(published[0].value, "1842 → 1839 → 1864 → 2700 → 2717");
}

#[test]
fn a_figure_that_is_not_there_is_named() {
    for (source, figure) in [("web_profiling_intro", "nothing"), ("nowhere", "read_rps")] {
        let error = look_up(FIGURES, "seed-figures.toml", &pointing_to(source, figure));
        let sentence = error.unwrap_err();
        let remedy = "correct the [[reference]]";
        for part in ["seed-figures.toml", source, figure, remedy] {
            assert!(sentence.contains(part), "{part} is not in: {sentence}");
        }
    }
}

#[test]
fn a_file_that_is_not_toml_is_named() {
    let error = look_up("= 3", "seed-figures.toml", &[]).unwrap_err();
    assert!(error.starts_with("seed-figures.toml: not understood (") && error.ends_with('.'));
    assert_eq!(error.lines().count(), 1, "{error}");
}
