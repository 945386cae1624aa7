//! Scripts for k6 and for Locust that send the same load, for the reader to extend.

use std::fmt::Write as _;
use std::path::Path;

use children::program;
use engine::bodies::names;
use engine::login::Login;
use engine::traffic::Traffic;

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
    let expected = traffic.routes.iter().map(|one| &one.requests[0].expected);
    let all = expected.map(|one| [&[one.status], &*one.allowed].concat());
    all.map(|statuses| format!("{statuses:?}")).collect()
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

/// Returns a text as a literal of JavaScript, Python and JSON alike.
fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a script for `k6 run`.
pub(crate) fn k6(about: &About<'_>, specs: &[Spec], statuses: &[String]) -> String {
    let mut text = format!(
        "// Written by `{program} load`. Ends with exit code 99 if an answer is wrong.\n\
         //\n//   k6 run -e HOST={host} -e USERS={users} THIS_FILE\n{trusted}\n\
         import http from 'k6/http';\nimport {{ check, sleep }} from 'k6';\n\n\
         const HOST = __ENV.HOST || {quoted};\nconst USERS = Number(__ENV.USERS || {users});\n\n",
        program = program::running().name,
        host = about.host,
        quoted = literal(&about.host),
        users = about.users,
        trusted = match about.cacert {
            Some(cacert) => format!(
                "//\n// k6 trusts the authorities of the system, and a script cannot name another. On Linux, call \
                 it with\n// SSL_CERT_FILE={} before it. Elsewhere, add that authority to the system's.\n",
                cacert.display()
            ),
            None => String::new(),
        },
    );
    // Writing to a String cannot fail.
    let _ = match about.rate {
        Some(rate) => write!(
            text,
            "// k6 sends at even steps; users who know nothing of each other come at random moments, and wait \
             longer.\nexport const options = {{\n  scenarios: {{\n    paced: {{\n      executor: \
             'constant-arrival-rate',\n      rate: {rate},\n      timeUnit: '1s',\n      duration: \
             '{}s',\n      preAllocatedVUs: USERS,\n    }},\n  }},\n",
            about.seconds,
            rate = rate.round().max(1.0)
        ),
        None => write!(
            text,
            "export const options = {{\n  vus: USERS,\n  duration: '{}s',\n",
            about.seconds
        ),
    };
    if about.insecure {
        text += "  insecureSkipTLSVerify: true,\n";
    }
    text += "  thresholds: { checks: ['rate==1'] },\n};\n\n";
    if let Some(login) = about.login {
        text += &k6_login(login);
    }
    text += "const pick = (values) => values[Math.floor(Math.random() * values.length)];\n\n";
    text += "// How often each is sent, and what.\nconst requests = [\n";
    for (spec, status) in specs.iter().zip(statuses) {
        let value = match &spec.values {
            None => "''".to_owned(),
            Some(Values::Range(first, last)) => {
                format!("{first} + Math.floor(Math.random() * {})", last - first + 1)
            }
            Some(Values::Listed(_, lines)) => {
                format!("pick([{}])", literals(lines))
            }
        };
        let _ = writeln!(
            text,
            "  {{\n    weight: {},\n    name: {},\n    method: {},\n    path: () => {} + ({value}) + \
             {},\n    body: {},\n    headers: {{ {} }},\n    statuses: {status},\n  }},",
            spec.weight,
            literal(&spec.name()),
            literal(&spec.method),
            literal(&spec.before),
            literal(&spec.after),
            body(spec.body.as_deref(), "null"),
            headers(&spec.headers)
        );
    }
    let _ = write!(
        text,
        "];\nconst weights = requests.reduce((sum, request) => sum + request.weight, 0);\n\n\
         export default function () {{\n  let left = Math.random() * weights;\n  const request =\n    \
         requests.find((one) => (left -= one.weight) < 0) || requests[0];\n  const answer = \
         http.request(request.method, HOST + request.path(), request.body, {{\n    headers: \
         request.headers,\n    redirects: 0,\n    tags: {{ name: request.name }},\n  }});\n  \
         check(answer, {{ status: (answer) => request.statuses.includes(answer.status) }});\n"
    );
    if about.login.is_some() {
        text = text
            .replace("default function () {", "default function (login) {")
            .replace(
                "headers: request.headers,",
                "headers: Object.assign({}, request.headers, login),",
            );
    }
    if about.rate.is_none() && about.think > 0.0 {
        let _ = writeln!(text, "  sleep({});", about.think);
    }
    text += "}\n";
    if about.rate.is_some() || about.think <= 0.0 {
        text = text.replace("import { check, sleep }", "import { check }");
    }
    text
}

