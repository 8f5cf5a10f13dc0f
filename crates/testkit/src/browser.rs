//! A browser for tests: headless Chromium, driven over the WebDriver protocol in a process of its own.
//!
//! It needs the programs `chromium` and `chromedriver`; without them a test fails with a message that says how to get
//! them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

const MISSING: &str =
    "this test needs the programs chromium and chromedriver: apt-get install chromium chromium-driver";
/// Time limit for a step, on a machine that is busy with other work as well.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between two checks for something that is not there yet.
const PAUSE: Duration = Duration::from_millis(50);
/// Error names of the protocol for an element that is not there yet, no longer belongs to the page, or still moves.
const NOT_YET: [&str; 4] =
    ["no such element", "stale element reference", "element not interactable", "element click intercepted"];
/// The key of an element's id in the protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with one window. It is closed when this value is dropped.
///
/// A click returns before all its effects have happened. Methods that use an element therefore wait until there is
/// one, for two minutes at most; [`Browser::count`] and [`Browser::is_in_view`] report the present state.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// The browser's profile.
    _directory: TempDir,
}

/// The element that has the focus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Focused {
    /// Its label, or else its text; empty if nothing in the page has the focus.
    pub name: String,
    /// Whether it is within the window and has an outline.
    pub is_shown: bool,
}

/// Keys that have no character of their own, as [`Browser::press`] takes them.
pub mod keys {
    /// To the next thing that can be used.
    pub const TAB: &str = "\u{E004}";
    /// Follows a link, presses a button.
    pub const ENTER: &str = "\u{E007}";
    /// One line down.
    pub const DOWN: &str = "\u{E015}";
    /// To the last line.
    pub const END: &str = "\u{E010}";
}

/// An error that the driver reports, with its name in the protocol.
#[derive(Debug)]
struct Refusal {
    name: String,
    #[expect(dead_code, reason = "for people who read why a test failed")]
    message: String,
}

