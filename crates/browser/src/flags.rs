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
    #[cfg(test)]
    {
        let (without, with) = &settings.changed;
        flags.retain(|flag| !without.iter().any(|start| flag.starts_with(start)));
        flags.extend(with.iter().map(|flag| (*flag).to_owned()));
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written down a second time, so that none goes by mistake. What the flags do that keep the browser off the network is in `leaks.rs`.
    const ALL: &str = "--headless=new --remote-debugging-pipe --no-startup-window --no-first-run --no-default-browser-check \
        --proxy-bypass-list=<-loopback> --webrtc-ip-handling-policy=disable_non_proxied_udp \
        --force-webrtc-ip-handling-policy=disable_non_proxied_udp --disable-quic --disable-background-networking \
        --disable-component-update --disable-sync --disable-default-apps --disable-extensions --disable-domain-reliability \
        --no-pings --metrics-recording-only --disable-breakpad --disable-dev-shm-usage --disable-gpu --mute-audio \
        --deny-permission-prompts --disable-client-side-phishing-detection --disable-background-timer-throttling \
        --disable-backgrounding-occluded-windows --disable-renderer-backgrounding --disable-hang-monitor \
        --disable-ipc-flooding-protection --password-store=basic --use-mock-keychain --window-size=1280,900 \
        --disable-features=BackForwardCache,DialMediaRouteProvider,HttpsUpgrades,IsolateSandboxedIframes,MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,Prerender2,Translate,WebUIOmniboxAimPopup,WebUIOmniboxPopup \
        --proxy-server=http://127.0.0.1:9 --user-data-dir=/profile --user-agent=Huntsman/1";

    #[test]
    fn a_browser_gets_each_flag_and_no_other() {
        let mut settings = Settings { user_agent: Some("Huntsman/1".to_owned()), ..Settings::default() };
        let of = |settings: &Settings| {
            flags(settings, Path::new("/profile"), SocketAddr::from(([127, 0, 0, 1], 9)))
        };
        assert_eq!(of(&settings), ALL.split_whitespace().collect::<Vec<_>>());
        settings.has_sandbox = false;
        assert_eq!(of(&settings).last().map(String::as_str), Some("--no-sandbox"));
    }
}
