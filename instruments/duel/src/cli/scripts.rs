//! Scripts for k6 and for Locust that send the same load, for the reader to extend.

use std::path::Path;

use children::program;
use engine::bodies::names;
use engine::login::Login;
use engine::traffic::Traffic;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value, context};

use crate::cli::options::Sent;
use crate::cli::spec::{Spec, Values};
use terminal::exit::CliError;

/// Settings that both scripts have at their top.
pub(crate) struct About<'a> {
    pub(crate) host: String,
    /// File of the certificate authorities to trust, for HTTPS.
    pub(crate) cacert: Option<&'a Path>,
    /// `true` for HTTPS without a check of the certificate.
    pub(crate) insecure: bool,
    pub(crate) users: u32,
    /// Seconds.
    pub(crate) think: f64,
    /// Requests per second, in an open loop.
    pub(crate) rate: Option<f64>,
    pub(crate) seconds: f64,
    /// Login that is sent before all other requests.
    pub(crate) login: Option<&'a Login>,
}

/// Returns the statuses that the answers of each route may have, as a list in the syntax of both languages.
pub(crate) fn statuses(traffic: &Traffic) -> Vec<String> {
    let mut all = Vec::new();
    for route in traffic.routes.iter() {
        // Values may have answers of their own.
        let mut statuses = Vec::new();
        for request in &route.requests {
            let expected = &request.expected;
            for status in [&[expected.status], &*expected.allowed].concat() {
                if !statuses.contains(&status) {
                    statuses.push(status);
                }
            }
        }
        all.push(format!("{statuses:?}"));
    }
    all
}

/// Checks that the scripts of `option` can send the same load.
pub(crate) fn sendable(option: &str, sent: &Sent, specs: &[Spec]) -> Result<(), CliError> {
    if sent.http2 {
        return Err(CliError::usage(format!(
            "{option} and --http2 do not go together: Locust speaks HTTP/1.1, and k6 chooses by itself"
        )));
    }
    for spec in specs {
        if let Some(body) = &spec.body
            && str::from_utf8(body).is_err()
        {
            return Err(CliError::usage(format!(
                "{option}: the --body of {} is no text in UTF-8, which a script could hold",
                spec.name()
            )));
        }
    }
    Ok(())
}

/// Returns a script for `k6 run`.
pub(crate) fn k6(about: &About<'_>, specs: &[Spec], statuses: &[String]) -> String {
    rendered(include_str!("scripts/k6.js.jinja"), about, specs, statuses)
}

/// Returns a file for `locust -f`.
pub(crate) fn locust(about: &About<'_>, specs: &[Spec], statuses: &[String]) -> String {
    let template = include_str!("scripts/locust.py.jinja");
    rendered(template, about, specs, statuses)
}

/// Fills a template in.
fn rendered(template: &str, about: &About<'_>, specs: &[Spec], statuses: &[String]) -> String {
    let mut syntax = SyntaxConfig::builder();
    syntax
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true);
    let mut templates = Environment::new();
    templates.set_syntax(syntax.build().expect("the usual delimiters"));
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.add_filter("literal", literal);
    let is_paced = about.rate.is_some();
    let values = context! {
        program => program::running().name.as_str(),
        host => about.host.as_str(),
        cacert => about.cacert.map(|cacert| cacert.display().to_string()),
        insecure => about.insecure,
        users => about.users,
        think => about.think.to_string(),
        pause => !is_paced && about.think > 0.0,
        rate => about.rate.map(|rate| rate.round().max(1.0).to_string()),
        seconds => about.seconds.to_string(),
        login => about.login.map(login),
        requests => requests(specs, statuses),
    };
    templates
        .render_named_str("script", template, values)
        .expect("a template that uses these values")
}

/// Returns the values of the login's request. `token` is the way to the token in the answer.
fn login(login: &Login) -> Value {
    let Login { request, token } = login;
    context! {
        method => request.method.as_str(),
        path => request.path.as_str(),
        body => body(request.body.as_deref()),
        headers => headers(&request.headers),
        token => token.as_ref().map(|token| list(&names(&token.pointer))),
        scheme => token.as_ref().map(|token| token.scheme.as_str()),
    }
}