impl Browser {
    /// Starts the browser.
    ///
    /// # Panics
    /// If a program is missing or the browser does not start.
    pub fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory for temporary files");
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{MISSING} ({error})"));
        let mut lines = BufReader::new(driver.stdout.take().expect("it is piped")).lines();
        let port = lines.by_ref().find_map(|line| {
            let line = line.ok()?;
            line.split_once("started successfully on port ")?.1.trim_end_matches('.').parse().ok()
        });
        // The driver must not find its pipe closed.
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser = Self { driver, port: 0, session: String::new(), _directory: directory };
        browser.port = port.expect("chromedriver says which port it has");
        let profile = format!("--user-data-dir={}", browser._directory.path().display());
        let options = json!({"args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1280,900", profile]});
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}});
        // The driver gives up after a minute; a browser that is read from a slow disk may need longer.
        let begin = || browser.ask("POST", "/session", &wanted);
        let began = begin().or_else(|_| begin()).unwrap_or_else(|error| panic!("{MISSING} ({error:?})"));
        let session = began["sessionId"].as_str().unwrap_or_else(|| panic!("{MISSING} ({began})"));
        browser.session = format!("/session/{session}");
        browser
    }

    /// Opens a page, and waits until it is loaded.
    pub fn open(&self, url: &str) {
        self.step("POST", "/url", &json!({"url": url}));
    }

    /// The address of the page.
    pub fn url(&self) -> String {
        let url = self.step("GET", "/url", &Value::Null);
        url.as_str().expect("an address is a text").to_owned()
    }

    /// Pastes a text into the first field that matches a CSS selector. Typing it would take a millisecond per
    /// character.
    pub fn paste(&self, css: &str, text: &str) {
        const SCRIPT: &str = "let field = document.querySelector(arguments[0]);
            field.focus(); field.select(); document.execCommand('insertText', false, arguments[1]);
            return document.activeElement === field;";
        let is_done = self.step("POST", "/execute/sync", &json!({"script": SCRIPT, "args": [css, text]}));
        assert_eq!(is_done, true, "{css}");
    }

    /// Runs a script in the page, and gives what it returns.
    pub fn run(&self, script: &str) -> Value {
        self.step("POST", "/execute/sync", &json!({"script": script, "args": []}))
    }

    /// Bytes of memory that belong to the process of the page alone, besides files.
    ///
    /// # Panics
    /// If the system does not tell it.
    pub fn memory(&self) -> u64 {
        let field = |pid: u32, name: &str| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        let processes = std::fs::read_dir("/proc").expect("the system lists processes").flatten();
        let processes: Vec<u32> =
            processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        let is_ours = |pid: u32| {
            let parents = std::iter::successors(Some(pid), |pid| {
                field(*pid, "PPid").and_then(|parent| u32::try_from(parent).ok())
            });
            parents.take_while(|pid| *pid > 1).any(|pid| pid == self.driver.id())
        };
        let is_page = |pid: u32| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            command.windows(15).any(|part| part == b"--type=renderer")
        };
        let pages = processes.into_iter().filter(|pid| is_page(*pid) && is_ours(*pid));
        let kilobytes = pages.filter_map(|pid| field(pid, "RssAnon")).max();
        kilobytes.expect("there is a process of the page") * 1_024
    }

    /// Presses keys, one after the other, on whatever has the focus. Keys without a character are those of [`keys`].
    pub fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|what| json!({"type": what, "value": key})))
            .collect();
        self.step(
            "POST",
            "/actions",
            &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}),
        );
    }

    /// What has the focus.
    pub fn focused(&self) -> Focused {
        const SCRIPT: &str = "let at = document.activeElement, box = at.getBoundingClientRect();
            let isIn = box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
            return [at === document.body ? '' : at.getAttribute('aria-label') || at.textContent.trim(),
                isIn && getComputedStyle(at).outlineStyle !== 'none'];";
        let found = self.run(SCRIPT);
        Focused {
            name: found[0].as_str().unwrap_or_default().to_owned(),
            is_shown: found[1].as_bool().unwrap_or(false),
        }
    }

    /// Clicks the first element that matches a CSS selector, and waits for the page that this may lead to.
    pub fn click(&self, css: &str) {
        self.of_element("POST", css, "/click", &json!({}));
    }

    /// The visible text of the first element that matches a CSS selector.
    pub fn text(&self, css: &str) -> String {
        let text = self.of_element("GET", css, "/text", &Value::Null);
        text.as_str().expect("a text is a text").to_owned()
    }

    /// The computed value of a CSS property of the first element that matches a selector.
    pub fn style(&self, css: &str, property: &str) -> String {
        let value = self.of_element("GET", css, &format!("/css/{property}"), &Value::Null);
        value.as_str().expect("a property is a text").to_owned()
    }

    /// Number of elements that match a CSS selector.
    pub fn count(&self, css: &str) -> usize {
        let found = self.step("POST", "/elements", &json!({"using": "css selector", "value": css}));
        found.as_array().map_or(0, Vec::len)
    }

    /// Whether the first element that matches a CSS selector exists and lies within the window and within all
    /// elements around it that scroll.
    pub fn is_in_view(&self, css: &str) -> bool {
        const SCRIPT: &str = "let box = document.querySelector(arguments[0])?.getClientRects()[0];
            let at = box && document.elementFromPoint(box.left + Math.min(4, box.width / 2), box.top + Math.min(8, box.height / 2));
            return !!at && at.closest(arguments[0]) !== null;";
        let is = self.step("POST", "/execute/sync", &json!({"script": SCRIPT, "args": [css]}));
        is.as_bool().expect("the script answers")
    }

    /// Waits until the first element that matches a CSS selector [is in view](Self::is_in_view).
    ///
    /// # Panics
    /// If it does not come into view within the time limit.
    pub fn wait_for(&self, css: &str) {
        let began = Instant::now();
        while !self.is_in_view(css) {
            assert!(began.elapsed() < PATIENCE, "{css} is not in view of {}", self.url());
            std::thread::sleep(PAUSE);
        }
    }

    /// Messages that pages wrote to the console since the last call, such as policy violations and files that could
    /// not be loaded.
    pub fn console_messages(&self) -> Vec<String> {
        let lines = self.step("POST", "/se/log", &json!({"type": "browser"}));
        let message = |line: &Value| line["message"].as_str().map(str::to_owned);
        lines.as_array().map_or_else(Vec::new, |lines| lines.iter().filter_map(message).collect())
    }

    /// Performs an action with the first element that matches a CSS selector, as soon as there is one.
    fn of_element(&self, method: &str, css: &str, what: &str, body: &Value) -> Value {
        let began = Instant::now();
        let wanted = json!({"using": "css selector", "value": css});
        loop {
            let done = self.ask("POST", &format!("{}/element", self.session), &wanted).and_then(|found| {
                let number = found[ELEMENT].as_str().unwrap_or_else(|| panic!("{css}: {found}"));
                self.ask(method, &format!("{}/element/{number}{what}", self.session), body)
            });
            match done {
                Ok(answer) => return answer,
                Err(error) if NOT_YET.contains(&error.name.as_str()) && began.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE);
                }
                Err(error) => panic!("{css}{what}: {error:?}"),
            }
        }
    }

    fn step(&self, method: &str, path: &str, body: &Value) -> Value {
        self.send(method, &format!("{}{path}", self.session), body)
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        self.ask(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error:?}"))
    }

    /// Sends a command to the driver and returns its response, or the error that it reports.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, Refusal> {
        let answer =
            self.exchange(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        match answer["value"]["error"].as_str() {
            Some(name) => {
                Err(Refusal { name: name.to_owned(), message: answer["value"]["message"].to_string() })
            }
            None => Ok(answer["value"].clone()),
        }
    }

    fn exchange(&self, method: &str, path: &str, body: &Value) -> std::io::Result<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            self.port,
            body.len()
        )?;
        // The driver leaves connections open.
        let mut answer = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            answer.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().unwrap_or(0);
                }
                _ if line.trim_end().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        answer.read_exact(&mut body)?;
        Ok(serde_json::from_slice(&body)?)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // This also runs during a panic and must not turn it into an abort. The browser ends with its session, not
        // with the driver.
        if !self.session.is_empty() {
            let _ = self.exchange("DELETE", &self.session, &Value::Null);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
