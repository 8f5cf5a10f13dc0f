//! The flags of the browser: one list, each with its reason.

use std::net::SocketAddr;
use std::path::Path;

use crate::Settings;

/// Flags that all browsers get, with the reason of each.
pub(crate) const FLAGS: &[(&str, &str)] = &[
    ("--headless=new", "without a window"),
    (
        "--remote-debugging-pipe",
        "commands by a pipe, which nobody else can reach, and whose end ends the browser",
    ),
    ("--no-startup-window", "no page but ours"),
    ("--no-first-run", "no welcome"),
    ("--no-default-browser-check", "no question"),
    ("--proxy-bypass-list=<-loopback>", "otherwise addresses of this machine go past the proxy"),
    (
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        "no datagrams past the proxy, as the headless shell spells it",
    ),
    ("--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "the same, as the browser spells it"),
    ("--disable-quic", "QUIC is UDP, which no proxy of ours sees"),
    ("--disable-background-networking", "nothing is asked that no page asks"),
    ("--disable-component-update", "no components are loaded"),
    ("--disable-sync", "no account"),
    ("--disable-default-apps", "none are loaded"),
    ("--disable-extensions", "scripts of pages only"),
    ("--disable-domain-reliability", "no reports about requests"),
    ("--no-pings", "no pings of links"),
    ("--metrics-recording-only", "no reports about use"),
    ("--disable-breakpad", "no reports about crashes"),
    ("--disable-dev-shm-usage", "memory that is shared may be more than /dev/shm of a container has"),
    ("--disable-gpu", "there is none, and nothing is shown"),
    ("--mute-audio", "nothing is heard"),
    ("--deny-permission-prompts", "nobody is there to answer them"),
    ("--disable-client-side-phishing-detection", "pages are judged by the crawler"),
    ("--disable-background-timer-throttling", "all pages are in the background"),
    ("--disable-backgrounding-occluded-windows", "all pages are in the background"),
    ("--disable-renderer-backgrounding", "all pages are in the background"),
    ("--disable-hang-monitor", "hangs are found by the time of the page"),
    ("--disable-ipc-flooding-protection", "what floods costs its page only"),
    ("--password-store=basic", "no key ring of the user"),
    ("--use-mock-keychain", "no key ring of the user"),
    ("--window-size=1280,900", "lists show as much as on a desk"),
];

/// Features that are switched off, with the reason of each.
pub(crate) const OFF: &[(&str, &str)] = &[
    ("BackForwardCache", "pages that were left keep their memory"),
    ("DialMediaRouteProvider", "it looks for televisions by UDP"),
    ("HttpsUpgrades", "an address is asked for as it is written"),
    ("IsolateSandboxedIframes", "a frame of the same site is part of its page"),
    ("MediaRouter", "it looks for televisions by UDP"),
    ("NetworkTimeServiceQuerying", "it asks a server of its vendor for the time"),
    ("OptimizationHints", "it asks a server of its vendor"),
    ("Prerender2", "pages that nobody asked for"),
    ("Translate", "it asks a server of its vendor"),
    ("WebUIOmniboxAimPopup", "each page would have a process for a list that nobody sees"),
    ("WebUIOmniboxPopup", "each page would have a process for a list that nobody sees"),
];

/// All flags of a browser.
pub(crate) fn flags(settings: &Settings, profile: &Path, proxy: SocketAddr) -> Vec<String> {
    let mut flags: Vec<String> = FLAGS.iter().map(|(flag, _)| (*flag).to_owned()).collect();
    let off: Vec<&str> = OFF.iter().map(|(feature, _)| *feature).collect();
    flags.push(format!("--disable-features={}", off.join(",")));
    flags.push(format!("--proxy-server=http://{proxy}"));
    flags.push(format!("--user-data-dir={}", profile.display()));
    if let Some(agent) = &settings.user_agent {
        flags.push(format!("--user-agent={agent}"));
    }
    if !settings.has_sandbox {
        flags.push("--no-sandbox".to_owned());
    }
    flags
}
