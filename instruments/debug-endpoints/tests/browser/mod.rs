//! A headless Chromium that is told what to do through a pipe, by its `DevTools` protocol.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Longest time that a page may take for anything.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    calls: u64,
    session: Option<String>,
    /// Errors of pages: exceptions, what they write into the console, and what their policy refused.
    pub(crate) errors: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Opens a window with an empty page.
    pub(crate) fn open() -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        // It reads descriptor 3 and writes descriptor 4. Chromium's sandbox does not run as root.
        let script = "for name in chromium google-chrome google-chrome-stable; do
            command -v $name >/dev/null && exec $name --headless --no-sandbox --disable-gpu --no-first-run \
                --remote-debugging-pipe \"--user-data-dir=$0\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1
        done";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .arg(profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut browser = Self {
            to: child.stdin.take().expect("a pipe"),
            from: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
            calls: 0,
            session: None,
            errors: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", &attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, &json!({}));
        }
        browser.size(1280, 900);
        browser
    }

    /// Calls a method of the protocol, and returns its result.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        write!(self.to, "{message}\0").expect("Chromium runs: is it installed?");
        loop {
            let mut answer = Vec::new();
            self.from.read_until(0, &mut answer).expect("a message");
            answer.pop();
            let answer: Value = serde_json::from_slice(&answer).expect("Chromium runs");
            if answer["id"] == self.calls {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.errors.extend(error_of(&answer));
        }
    }

    pub(crate) fn size(&mut self, width: u32, height: u32) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Prefers a color scheme, `light` or `dark`.
    pub(crate) fn prefer(&mut self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call(
            "Emulation.setEmulatedMedia",
            &json!({ "features": [feature] }),
        );
    }

    pub(crate) fn go(&mut self, address: &str) {
        self.call("Page.navigate", &json!({ "url": address }));
        self.wait_for("document.readyState === 'complete'");
    }

    /// Returns the value of an expression of JavaScript in the page, or of its promise.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let evaluated = self.call("Runtime.evaluate", &params);
        assert!(evaluated["exceptionDetails"].is_null(), "{evaluated}");
        evaluated["result"]["value"].clone()
    }

    /// Returns the text that a reader sees in the first element of this selector.
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let text = self.value(&format!(
            "document.querySelector({}).innerText",
            json!(selector)
        ));
        text.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn wait_for(&mut self, condition: &str) {
        let begun = Instant::now();
        while self.value(condition) != json!(true) {
            let body = self.text("body");
            assert!(begun.elapsed() < PATIENCE, "never {condition}; {body}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses and releases a key, such as `Tab`.
    pub(crate) fn press(&mut self, key: &str) {
        let (number, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            _ => panic!("{key} is not among the keys"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": number,
            });
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", &json!({ "text": text }));
    }

    /// Writes a picture of the whole page into the folder that the variable `SCREENSHOTS` names, if it is set.
    pub(crate) fn shoot(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("SCREENSHOTS") else {
            return;
        };
        let shot = self.call(
            "Page.captureScreenshot",
            &json!({ "captureBeyondViewport": true }),
        );
        let picture = STANDARD.decode(shot["data"].as_str().expect("base64"));
        let file = std::path::Path::new(&folder).join(format!("{name}.png"));
        std::fs::write(file, picture.expect("base64")).expect("a folder");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The pipe's end ends it, and so do its own processes.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns what a message says of an error, if it is of one. Answers like 404 are none: the page asks for what there may
/// be.
fn error_of(message: &Value) -> Option<String> {
    let params = &message["params"];
    let is_error = match message["method"].as_str()? {
        "Runtime.exceptionThrown" => true,
        "Runtime.consoleAPICalled" => params["type"] == "error",
        "Log.entryAdded" => {
            params["entry"]["level"] == "error" && params["entry"]["source"] != "network"
        }
        _ => false,
    };
    is_error.then(|| params.to_string())
}
