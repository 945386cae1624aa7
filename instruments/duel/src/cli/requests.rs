//! Requests to a reader's own service, as the command line gives them: `/checkout/{1..5000} x3`.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::load::{Protocol, Tls};
use engine::login::{Login, Token};
use engine::traffic::{Arrivals, Paced, Part, Route, Rule, Spacing, Traffic, fresh_seed};
use engine::url::Url;
use http::{HeaderName, HeaderValue};

use crate::cli::access_log;
use crate::cli::options::{Bodies, Sent};
use crate::cli::spec::{MOST_VALUES, SELDOM, Spec, Values};
use engine::answers::How;
use terminal::exit::CliError;

/// Largest size of all requests together, in bytes.
const MOST_BYTES: usize = 256 << 20;

/// Returns all requests that `sent` names, those of `--get` before those of `--request`. If it names none, the request
/// is the `path` of a URL. Also returns notes on the requests of an access log.
pub(crate) fn specs(sent: &Sent, path: Option<&str>) -> Result<(Vec<Spec>, Vec<String>), CliError> {
    let headers = headers(&sent.header)?;
    let (mut specs, notes) = match &sent.access_log {
        Some(file) => access_log::specs(file)?,
        None => Default::default(),
    };
    for get in &sent.get {
        specs.push(spec("--get", "GET", get)?);
    }
    let mut bodies = sent.body.iter();
    for request in &sent.request {
        let Some((method, rest)) = request.split_once(' ') else {
            return Err(CliError::usage(format!(
                "--request takes a method and a path, such as 'POST /orders', not {request:?}"
            )));
        };
        let is_method = !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase());
        if !is_method || method == "HEAD" || method == "CONNECT" {
            return Err(CliError::usage(format!(
                "--request takes a method such as GET, POST, PUT, PATCH or DELETE, not {method:?}"
            )));
        }
        let mut spec = spec("--request", method, rest)?;
        let body = match &sent.body[..] {
            [one] if method != "GET" && method != "DELETE" => Some(one),
            [_] => None,
            _ => bodies.next(),
        };
        if let Some(body) = body {
            spec.body = Some(bytes_of(body)?);
        }
        specs.push(spec);
    }
    if sent.body.len() > 1 && sent.body.len() != sent.request.len() {
        return Err(CliError::usage(
            "--body is given once for all requests that have one, or once for each --request",
        ));
    }
    if !sent.body.is_empty() && specs.iter().all(|spec| spec.body.is_none()) {
        return Err(CliError::usage(
            "--body belongs to a --request such as 'POST /orders', and there is none",
        ));
    }
    if specs.is_empty() {
        let Some(path) = path else {
            return Err(CliError::usage(
                "no request is named: give a path, such as --get /checkout/1",
            ));
        };
        specs.push(spec("--url", "GET", path)?);
    }
    let weights: f64 = specs.iter().map(|spec| spec.weight).sum();
    let seldom = specs.iter().find(|spec| spec.weight / weights < SELDOM);
    if let Some(spec) = seldom {
        return Err(CliError::usage(format!(
            "{} would be sent less than once in 100,000 requests, so perhaps never: give it more weight",
            spec.name()
        )));
    }
    let allowed: Arc<[u16]> = sent.allow_status.clone().into();
    for spec in &mut specs {
        spec.allowed.clone_from(&allowed);
        spec.headers.clone_from(&headers);
        if let Some(body) = &spec.body
            && let [b'{' | b'[', ..] = body.trim_ascii_start()
            && !has(&headers, "content-type")
        {
            spec.headers
                .push(("content-type".to_owned(), "application/json".to_owned()));
        }
        if is_grpc(&headers) && spec.method == "POST" {
            if !sent.http2 {
                return Err(CliError::usage("gRPC is spoken over HTTP/2: add --http2"));
            }
            spec.body = Some(framed(spec.body.take().unwrap_or_default()));
            if !has(&headers, "te") {
                spec.headers.push(("te".to_owned(), "trailers".to_owned()));
            }
        }
    }
    let mut names = std::collections::BTreeSet::new();
    for spec in &specs {
        if !names.insert(spec.name()) {
            return Err(CliError::usage(format!(
                "{} is named twice: name it once, with a weight such as x2",
                spec.name()
            )));
        }
    }
    Ok((specs, notes))
}

