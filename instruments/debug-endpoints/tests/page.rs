//! The page at `/debug/` in headless Chromium.

mod browser;
mod common;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use browser::Browser;
use common::{ask, ask_as};
use debug_endpoints::DebugEndpoints;
use serde_json::json;
use tokio::runtime::Runtime;

const TOKEN: &str = "a token, for tests";

/// There is one profile at a time in a process, and these tests share one.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lock that nobody releases.
static LOCK: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn stuck_here() -> &'static str {
    let _guard = LOCK.lock().await;
    "never"
}

/// A service of which some requests wait for ever, and its endpoints' listener.
struct Service {
    _runtime: Runtime,
    admin: SocketAddr,
    _stuck: Vec<TcpStream>,
    _held: tokio::sync::MutexGuard<'static, ()>,
}

fn service(token: Option<&str>) -> Service {
    let debug = || match token {
        Some(token) => DebugEndpoints::new().token(token).expect("ASCII"),
        None => DebugEndpoints::new(),
    };
    let held = LOCK.try_lock().expect("one test at a time");
    let (runtime, own, admin) = common::service(debug, |debug| {
        let routes = Router::new()
            .route("/at-once", get(|| async { "done" }))
            .route(
                "/a/path/with/a/long/name/{of}/which/is/stuck",
                get(stuck_here),
            );
        routes.layer(debug.layer())
    });
    for _ in 0..50 {
        assert_eq!(ask(own, "/at-once").status, 200);
    }
    let stuck = (0..5).map(|_| {
        let mut stream = TcpStream::connect(own).expect("it listens");
        let path = "/a/path/with/a/long/name/1/which/is/stuck";
        write!(stream, "GET {path} HTTP/1.1\r\nHost: shop\r\n\r\n").expect("sent");
        stream
    });
    Service {
        admin,
        _stuck: stuck.collect(),
        _runtime: runtime,
        _held: held,
    }
}

/// Returns the address of the page.
fn page(service: &Service) -> String {
    format!("http://{}/debug/", service.admin)
}

const HTML: (&str, &str) = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");
const HOST: (&str, &str) = ("Host", "localhost");

#[test]
fn a_browser_gets_the_page_and_everything_else_the_list() {
    let _alone = alone();
    let service = service(None);
    for path in ["/", "/debug", "/debug/"] {
        let list = ask(service.admin, path);
        assert!(
            list.head.contains("content-type: text/plain"),
            "{}",
            list.head
        );
        assert!(list.text().starts_with("/debug/pprof/profile?seconds=N  "));
        let page = ask_as(service.admin, path, &[HOST, HTML]);
        assert!(
            page.head.contains("content-type: text/html"),
            "{}",
            page.head
        );
        assert!(page.text().contains("<h1>Debug endpoints</h1>"));
        for part in [
            "default-src 'none'",
            "script-src 'sha256-",
            "frame-ancestors 'none'",
        ] {
            assert!(page.head.contains(part), "{}", page.head);
        }
        assert!(!page.head.contains("unsafe"), "{}", page.head);
    }
    // A page of another site that resolves to this machine gets nothing.
    let rebound = ask_as(service.admin, "/debug/", &[("Host", "evil.example"), HTML]);
    assert_eq!(rebound.status, 403);
}

#[test]
fn without_the_token_there_is_the_page_and_no_data() {
    let _alone = alone();
    let service = service(Some(TOKEN));
    let without = ask_as(service.admin, "/debug/", &[HOST, HTML]);
    let bearer = format!("Bearer {TOKEN}");
    let with = ask_as(
        service.admin,
        "/debug/",
        &[HOST, HTML, ("Authorization", &bearer)],
    );
    assert_eq!((without.status, with.status), (200, 200));
    assert_eq!(
        without.text(),
        with.text(),
        "the page is the same for everybody"
    );
    for path in ["/debug/metrics", "/debug/look?seconds=0.1", "/metrics"] {
        let refused = ask_as(service.admin, path, &[HOST, HTML]);
        assert_eq!(refused.status, 401, "{path}");
    }
    assert_eq!(
        ask(service.admin, "/debug/").status,
        401,
        "the list is for those who have it"
    );
}

