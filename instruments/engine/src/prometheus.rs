//! Metrics of a server, read from its Prometheus text: the lab's, or that of any service.

/// One line of Prometheus text: `name value` or `name{labels} value`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample<'a> {
    /// The metric's name.
    pub name: &'a str,
    /// Set if it is one of several, told apart by labels.
    pub is_labelled: bool,
    /// Its value, which is finite.
    pub value: f64,
}

/// Returns the samples of Prometheus text. Skips lines that are no samples, and values that are no finite numbers.
pub fn samples(text: &str) -> impl Iterator<Item = Sample<'_>> {
    text.lines().filter_map(sample)
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let line = line.trim_ascii_start();
    let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':')?;
    let (name, rest) = line.split_at(end);
    let (is_labelled, rest) = match rest.trim_ascii_start().strip_prefix('{') {
        Some(labels) => (true, &labels[end_of_labels(labels)?..]),
        None => (false, rest.strip_prefix([' ', '\t'])?),
    };
    // A time may follow, and then an example of what was counted.
    let mut words = rest.split('#').next()?.split_ascii_whitespace();
    let value: f64 = words.next()?.parse().ok()?;
    if let Some(time) = words.next() {
        time.parse::<f64>().ok()?;
    }
    if name.is_empty() || words.next().is_some() || !value.is_finite() {
        return None;
    }
    Some(Sample {
        name,
        is_labelled,
        value,
    })
}

/// Returns the end of the labels, their bracket included. Quoted text may hold any character.
fn end_of_labels(labels: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = labels.bytes().position(|byte| {
        if is_escaped {
            is_escaped = false;
        } else {
            is_escaped = is_quoted && byte == b'\\';
            is_quoted ^= byte == b'"';
        }
        !is_quoted && byte == b'}'
    });
    end.map(|end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads text as other services than the lab's write it.
    #[test]
    fn times_tabs_labels_and_exemplars_are_no_part_of_a_value() {
        let text = "timed_total 3 1395066363000\ntabbed\t4\n  indented 5\n\
                    example_total 17 1520879607.7 # {trace=\"a\"} 0.67\n\
                    route_total {path=\"/a}b\\\"#\"} 8 # {trace=\"a\"} 0.67\n\
                    three 1 2 3\nglued\"1\" 2\n{quoted=\"name\"} 9\ncut{path=\"/} 1\n";
        let read: Vec<(&str, f64)> = samples(text).map(|one| (one.name, one.value)).collect();
        let right = [
            ("timed_total", 3.0),
            ("tabbed", 4.0),
            ("indented", 5.0),
            ("example_total", 17.0),
            ("route_total", 8.0),
        ];
        assert_eq!(read, right);
    }
}