/// Returns the login that every server gets before all other requests, if `sent` names one.
pub(crate) fn login(sent: &Sent) -> Result<Option<Login>, CliError> {
    let Some(line) = &sent.login else {
        return Ok(None);
    };
    let (method, path) = line.split_once(' ').unwrap_or(("POST", line));
    let mut spec = spec("--login", method, path)?;
    spec.headers = headers(&sent.header)?;
    if let Some(body) = &sent.login_body {
        spec.body = Some(bytes_of(body)?);
    }
    let mut request = spec.route().requests.remove(0);
    if let Some(body) = &request.body
        && !has(&spec.headers, "content-type")
    {
        let kind = if body.trim_ascii_start().starts_with(b"{") {
            "application/json"
        } else {
            "application/x-www-form-urlencoded"
        };
        request
            .headers
            .push(("content-type".to_owned(), kind.to_owned()));
    }
    Ok(Some(Login {
        request,
        token: sent.login_token.clone().map(|pointer| Token {
            pointer,
            scheme: sent.login_scheme.clone(),
        }),
    }))
}

/// Returns the rule by which an answer counts as right.
pub(crate) fn how(sent: &Sent) -> How {
    let part = match sent.compare {
        None | Some(Bodies::Body | Bodies::Json) => Part::Body,
        Some(Bodies::Size) => Part::Size,
        Some(Bodies::Status) => Part::Status,
    };
    let json = if sent.compare == Some(Bodies::Json) || !sent.ignore_json.is_empty() {
        Some(sent.ignore_json.clone().into())
    } else {
        None
    };
    let rule = if sent.compare.is_some() || json.is_some() {
        Some(Rule { part, json })
    } else {
        None
    };
    How {
        status: sent.expect_status,
        rule,
        judge: sent.judge.clone(),
    }
}

/// Returns the load: `rate` requests per second, or `users` who each think for `think` seconds before a request.
/// `seconds` is the length of the recorded load.
pub(crate) fn traffic(
    sent: &Sent,
    specs: &[Spec],
    users: u32,
    (rate, think): (Option<f64>, f64),
    seconds: f64,
) -> Result<Traffic, CliError> {
    let routes: Vec<Route> = specs.iter().map(Spec::route).collect();
    let mut bytes = 0;
    for route in &routes {
        for request in &route.requests {
            bytes += request.path.len() + request.body.as_deref().unwrap_or_default().len() + 200;
        }
    }
    if bytes > MOST_BYTES {
        return Err(CliError::usage(
            "all requests together are over 256 MiB: name fewer values or a shorter body",
        ));
    }
    let mut bystander = None;
    if let Some(path) = &sent.bystander {
        let spec = Spec {
            headers: headers(&sent.header)?,
            allowed: sent.allow_status.clone().into(),
            ..spec("--bystander", "GET", path)?
        };
        bystander = Some(Paced {
            route: spec.route(),
            per_second: sent.bystander_rate,
            spacing: sent.arrivals,
        });
    }
    Ok(Traffic {
        routes: routes.into(),
        bystander,
        arrivals: match rate {
            Some(per_second) => Arrivals::Open {
                per_second,
                spacing: sent.arrivals,
            },
            None => Arrivals::Closed {
                think: Duration::from_secs_f64(think),
            },
        },
        keep_alive: !sent.no_keep_alive,
        warm_up: Duration::from_secs_f64(sent.warm_up),
        duration: Duration::from_secs_f64(seconds),
        time_out: Duration::from_secs_f64(sent.time_out),
        seed: sent.seed.unwrap_or_else(fresh_seed).into(),
        ..Traffic::closed([], users)
    })
}