#[test]
#[ignore = "needs Chromium"]
fn it_shows_the_service_and_what_a_look_says() {
    let _alone = alone();
    let service = service(None);
    let mut browser = Browser::open();
    browser.go(&page(&service));
    // Rates have a second poll behind them.
    browser.wait_for("document.querySelectorAll('#plots svg[role=img]').length >= 5");
    assert!(browser.text("#routes").contains("GET /at-once"));
    assert!(browser.text("#plots").contains("Requests in flight"));
    browser.value("document.querySelector('#seconds').value = '2'");
    let mut told = String::new();
    // A machine that stands still for the two seconds has little to show.
    for _ in 0..3 {
        browser.value("document.querySelector('#look').click()");
        browser.wait_for("document.querySelector('#look').textContent.startsWith('Looking: ')");
        browser.wait_for("document.querySelector('#look').textContent === 'Look again'");
        told = browser.text("#look-result");
        if told.contains("stuck_here") && !told.contains("Not seen: heartbeat") {
            break;
        }
    }
    assert!(
        told.contains("requests were answered") && told.contains("stuck_here"),
        "{told}"
    );
    assert!(!told.contains("Not seen: heartbeat"), "{told}");
    if cfg!(feature = "flamegraph") {
        browser.wait_for("document.querySelectorAll('#pictures img').length >= 1");
        browser.wait_for(
            "[...document.querySelectorAll('#pictures img')].every((one) => one.naturalWidth > 0)",
        );
        let captions = browser.text("#pictures");
        assert!(captions.contains(" samples."), "{captions}");
    }
    // Names of functions are looked up while somebody looks.
    browser.wait_for("document.querySelector('#waits-body').innerText.includes('stuck_here')");
    browser.wait_for("document.querySelectorAll('#waits-picture path').length >= 1");
    let waits = browser.text("#waits");
    assert!(
        waits.contains("which/is/stuck") && waits.contains(" samples in "),
        "{waits}"
    );
    browser.value("document.querySelector('#tasks').click()");
    browser.wait_for("document.querySelector('#tasks').textContent === 'List them again'");
    let tasks = browser.text("#tasks-result");
    assert!(
        tasks.contains("more accept or serve connections") || tasks.contains("debug = true"),
        "{tasks}"
    );
    let links =
        browser.value("[...document.querySelectorAll('#endpoints a')].map((one) => one.href)");
    let links: Vec<&str> = links
        .as_array()
        .expect("links")
        .iter()
        .filter_map(|one| one.as_str())
        .collect();
    for path in [
        "/debug/await?seconds=10",
        "/debug/await?seconds=10&format=svg",
        "/debug/pprof/last?format=svg",
    ] {
        let address = format!("http://{}{path}", service.admin);
        assert!(
            links.contains(&address.as_str()),
            "{address} is not in {links:#?}"
        );
    }
    assert!(
        browser.value("document.querySelector('#incidents').hidden") == json!(true)
            || cfg!(debug_assertions)
    );
    assert_eq!(browser.errors, Vec::<String>::new());
    for (scheme, width, name) in [
        ("light", 1280, "desktop-light"),
        ("dark", 1280, "desktop-dark"),
        ("light", 390, "phone-light"),
        ("dark", 390, "phone-dark"),
    ] {
        browser.prefer(scheme);
        browser.size(width, 900);
        // The bar for scrolling down takes some of the width.
        let fits = browser.value("document.documentElement.scrollWidth <= innerWidth");
        assert_eq!(fits, json!(true), "{name} scrolls sideways");
        let faint = browser.value(FAINT);
        assert_eq!(faint, json!([]), "{name}: contrast under 4.5");
        browser.shoot(name);
    }
}

/// Texts whose contrast to what is behind them is under 4.5, the least of WCAG 2 (AA).
const FAINT: &str = r"
(() => {
  const light = (color) => {
    const [r, g, b] = color.match(/[\d.]+/g).map(Number).map((part) => {
      const share = part / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const color = getComputedStyle(element).backgroundColor;
    if (color !== 'rgba(0, 0, 0, 0)') return color;
    return element.parentElement ? behind(element.parentElement) : 'rgb(255, 255, 255)';
  };
  const faint = [];
  for (const element of document.querySelectorAll('body *')) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim());
    if (!text.length || !element.checkVisibility()) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faint.push(`${contrast.toFixed(2)}: ${text[0].data.trim()}`);
  }
  return faint;
})()";

