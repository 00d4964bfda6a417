//! Debian's Chromium without a window, driven over `WebDriver` by Debian's driver for it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long a page may take to show what is looked for.
const PATIENCE: Duration = Duration::from_mins(5);
/// What the driver calls an element's identifier.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";
/// These keys, as `WebDriver` names them.
pub(crate) const SHIFT_ENTER: &str = "\u{e008}\u{e007}";

/// A driver and its port; `None`: it ended without one.
fn driver_with_port(profile: &TempDir) -> Option<(Child, u16)> {
    let mut driver = Command::new("chromedriver");
    driver.arg("--port=0").env("TMPDIR", profile.path()).env("HOME", profile.path());
    driver.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut driver = driver.spawn().expect("chromedriver starts: install chromium and chromium-driver");
    let said = BufReader::new(driver.stdout.take().expect("standard output is caught"));
    let port = said
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.split_once("successfully on port ")?.1.trim_end_matches('.').parse().ok());
    if port.is_none() {
        drop(driver.kill());
        drop(driver.wait());
    }
    Some((driver, port?))
}

/// A browser with an empty profile; it ends with this value.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Starts it. Pages of this machine never go through a proxy.
    pub(crate) fn start() -> Self {
        let profile = tempfile::Builder::new().prefix("envforge-browser-").tempdir().expect("a folder");
        // It chooses a port for IPv4 and then wants the same for IPv6, which another program may have.
        let (driver, port) =
            (0..5).find_map(|_| driver_with_port(&profile)).expect("chromedriver names its port");
        let mut browser = Self { driver, port, session: String::new(), _profile: profile };
        // Root has no sandbox, and a container's /dev/shm is small.
        let args = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--no-proxy-server",
            "--disable-background-networking",
            "--window-size=1280,900",
        ];
        let options = json!({ "binary": "/usr/bin/chromium", "args": args });
        let logs = json!({ "browser": "ALL" });
        let wanted = json!({ "goog:chromeOptions": options, "goog:loggingPrefs": logs });
        let wanted = json!({ "capabilities": { "alwaysMatch": wanted } });
        let begun = browser.send("POST", "/session", &wanted).expect("Chromium starts");
        browser.session = text(&begun["sessionId"]);
        browser
    }

    /// Opens an address.
    pub(crate) fn open(&self, url: &str) {
        self.ask("POST", "/url", &json!({ "url": url })).expect("it opens");
    }

    /// Opens a file.
    pub(crate) fn open_file(&self, path: &Path) {
        self.open(&format!("file://{}", path.display()));
    }

    /// Runs a script in the page and gives what it returns.
    #[track_caller]
    pub(crate) fn execute(&self, script: &str) -> Value {
        let call = json!({ "script": script, "args": [] });
        self.ask("POST", "/execute/sync", &call).expect("the script runs")
    }

    /// What the console of the page was sent since it was read last: errors, refused scripts and styles.
    pub(crate) fn console(&self) -> Vec<String> {
        let lines = self.ask("POST", "/se/log", &json!({ "type": "browser" })).expect("a log");
        lines.as_array().expect("a list").iter().map(|line| text(&line["message"])).collect()
    }

    /// Makes the window that large.
    pub(crate) fn resize(&self, width: u32, height: u32) {
        self.ask("POST", "/window/rect", &json!({ "width": width, "height": height })).expect("it resizes");
    }

    /// The address of the page that is shown.
    pub(crate) fn address(&self) -> String {
        text(&self.ask("GET", "/url", &Value::Null).expect("a page is open"))
    }

    /// Clicks the first element of that CSS selector, once it can be clicked.
    #[track_caller]
    pub(crate) fn click(&self, selector: &str) {
        self.with_element(selector, |element| self.ask("POST", &format!("{element}/click"), &json!({})));
    }

    /// Types into the first element of that CSS selector, once it takes text.
    #[track_caller]
    pub(crate) fn type_in(&self, selector: &str, keys: &str) {
        let keys = json!({ "text": keys });
        self.with_element(selector, |element| self.ask("POST", &format!("{element}/value"), &keys));
    }

    /// What the first element of that CSS selector shows, once it is there.
    #[track_caller]
    pub(crate) fn shown(&self, selector: &str) -> String {
        text(
            &self.with_element(selector, |element| self.ask("GET", &format!("{element}/text"), &Value::Null)),
        )
    }

    /// Waits until the first element of that CSS selector shows that.
    #[track_caller]
    pub(crate) fn wait_for(&self, selector: &str, wanted: &str) {
        self.with_element(selector, |element| {
            let shown = self.ask("GET", &format!("{element}/text"), &Value::Null)?;
            if text(&shown).contains(wanted) { Ok(shown) } else { Err(format!("no `{wanted}` in {shown}")) }
        });
    }

    /// Keeps what is shown under that name in target/ci.
    pub(crate) fn screenshot(&self, name: &str) {
        let folder = artefacts();
        std::fs::create_dir_all(&folder).expect("the target folder is writable");
        std::fs::write(folder.join(name), self.picture()).expect("the target folder is writable");
    }

    /// What is shown, as PNG.
    pub(crate) fn picture(&self) -> Vec<u8> {
        let image = text(&self.ask("GET", "/screenshot", &Value::Null).expect("a page is open"));
        base64::engine::general_purpose::STANDARD.decode(image).expect("base64")
    }

    /// Does something with an element; again for a while if it is not there, hidden or already another.
    #[track_caller]
    fn with_element(&self, selector: &str, act: impl Fn(&str) -> Result<Value, String>) -> Value {
        let end = Instant::now() + PATIENCE;
        let find = json!({ "using": "css selector", "value": selector });
        loop {
            let element = self.ask("POST", "/element", &find);
            match element.and_then(|found| act(&format!("/element/{}", text(&found[ELEMENT])))) {
                Ok(value) => return value,
                Err(error) if Instant::now() > end => {
                    self.screenshot("browser-failed.png");
                    panic!("`{selector}` on {}: {error}", self.address());
                }
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Sends a command of the session.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        self.send(method, &format!("/session/{}{path}", self.session), body)
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("chromedriver listens");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).expect("chromedriver reads");
        let mut stream = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).expect("chromedriver answers");
            let (name, value) = line.split_once(':').unwrap_or_default();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().expect("a number");
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer).expect("chromedriver answers");
        let mut answer: Value = serde_json::from_slice(&answer).expect("JSON");
        match answer["value"].take() {
            value if value["error"].is_string() => Err(format!("{}: {}", value["error"], value["message"])),
            value => Ok(value),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser goes with its session, not with the driver.
        if !self.session.is_empty() {
            let _ = self.ask("DELETE", "", &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Where CI finds what a run leaves to look at.
fn artefacts() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder").join("ci")
}