/// Returns the values of each request. A path may hold a number from `first` to `last`, or an element of `listed`.
fn requests(specs: &[Spec], statuses: &[String]) -> Vec<Value> {
    let mut lightest = f64::MAX;
    for spec in specs {
        lightest = lightest.min(spec.weight);
    }
    let mut requests = Vec::new();
    for (spec, statuses) in specs.iter().zip(statuses) {
        let (mut range, mut listed) = (None, None);
        match &spec.values {
            None => {}
            Some(Values::Range(first, last)) => range = Some((*first, *last)),
            Some(Values::Listed(_, lines)) => listed = Some(list(lines)),
        }
        requests.push(context! {
            name => spec.name(),
            weight => spec.weight.to_string(),
            // Locust takes only whole numbers as weights.
            times => (spec.weight / lightest).round().max(1.0).to_string(),
            method => spec.method.as_str(),
            before => spec.before.as_str(),
            after => spec.after.as_str(),
            first => range.map(|(first, _)| first.to_string()),
            last => range.map(|(_, last)| last.to_string()),
            number => range.map(|(first, last)| (last - first + 1).to_string()),
            listed => listed,
            body => body(spec.body.as_deref()),
            headers => headers(&spec.headers),
            statuses => statuses.as_str(),
        });
    }
    requests
}

/// Returns a text as a literal of JavaScript, Python and JSON alike.
fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a list of texts, in the syntax of both languages.
fn list(texts: &[String]) -> String {
    let all: Vec<String> = texts.iter().map(|text| literal(text)).collect();
    format!("[{}]", all.join(", "))
}

/// Returns a body as a literal.
fn body(body: Option<&[u8]>) -> Option<String> {
    body.map(|body| literal(&String::from_utf8_lossy(body)))
}

/// Returns the entries of a map of headers, in the syntax of both languages. `host` is left out: the tool sets it.
fn headers(headers: &[(String, String)]) -> String {
    let own = headers.iter().filter(|(name, _)| name != "host");
    let all: Vec<String> = own
        .map(|(name, value)| format!("{}: {}", literal(name), literal(value)))
        .collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::login::Token;
    use engine::traffic::Request;

    /// Compares the scripts of three loads with those in `tests/scripts`, which `UPDATE_EXPECT=1` writes.
    #[test]
    fn scripts_are_as_recorded() {
        let request = |method: &str, before: &str, values, after: &str, weight| Spec {
            method: method.to_owned(),
            before: before.to_owned(),
            values,
            after: after.to_owned(),
            weight,
            headers: Vec::new(),
            body: None,
            allowed: [].into(),
        };
        let headers = [("host", "shop.test"), ("accept", "a \"quoted\" one")];
        let listed = Values::Listed(
            "names".to_owned(),
            vec!["a<b".to_owned(), "c\"d".to_owned()],
        );
        let specs = [
            request("GET", "/health", None, "", 1.0),
            request("GET", "/row/", Some(Values::Range(5, 104)), "?all", 2.5),
            Spec {
                headers: headers
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
                body: Some(b"{\"name\": \"me\"}\n".to_vec()),
                ..request("POST", "/name/", Some(listed), "", 1.0)
            },
        ];
        let statuses = ["[200]", "[200]", "[201, 503]"].map(str::to_owned);
        let token = Login {
            request: Request {
                method: "POST".to_owned(),
                headers: vec![("accept".to_owned(), "*/*".to_owned())],
                body: Some("{\"name\": \"me\"}".into()),
                ..Request::get("/login")
            },
            token: Some(Token {
                pointer: "/data/token".to_owned(),
                scheme: "Bearer".to_owned(),
            }),
        };
        let cookie = Login {
            request: Request::get("/login"),
            token: None,
        };
        let closed = About {
            host: "http://127.0.0.1:8080".to_owned(),
            cacert: None,
            insecure: false,
            users: 50,
            think: 0.5,
            rate: None,
            seconds: 10.0,
            login: Some(&token),
        };
        let trusting = About {
            host: "https://localhost:8443".to_owned(),
            cacert: Some(Path::new("certificates/ca.pem")),
            think: 0.0,
            seconds: 0.3,
            login: Some(&cookie),
            ..closed
        };
        let open = About {
            host: "https://localhost:8443".to_owned(),
            insecure: true,
            rate: Some(99.7),
            login: None,
            ..closed
        };
        for (name, about) in [("closed", closed), ("trusting", trusting), ("open", open)] {
            for (extension, script) in [
                ("js", k6(&about, &specs, &statuses)),
                ("py", locust(&about, &specs, &statuses)),
            ] {
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
                let file = folder.join(name).with_extension(extension);
                if std::env::var_os("UPDATE_EXPECT").is_some() {
                    std::fs::write(&file, &script).unwrap();
                }
                let recorded = std::fs::read_to_string(&file).unwrap();
                assert_eq!(script, recorded, "{}", file.display());
            }
        }
    }
}