/// Returns whether some of a load's requests are due at random moments.
fn has_random_moments(traffic: &Traffic) -> bool {
    if let Arrivals::Open {
        spacing: Spacing::Poisson,
        ..
    } = traffic.arrivals
    {
        return true;
    }
    match &traffic.bystander {
        Some(paced) => paced.spacing == Spacing::Poisson,
        None => false,
    }
}

/// Returns a note on the seed that repeats the random moments and values of a load; `None` if it has neither. A search
/// loads at rates of its own, with the spacing `of_search`.
pub(crate) fn repeats(traffic: &Traffic, of_search: Option<Spacing>) -> Option<String> {
    let drawn = match (
        of_search == Some(Spacing::Poisson) || has_random_moments(traffic),
        traffic.routes.iter().any(|route| route.requests.len() > 1),
    ) {
        (true, true) => "moments and values of requests",
        (true, false) => "moments of requests",
        (false, true) => "values of requests",
        (false, false) => return None,
    };
    Some(format!(
        "{drawn} were drawn at random; --seed {} repeats them.",
        traffic.seed
    ))
}

/// Returns whether `headers` have one of this name, in any case.
pub(crate) fn has(headers: &[(String, String)], name: &str) -> bool {
    headers
        .iter()
        .any(|(other, _)| other.eq_ignore_ascii_case(name))
}

fn headers(lines: &[String]) -> Result<Vec<(String, String)>, CliError> {
    /// Headers that the generator sets itself.
    const OWN: [&str; 3] = ["connection", "content-length", "transfer-encoding"];
    let mut headers = Vec::new();
    for line in lines {
        let wrong = |why: &str| CliError::usage(format!("--header {line:?}: {why}"));
        let Some((name, value)) = line.split_once(':') else {
            return Err(wrong("write it as 'Name: value'"));
        };
        if HeaderName::from_bytes(name.as_bytes()).is_err()
            || HeaderValue::from_bytes(value.trim().as_bytes()).is_err()
        {
            return Err(wrong("that is no header of HTTP"));
        }
        if OWN.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            return Err(wrong("the generator sets it by itself; leave it out"));
        }
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    Ok(headers)
}

/// Returns a body as it stands, or the content of a file: `@order.json`.
fn bytes_of(body: &str) -> Result<Vec<u8>, CliError> {
    match body.strip_prefix('@') {
        None => Ok(body.into()),
        Some(file) => fs::read(file).map_err(|error| CliError::usage(format!("{body}: {error}"))),
    }
}

fn is_grpc(headers: &[(String, String)]) -> bool {
    headers.iter().any(|(name, kind)| {
        name.eq_ignore_ascii_case("content-type")
            // `application/grpc-web` is another protocol.
            && matches!(kind.strip_prefix("application/grpc"), Some(rest) if !rest.starts_with('-'))
    })
}

/// Puts a gRPC message into its frame, a flag and the length before it. A message that has a frame stays as it is. No
/// message without a frame begins with the byte of a flag.
fn framed(message: Vec<u8>) -> Vec<u8> {
    match message.split_at_checked(5) {
        Some((&[0 | 1, ref said @ ..], rest)) if *said == length_of(rest) => message,
        _ => [&[0], &length_of(&message)[..], &message].concat(),
    }
}

fn length_of(message: &[u8]) -> [u8; 4] {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    length.to_be_bytes()
}