/// Returns the function that k6 calls once, before its users start.
fn k6_login(login: &Login) -> String {
    let mut text = String::new();
    let request = &login.request;
    let _ = write!(
        text,
        "export function setup() {{\n  const answer = http.request({}, HOST + {}, {}, {{\n    headers: {{ {} \
         }},\n    redirects: 0,\n  }});\n  if (answer.status >= 400) {{\n    throw new Error(`login: status \
         ${{answer.status}}`);\n  }}\n  const login = {{}};\n  const cookies = \
         Object.values(answer.cookies).flat();\n  if (cookies.length > 0) {{\n    login.cookie = \
         cookies.map((one) => `${{one.name}}=${{one.value}}`).join('; ');\n  }}\n",
        literal(&request.method),
        literal(&request.path),
        body(request.body.as_deref(), "null"),
        headers(&request.headers)
    );
    if let Some(pointer) = &login.token {
        let _ = writeln!(
            text,
            "  const token = [{}].reduce((value, key) => value[key], answer.json());\n  login.authorization = \
             `Bearer ${{token}}`;",
            literals(&names(pointer))
        );
    }
    text += "  return login;\n}\n\n";
    text
}

/// Returns the entries of a list, in the syntax of both languages.
fn literals(lines: &[String]) -> String {
    let all: Vec<String> = lines.iter().map(|line| literal(line)).collect();
    all.join(", ")
}

/// Returns a body as a literal, or `none`, the language's word for no body.
fn body(body: Option<&[u8]>, none: &str) -> String {
    match body {
        Some(body) => literal(&String::from_utf8_lossy(body)),
        None => none.to_owned(),
    }
}

/// Returns the entries of a map of headers, in the syntax of both languages. `host` is left out: the tool sets it.
fn headers(headers: &[(String, String)]) -> String {
    let own = headers.iter().filter(|(name, _)| name != "host");
    let all: Vec<String> = own
        .map(|(name, value)| format!("{}: {}", literal(name), literal(value)))
        .collect();
    all.join(", ")
}