#[test]
#[ignore = "needs Chromium"]
fn the_token_is_asked_for_once_and_by_keyboard_alone() {
    let _alone = alone();
    let service = service(Some(TOKEN));
    let mut browser = Browser::open();
    browser.go(&page(&service));
    browser.wait_for("document.activeElement.id === 'token'");
    browser.shoot("token");
    browser.type_text("a wrong one");
    browser.press("Enter");
    browser.wait_for(
        "document.querySelector('#token-error').textContent.startsWith('That is not the token.')",
    );
    assert_eq!(browser.value("sessionStorage.length"), json!(0));
    browser.type_text(TOKEN);
    browser.press("Enter");
    // The focus is on the button, which Enter presses.
    browser.wait_for("document.activeElement.id === 'look'");
    browser.press("Tab");
    assert_eq!(
        browser.value("document.activeElement.labels[0].textContent"),
        json!("for")
    );
    browser.value("document.activeElement.value = '2'; document.querySelector('#look').focus()");
    browser.press("Enter");
    browser.wait_for("document.querySelector('#look').textContent === 'Look again'");
    assert!(
        browser
            .text("#look-result")
            .contains("requests were answered")
    );

    // Each place where the focus stops can be seen, down to the last link.
    browser.wait_for("document.querySelectorAll('#endpoints a').length > 10");
    browser.value("document.querySelector('#look').focus()");
    let mut stops = 0;
    while browser.value("document.activeElement !== [...document.querySelectorAll('a')].at(-1)")
        == json!(true)
    {
        browser.press("Tab");
        stops += 1;
        let seen = browser.value(
            "getComputedStyle(document.activeElement).outlineStyle + ' ' + document.activeElement.outerHTML",
        );
        assert!(
            seen.as_str().is_some_and(|seen| seen.starts_with("solid ")),
            "{seen}"
        );
        assert!(stops < 200, "the focus does not reach the last link");
    }

    // A link shows its answer here, since it cannot send the token.
    browser.value("[...document.querySelectorAll('#endpoints a')].find((one) => one.textContent === '/debug/metrics').focus()");
    browser.press("Enter");
    browser
        .wait_for("document.querySelector('#answer pre')?.textContent.includes('tokio_workers 2')");

    // It is in no address, also not after another visit, which needs it no more.
    browser.go(&page(&service));
    browser.wait_for("document.querySelectorAll('#plots figure').length > 0");
    let addresses =
        "performance.getEntriesByType('resource').map((one) => one.name).join() + location.href";
    let addresses = browser.value(addresses);
    let addresses = addresses.as_str().expect("text");
    assert!(
        addresses.contains("/debug/metrics") && !addresses.contains("token"),
        "{addresses}"
    );
    assert_eq!(browser.errors, Vec::<String>::new());
}

#[test]
#[ignore = "needs Chromium"]
fn what_an_incident_says_is_text_and_no_html() {
    let _alone = alone();
    let service = service(None);
    let mut browser = Browser::open();
    browser.go(&page(&service));
    browser.wait_for("document.querySelectorAll('#plots figure').length > 0");
    let incident = json!({
        "kind": "in_flight", "at": "2026-11-27T01:02:03Z", "seconds": 0.31, "ongoing": false,
        "sentences": ["<img src=x> is late."], "stacks": ["main;<b>read</b> 7"], "waits": [],
    });
    browser.value(&format!("at('look-result').append(cardOf({incident}))"));
    let told = browser.text("#look-result");
    assert!(told.contains("in flight, 310 ms"), "{told}");
    assert!(told.contains("<img src=x> is late."), "{told}");
    assert_eq!(
        browser.value("document.querySelectorAll('#look-result img, #look-result b').length"),
        json!(0)
    );
    assert_eq!(
        browser.value("document.querySelectorAll('#look-result details').length"),
        json!(1)
    );
}

#[test]
#[ignore = "needs Chromium"]
fn it_asks_for_nothing_while_it_is_hidden() {
    let _alone = alone();
    let service = service(None);
    let mut browser = Browser::open();
    browser.go(&page(&service));
    browser.wait_for("document.querySelectorAll('#plots figure').length > 0");
    browser.value(
        "globalThis.asked = 0; const real = fetch; globalThis.fetch = (...all) => { asked++; return real(...all); };
         globalThis.away = true; Object.defineProperty(document, 'hidden', { get: () => away });
         document.dispatchEvent(new Event('visibilitychange')); polling",
    );
    let before = browser.value("asked");
    std::thread::sleep(Duration::from_secs(7));
    assert_eq!(
        browser.value("asked"),
        before,
        "two polls would have been due"
    );
    browser.value("away = false; document.dispatchEvent(new Event('visibilitychange'))");
    browser.wait_for(&format!("asked > {before}"));
    assert_eq!(browser.errors, Vec::<String>::new());
}
