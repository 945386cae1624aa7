//! A condition of a sentence: an expression over the book's figures that has to be true.

use std::sync::{Arc, Mutex, PoisonError};

use measurement::figures::number;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};

use super::figures::Figures;

/// Evaluates conditions.
pub(super) struct Conditions {
    environment: Environment<'static>,
    figures: Arc<Figures>,
    variables: Value,
    /// What the functions of the condition at hand gave, as `median(…) = 0.2`.
    given: Arc<Mutex<Vec<String>>>,
}

const FUNCTIONS: [&str; 2] = ["median", "cell"];

impl Conditions {
    pub(super) fn new(figures: Arc<Figures>) -> Self {
        let given = Arc::<Mutex<Vec<String>>>::default();
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let error = |why| Error::new(ErrorKind::InvalidOperation, why);
        let note = |given: &Mutex<Vec<String>>, call: String, value: &Value| {
            let mut given = given.lock().unwrap_or_else(PoisonError::into_inner);
            given.push(format!("{call} = {value}"));
        };
        let (source, notes) = (Arc::clone(&figures), Arc::clone(&given));
        environment.add_function(
            "median",
            move |chapter: &str, scenario: &str, variant: &str, metric: &str| {
                let value = source.median(chapter, scenario, variant, metric);
                let value = Value::from(value.map_err(error)?);
                let call = format!("median of {metric}, {chapter}, {scenario}, {variant}");
                note(&notes, call, &value);
                Ok(value)
            },
        );
        let (source, notes) = (Arc::clone(&figures), Arc::clone(&given));
        environment.add_function("cell", move |file: &str, row: &str, column: &str| {
            let value = source.cell(file, row, column).map_err(error)?;
            note(&notes, format!("{file}, {row}, {column}"), &value);
            Ok(value)
        });
        Self {
            environment,
            variables: figures.variables(),
            figures,
            given,
        }
    }

    /// `Ok` if the condition is true; otherwise what is wrong with it, values included.
    pub(super) fn check(&self, condition: &str) -> Result<(), String> {
        let parsed = self.environment.compile_expression(condition);
        let expression = parsed.map_err(|error| format!("does not parse: {}", said(&error)))?;
        let mut names: Vec<String> = expression
            .undeclared_variables(true)
            .into_iter()
            .filter(|name| !FUNCTIONS.contains(&name.as_str()))
            .collect();
        names.sort_unstable();
        let mut used = Vec::new();
        for name in &names {
            let text = self.figures.text(name);
            let text = text.ok_or_else(|| format!("names `{name}`, which is no figure"))?;
            if text == "unknown" {
                return Err(format!("names `{name}`, which is unknown in the record"));
            }
            // The library would order a text and a number somehow.
            let is_compared = ["==", "!="].into_iter().any(|by| {
                condition.contains(&format!("{name} {by}"))
                    || condition.contains(&format!("{by} {name}"))
            });
            if number(text).is_none() && !is_compared {
                return Err(format!(
                    "names `{name}`, which is the text `{text}`: compare it by `==`"
                ));
            }
            used.push(format!("{name} = {text}"));
        }
        self.given().clear();
        let value = expression.eval(self.variables.clone());
        let value = value.map_err(|error| format!("cannot be evaluated: {}", said(&error)))?;
        used.append(&mut self.given());
        if used.is_empty() {
            return Err("names no figure".to_owned());
        }
        if value == Value::from(true) && value.kind() == minijinja::value::ValueKind::Bool {
            return Ok(());
        }
        let what = if value == Value::from(false) {
            "is false"
        } else {
            "is neither true nor false"
        };
        Err(format!("{what}: {}", used.join(", ")))
    }

    fn given(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without the name and line of a template, which a condition has not.
fn said(error: &Error) -> String {
    let detail = error.detail().map(str::to_owned);
    detail.unwrap_or_else(|| error.kind().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_holds_or_says_why_not() {
        let folder = tempfile::tempdir().unwrap();
        let values = [
            ("effect", "74"),
            ("tls", "68.7"),
            ("off", "48 %"),
            ("word", "proved"),
        ];
        let anchor =
            |(name, value)| format!("<!-- ANCHOR: {name} -->\n{value}\n<!-- ANCHOR_END -->\n");
        let text: String = values
            .into_iter()
            .chain([("none", "unknown")])
            .map(anchor)
            .collect();
        std::fs::create_dir(folder.path().join("chapter4")).unwrap();
        std::fs::write(folder.path().join("chapter4/values.md"), text).unwrap();
        let table = "| | a | b |\n| --- | ---: | ---: |\n| p99 | 2 ms | 3 s |\n";
        std::fs::write(folder.path().join("table.md"), table).unwrap();
        let figures = Figures::read(folder.path()).unwrap();
        let conditions = Conditions::new(Arc::new(figures));
        for holds in [
            "chapter4.tls < chapter4.effect",
            "0.9 < chapter4.tls / chapter4.effect < 1.1",
            "chapter4.off < 0.5 and not chapter4.tls > 70",
            "chapter4.word == 'proved'",
            "cell('table', 'p99', 'a') < cell('table', 'p99', 'b') / 1000",
        ] {
            assert_eq!(conditions.check(holds), Ok(()), "{holds}");
        }
        for (fails, why) in [
            ("chapter4.tls > chapter4.effect", "chapter4.tls = 68.7"),
            ("chapter4.tls >", "does not parse"),
            (
                "chapter4.nothing > 1",
                "`chapter4.nothing`, which is no figure",
            ),
            ("chapter5.tls > 1", "`chapter5.tls`, which is no figure"),
            ("chapter4.word < 3", "compare it by `==`"),
            ("chapter4.none == 3", "unknown"),
            ("chapter4.effect", "neither true nor false"),
            ("1 < 2", "names no figure"),
            ("cell('table', 'p50', 'a') > 1", "no row `p50`"),
            (
                "median('chapter4', 'one', 'problem', 'p99') > 1",
                "no record",
            ),
        ] {
            let said = conditions.check(fails).unwrap_err();
            assert!(said.contains(why), "{fails}: {said}");
        }
    }
}