/// Returns a file for `locust -f`.
pub(crate) fn locust(about: &About<'_>, specs: &[Spec], statuses: &[String]) -> String {
    let mut text = format!(
        "\"\"\"Written by `{program} load`. Ends with exit code 1 if an answer is wrong.\n\n    \
         locust -f THIS_FILE --host {host} -u {users} -r {users} -t {seconds}s --headless\n\"\"\"\n\n\
         {imports}\n\n\
         class Reader(FastHttpUser):\n    host = {quoted}\n    wait_time = constant({think})\n{trusted}",
        program = program::running().name,
        host = about.host,
        users = about.users,
        seconds = about.seconds,
        quoted = literal(&about.host),
        think = about.think,
        imports = match about.cacert {
            None => "import random\n\nfrom locust import FastHttpUser, constant, task\n".to_owned(),
            Some(cacert) => format!(
                "import os\nimport random\n\nfrom gevent.ssl import create_default_context\nfrom locust import \
                 FastHttpUser, constant, task\n\n# The authority that signed the service's certificate. Workers of \
                 other machines need a copy.\nCACERT = os.environ.get(\"CACERT\", {})\n",
                literal(&cacert.display().to_string())
            ),
        },
        trusted = match about.cacert {
            None => "",
            Some(_) => {
                "    # Locust verifies nothing unless it is told to.\n    insecure = False\n    ssl_context_factory = \
                 staticmethod(lambda: create_default_context(cafile=CACERT))\n"
            }
        },
    );
    if let Some(login) = about.login {
        let request = &login.request;
        let _ = write!(
            text,
            "\n    def on_start(self):\n        # The client keeps the cookies that the answer sets.\n        answer = \
             self.client.request(\n            {},\n            {},\n            data={},\n            \
             headers={{{}}},\n            allow_redirects=False,\n        )\n        self.login = {{}}\n",
            literal(&request.method),
            literal(&request.path),
            body(request.body.as_deref(), "None"),
            headers(&request.headers)
        );
        if let Some(pointer) = &login.token {
            let _ = write!(
                text,
                "        token = answer.json()\n        for key in [{}]:\n            token = token[int(key) if \
                 isinstance(token, list) else key]\n        self.login[\"authorization\"] = f\"Bearer {{token}}\"\n",
                literals(&names(pointer))
            );
        }
    }
    let with_login = match about.login {
        Some(_) => "**self.login, ",
        None => "",
    };
    // Locust takes only whole numbers as weights.
    let mut lightest = f64::MAX;
    for spec in specs {
        lightest = lightest.min(spec.weight);
    }
    for (index, (spec, status)) in (1..).zip(specs.iter().zip(statuses)) {
        let value = match &spec.values {
            None => "\"\"".to_owned(),
            Some(Values::Range(first, last)) => format!("str(random.randint({first}, {last}))"),
            Some(Values::Listed(_, lines)) => {
                format!("random.choice([{}])", literals(lines))
            }
        };
        let _ = write!(
            text,
            "\n    @task({weight})\n    def request_{index}(self):\n        path = {before} + {value} + \
             {after}\n        with self.client.request(\n            {method},\n            path,\n            \
             data={body},\n            headers={{{with_login}{headers}}},\n            name={name},\n            \
             allow_redirects=False,\n            catch_response=True,\n        ) as answer:\n            \
             if answer.status_code in {status}:\n                answer.success()\n            else:\n                \
             answer.failure(f\"status {{answer.status_code}}\" if answer.status_code else f\"connection: \
             {{type(answer.error).__name__}}\")\n",
            weight = (spec.weight / lightest).round().max(1.0),
            before = literal(&spec.before),
            after = literal(&spec.after),
            method = literal(&spec.method),
            body = body(spec.body.as_deref(), "None"),
            headers = headers(&spec.headers),
            name = literal(&spec.name()),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::traffic::Request;

    #[test]
    fn both_scripts_log_in_where_the_load_does() {
        let login = Login {
            request: Request {
                method: "POST".to_owned(),
                body: Some("{\"name\": \"me\"}".into()),
                ..Request::get("/login")
            },
            token: Some("/data/token".to_owned()),
        };
        let mut about = About {
            host: "http://127.0.0.1:8080".to_owned(),
            cacert: None,
            insecure: false,
            users: 2,
            think: 0.0,
            rate: None,
            seconds: 1.0,
            login: None,
        };
        let without = [k6(&about, &[], &[]), locust(&about, &[], &[])];
        assert!(without.iter().all(|text| !text.contains("login")));
        about.login = Some(&login);
        let [k6, locust] = [k6(&about, &[], &[]), locust(&about, &[], &[])];
        for text in [&k6, &locust] {
            assert!(
                text.contains(r#""/login""#) && text.contains(r#"["data", "token"]"#),
                "{text}"
            );
        }
        assert!(k6.contains("default function (login)") && k6.contains("request.headers, login)"));
        assert!(locust.contains("def on_start(self):"));
    }
}