/// Parses `/path`, `/path x3`, `/path/{1..9}/more` or `/path/{file:ids.txt}`.
fn spec(option: &str, method: &str, text: &str) -> Result<Spec, CliError> {
    let wrong = |why: &str| CliError::usage(format!("{option} {text:?}: {why}"));
    let (path, weight) = match text.trim().rsplit_once(" x") {
        Some((path, weight)) => match weight.parse::<f64>() {
            Ok(weight) if weight.is_finite() && weight > 0.0 => (path.trim(), weight),
            _ => return Err(wrong("a weight is a number above 0, such as x3")),
        },
        None => (text.trim(), 1.0),
    };
    if !path.starts_with('/') {
        return Err(wrong("a path begins with /, such as /checkout/1"));
    }
    if let Some(bad) = path.chars().find(|c| !c.is_ascii_graphic()) {
        return Err(wrong(&format!(
            "a path has no {bad:?}; write it percent-encoded, such as %20 for a space"
        )));
    }
    let mut spec = Spec {
        method: method.to_owned(),
        before: path.to_owned(),
        values: None,
        after: String::new(),
        weight,
        headers: Vec::new(),
        body: None,
        allowed: Arc::default(),
    };
    if let Some((before, rest)) = path.split_once('{') {
        let Some((value, after)) = rest.split_once('}') else {
            return Err(wrong("a { has no }"));
        };
        if after.contains(['{', '}']) {
            return Err(wrong("a path takes one value, and this one has two"));
        }
        spec.values = Some(values(value).map_err(|why| wrong(&why))?);
        (spec.before, spec.after) = (before.to_owned(), after.to_owned());
    }
    Ok(spec)
}

fn values(text: &str) -> Result<Values, String> {
    let values = if let Some(file) = text.strip_prefix("file:") {
        let all = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let lines = all.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        if let Some(bad) = lines
            .iter()
            .find(|line| !line.bytes().all(|b| b.is_ascii_graphic()))
        {
            return Err(format!(
                "{file}: {bad:?} cannot stand in a path; percent-encode it"
            ));
        }
        if lines.is_empty() {
            return Err(format!("{file} has no lines"));
        }
        Values::Listed(text.to_owned(), lines)
    } else {
        match range(text) {
            Some((first, last)) if first <= last => Values::Range(first, last),
            _ => {
                return Err(
                    "values are {1..5000}, both ends included, or {file:ids.txt}, a value a line"
                        .to_owned(),
                );
            }
        }
    };
    if values.len() > MOST_VALUES {
        return Err("that is more than 100,000 values; name fewer".to_owned());
    }
    Ok(values)
}

fn range(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once("..")?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// Note on a result with `--insecure`.
pub(crate) const UNCHECKED: &str = "the server's certificate was not checked (--insecure).";

/// Returns the protocol of a service whose certificate is for `host`: HTTPS if `sent` says whom to trust.
pub(crate) fn protocol(sent: &Sent, host: &str) -> Result<Protocol, CliError> {
    if sent.http2 && !cfg!(feature = "http2") {
        return Err(CliError::usage(
            "--http2: this program was built without HTTP/2; build it with its feature `http2`",
        ));
    }
    let tls = match &sent.cacert {
        Some(cacert) => Some(tls(cacert, host)?),
        None if sent.insecure => Some(Tls::unchecked(host).map_err(CliError::usage)?),
        None => None,
    };
    Ok(Protocol {
        tls,
        http2: sent.http2,
    })
}

/// Trusts the authority whose certificate is in the file `cacert`, for `host`.
fn tls(cacert: &Path, host: &str) -> Result<Tls, CliError> {
    let wrong = |why: &dyn std::fmt::Display| {
        CliError::usage(format!("--cacert {}: {why}", cacert.display()))
    };
    let pem = fs::read(cacert).map_err(|error| wrong(&error))?;
    Tls::trusting(&pem, host).map_err(|error| wrong(&error))
}

/// Server, host and path that a URL names.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) server: engine::load::Target,
    /// `https://HOST[:PORT]`.
    pub(crate) origin: String,
    /// The authority, for the `host` header.
    pub(crate) host: String,
    /// Path of the URL; `None` if it has none, or `/`.
    pub(crate) path: Option<String>,
}

