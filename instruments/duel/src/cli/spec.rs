//! One request to a reader's own service, as the command line or an access log gives it, and the route that it becomes.

use std::sync::Arc;

use engine::traffic::{Expected, Request, Route};

/// Largest number of values of a path, each of which becomes a request.
pub(crate) const MOST_VALUES: usize = 100_000;
/// Smallest share of all requests that one route may have.
pub(crate) const SELDOM: f64 = 1e-5;

/// One `--get` or `--request`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spec {
    pub(crate) method: String,
    /// The path up to the value, or all of it.
    pub(crate) before: String,
    pub(crate) values: Option<Values>,
    pub(crate) after: String,
    pub(crate) weight: f64,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
    /// Statuses that are right beside the usual one.
    pub(crate) allowed: Arc<[u16]>,
}

/// Values of a path, from which each request draws one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    Range(u64, u64),
    /// Text that is shown for the values, and the values.
    Listed(String, Vec<String>),
}

impl Values {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Range(first, last) => {
                let others = usize::try_from(last - first).unwrap_or(usize::MAX);
                others.saturating_add(1)
            }
            Self::Listed(_, lines) => lines.len(),
        }
    }
}

impl Spec {
    /// Returns the name of the route, such as `GET /checkout/{1..5000}`.
    pub(crate) fn name(&self) -> String {
        let value = match &self.values {
            None => String::new(),
            Some(Values::Range(first, last)) => format!("{{{first}..{last}}}"),
            Some(Values::Listed(shown, _)) => format!("{{{shown}}}"),
        };
        format!("{} {}{value}{}", self.method, self.before, self.after)
    }

    pub(crate) fn route(&self) -> Route {
        let values: Vec<String> = match &self.values {
            None => vec![String::new()],
            Some(Values::Range(first, last)) => (*first..=*last).map(|n| n.to_string()).collect(),
            Some(Values::Listed(_, lines)) => lines.clone(),
        };
        let mut requests = Vec::with_capacity(values.len());
        for value in values {
            requests.push(Request {
                method: self.method.clone(),
                path: format!("{}{value}{}", self.before, self.after),
                headers: self.headers.clone(),
                body: self.body.clone(),
                expected: Expected {
                    allowed: self.allowed.clone(),
                    ..Expected::of(200, None)
                },
            });
        }
        Route {
            name: self.name(),
            weight: self.weight,
            requests,
        }
    }
}