impl Target {
    /// Parses `http://HOST[:PORT][/PATH]`, or `https://…` if `sent` says whom to trust.
    pub(crate) fn of(option: &str, text: &str, sent: &Sent) -> Result<Self, CliError> {
        let wrong =
            |why: &dyn std::fmt::Display| CliError::usage(format!("{option} {text}: {why}"));
        let url = Url::find(text).map_err(|error| wrong(&error))?;
        let is_trusting = sent.cacert.is_some() || sent.insecure;
        if url.is_encrypted && !is_trusting {
            return Err(wrong(
                &"say whom to trust, by --cacert FILE: the certificate, in PEM, of the authority that signed the \
                  service's; that of a public one is among the system's, on Debian in \
                  /etc/ssl/certs/ca-certificates.crt. Or check no certificate, by --insecure",
            ));
        }
        if is_trusting && !url.is_encrypted {
            return Err(wrong(
                &"--cacert and --insecure are for a URL with https://",
            ));
        }
        Ok(Self {
            server: engine::load::Target {
                address: url.address,
                protocol: protocol(sent, &url.authority)?,
                headers: Arc::default(),
            },
            origin: url.origin(),
            host: url.authority,
            path: url.path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_a_weight_and_a_value() {
        let spec = spec("--get", "GET", "/checkout/{1..3}/lines?full=1 x2.5").unwrap();
        assert!((spec.weight - 2.5).abs() < 1e-9);
        assert_eq!(spec.name(), "GET /checkout/{1..3}/lines?full=1");
        let route = spec.route();
        let paths: Vec<&str> = route.requests.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths[0], "/checkout/1/lines?full=1");
        assert_eq!(paths.len(), 3);
    }

    #[test]
    fn values_are_lines_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ids.txt");
        fs::write(&file, "a\n\n b \n").unwrap();
        let text = format!("/x/{{file:{}}}", file.display());
        let route = spec("--get", "GET", &text).unwrap().route();
        assert_eq!(route.requests[1].path, "/x/b");
        assert_eq!(route.requests.len(), 2);
    }

    #[test]
    fn a_message_of_grpc_gets_the_frame_that_it_lacks() {
        let framed_one = [0, 0, 0, 0, 3, 10, 1, 65];
        assert_eq!(framed(vec![10, 1, 65]), framed_one);
        assert_eq!(framed(framed_one.to_vec()), framed_one);
        assert_eq!(framed(Vec::new()), [0; 5]);
        for (kind, expected) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc-web", false),
        ] {
            let headers = [("Content-Type".to_owned(), kind.to_owned())];
            assert_eq!(is_grpc(&headers), expected, "{kind}");
        }
    }

    #[test]
    fn what_is_no_path_is_told() {
        for (text, word) in [
            ("checkout", "begins with /"),
            ("/a b", "percent-encoded"),
            ("/a x0", "above 0"),
            ("/a/{1..", "has no }"),
            ("/a/{5..1}", "{1..5000}"),
            ("/a/{1..2}/{3..4}", "takes one value"),
            ("/a/{1..5000000}", "100,000"),
            ("/a/{file:none-such.txt}", "none-such.txt"),
        ] {
            let said = spec("--get", "GET", text).unwrap_err().to_string();
            assert!(said.contains(word), "{said}");
        }
    }

    #[test]
    fn a_url_says_whom_to_trust_or_is_plain() {
        let sent = Sent::plain();
        let target = Target::of("--url", "http://localhost:8080/checkout/1", &sent).unwrap();
        assert_eq!(target.host, "localhost:8080");
        assert_eq!(target.path.as_deref(), Some("/checkout/1"));
        let with_values = Target::of("--url", "localhost:1/a/{1..3}?b=c", &sent).unwrap();
        assert_eq!(with_values.path.as_deref(), Some("/a/{1..3}?b=c"));
        let sixth = Target::of("--url", "http://[::1]:9", &sent).unwrap();
        assert_eq!(sixth.server.address, "[::1]:9".parse().unwrap());
        let bare = Target::of("--url", "127.0.0.1", &sent).unwrap();
        assert_eq!(bare.origin, "http://127.0.0.1");
        for (wrong, word) in [
            ("https://127.0.0.1", "--cacert FILE"),
            ("http://a b:1", "no address"),
            ("ftp://127.0.0.1", "no address"),
            ("http://", "no address"),
        ] {
            let said = Target::of("--url", wrong, &sent).unwrap_err().to_string();
            assert!(said.contains(word), "{said}");
        }
    }
}
