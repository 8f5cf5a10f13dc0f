//! Forms of pages, filled in and sent as a browser does.

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8};
use http::Method;
use http::header::{CONTENT_TYPE, HeaderValue};
use huntsman_xpath::{Node, Scope};
use url::{Url, form_urlencoded};
use xxhash_rust::xxh3::xxh3_128;

use super::Page;
use super::xpath::PageNode;
use crate::error::{Error, Result};
use crate::request::Request;

/// The elements that have values in a form.
const IS_CONTROL: &str = "self::input or self::select or self::textarea or self::button";
/// Whether a control is disabled: itself, or by a `fieldset`, but not in the first legend of that.
const DISABLED: &str = "@disabled or count(ancestor::fieldset[@disabled]) > \
     count(ancestor::legend[not(preceding-sibling::legend)]/parent::fieldset[@disabled])";

/// A form of a page with the values that a browser would send: hidden fields, defaults, selected options, checked boxes, and the button that the
/// Enter key presses, which is the first one.
///
/// Values can be changed only if the form has the field, so that a misspelt name is an error and not a login that fails; [`insert`](Self::insert)
/// adds fields that scripts of the page would add.
///
/// The rules are those of the HTML standard ("Form control infrastructure"): disabled controls are left out, controls elsewhere on the page
/// belong to the form that their attribute `form` names, the text is encoded as `accept-charset` or the page says, and line ends are CRLF.
///
/// ```
/// use huntsman_crawler::{Form, Page, Request, Response};
/// use url::Url;
///
/// let url = Url::parse("http://wiki.example/login").unwrap();
/// let html = "<form id=login method=post action=/session><input type=hidden name=token value=5>\
///             <input name=user><input type=password name=pass><input type=checkbox name=stay value=1><button>Go</button></form>";
/// let page = Page::new(Request::get(url.clone()), Response::html(url, html));
/// let request = Form::of(&page, "#login")?.set("user", "ann")?.set("pass", "a b")?.request()?;
/// assert_eq!((request.url.path(), &request.body[..]), ("/session", &b"token=5&user=ann&pass=a+b"[..]));
/// assert!(Form::of(&page, "#login")?.set("usr", "ann").unwrap_err().to_string().contains("no field \"usr\""));
/// # Ok::<(), huntsman_crawler::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Form<'a> {
    page: &'a Page,
    form: PageNode<'a>,
    controls: Vec<Control>,
    buttons: Vec<Button<'a>>,
    /// The index of the button that is pressed.
    pressed: Option<usize>,
}

#[derive(Clone, Debug)]
struct Control {
    name: String,
    kind: Kind,
    value: String,
    /// Whether it is sent; a box that is not checked is not.
    is_on: bool,
    file: Option<File>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    /// A box, a radio button, or an option of a `select`: its value is fixed.
    Choice,
    File,
    /// Its value is the name of the encoding.
    Charset,
}

#[derive(Clone, Debug)]
struct File {
    name: String,
    content_type: String,
    body: Bytes,
}

#[derive(Clone, Debug)]
struct Button<'a> {
    node: PageNode<'a>,
    is_image: bool,
}

/// What is sent of one field.
enum Sent<'a> {
    Text(Cow<'a, str>),
    File(&'a File),
}

impl<'a> Form<'a> {
    /// The first form that matches a CSS selector, or in which an element that matches lies: `form`, `#login`, `input[name=user]`.
    ///
    /// # Errors
    /// The selector is not valid, or matches nothing that is or lies in a form; the error names the selector and the page.
    pub fn of(page: &'a Page, css: &str) -> Result<Self> {
        for element in page.select(css)? {
            if let Some(form) = element.as_node()?.nodes("ancestor-or-self::form[1]")?.into_iter().next() {
                return Self::read(page, form);
            }
        }
        Err(Error::msg(format!("no form matches \"{}\" on {}", css.escape_debug(), page.url())))
    }

    fn read(page: &'a Page, form: PageNode<'a>) -> Result<Self> {
        let mut read = Self { page, form, controls: Vec::new(), buttons: Vec::new(), pressed: None };
        for control in controls_of(form)? {
            let kind = control.attr("type").unwrap_or_default().to_ascii_lowercase();
            match (control.name().as_str(), kind.as_str()) {
                ("input", "submit" | "image") => {
                    read.buttons.push(Button { node: control, is_image: kind == "image" })
                }
                ("button", "" | "submit") => read.buttons.push(Button { node: control, is_image: false }),
                ("button", _) | ("input", "button" | "reset") => {}
                _ => read.add(&control, &kind)?,
            }
        }
        read.pressed = (!read.buttons.is_empty()).then_some(0);
        Ok(read)
    }

    fn add(&mut self, control: &PageNode<'a>, kind: &str) -> Result<()> {
        let Some(name) = control.attr("name").filter(|name| !name.is_empty()) else { return Ok(()) };
        let value = control.attr("value");
        let mut push = |kind, value: &str, is_on| {
            self.controls.push(Control {
                name: name.to_owned(),
                kind,
                value: value.to_owned(),
                is_on,
                file: None,
            });
        };
        match (control.name().as_str(), kind) {
            ("input", "checkbox" | "radio") => {
                push(Kind::Choice, value.unwrap_or("on"), control.attr("checked").is_some());
            }
            ("input", "file") => push(Kind::File, "", true),
            ("input", "hidden") if name.eq_ignore_ascii_case("_charset_") && value.is_none() => {
                push(Kind::Charset, "", true);
            }
            ("textarea", _) => push(Kind::Text, control.raw_text(), true),
            ("select", _) => {
                let options = control.nodes("descendant::option")?;
                let usable: Vec<_> = options
                    .iter()
                    .map(|option| option.holds("not(@disabled or parent::optgroup/@disabled)"))
                    .collect::<Result<_>>()?;
                let mut selected: Vec<bool> =
                    options.iter().map(|option| option.attr("selected").is_some()).collect();
                if control.attr("multiple").is_none() {
                    // Of several selected options the last one counts, and without any the first one that can be chosen.
                    let first = if control.attr("size").is_none_or(|size| size.trim() == "1") {
                        usable.iter().position(|usable| *usable)
                    } else {
                        None
                    };
                    let chosen = selected.iter().rposition(|selected| *selected).or(first);
                    selected = (0..options.len()).map(|at| Some(at) == chosen).collect();
                }
                for ((option, usable), selected) in options.iter().zip(usable).zip(selected) {
                    let text = option.text().split_ascii_whitespace().collect::<Vec<_>>().join(" ");
                    push(Kind::Choice, option.attr("value").unwrap_or(&text), usable && selected);
                }
            }
            _ => push(Kind::Text, value.unwrap_or_default(), true),
        }
        Ok(())
    }

    /// Gives a field one value: a text, the value of an option or radio button, or that of a box, which is checked.
    ///
    /// # Errors
    /// The form has no such field; or its choices have no such value. The error lists those that there are.
    pub fn set(self, name: &str, value: &str) -> Result<Self> {
        self.set_all(name, &[value])
    }

    /// Gives a field these values and no other; none unchecks all its boxes, and leaves out a text field.
    ///
    /// # Errors
    /// As for [`set`](Self::set).
    pub fn set_all(mut self, name: &str, values: &[&str]) -> Result<Self> {
        self.require(name)?;
        let mut of_it: Vec<&mut Control> =
            self.controls.iter_mut().filter(|control| control.name == name).collect();
        let mut left: Vec<&str> = values.to_vec();
        for control in of_it.iter_mut().filter(|control| control.kind == Kind::Choice) {
            let at = left.iter().position(|value| *value == control.value);
            control.is_on = at.is_some();
            at.map(|at| left.remove(at));
        }
        for control in of_it.iter_mut().filter(|control| control.kind != Kind::Choice) {
            control.is_on = !left.is_empty();
            if control.is_on {
                left.remove(0).clone_into(&mut control.value);
                control.kind = Kind::Text;
            }
        }
        let Some(value) = left.first() else { return Ok(self) };
        if of_it.iter().any(|control| control.kind != Kind::Choice) {
            // More values than text fields of this name: the others follow the last one.
            let last = self.controls.iter().rposition(|control| control.name == name).unwrap_or_default();
            let more = left.iter().map(|value| Control::text(name, value)).collect::<Vec<_>>();
            self.controls.splice(last + 1..last + 1, more);
            return Ok(self);
        }
        let choices: Vec<String> = of_it.iter().map(|control| format!("{:?}", control.value)).collect();
        Err(self.error(format!("the field {name:?} has no choice {value:?}; it has {}", choices.join(", "))))
    }

    /// Adds a field that the page does not have, as its scripts would.
    #[must_use]
    pub fn insert(mut self, name: &str, value: &str) -> Self {
        self.controls.push(Control::text(name, value));
        self
    }

    /// Chooses a file for a field of type `file`. A form with files should have `enctype="multipart/form-data"`; otherwise only the name of the
    /// file is sent, as browsers do.
    ///
    /// # Errors
    /// The form has no such field, or it is not of this type.
    pub fn file(
        mut self,
        name: &str,
        file_name: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<Self> {
        self.require(name)?;
        let control =
            self.controls.iter_mut().find(|control| control.name == name && control.kind == Kind::File);
        let Some(control) = control else {
            return Err(self.error(format!("the field {name:?} takes no file")));
        };
        let (name, content_type) = (file_name.to_owned(), content_type.to_owned());
        control.file = Some(File { name, content_type, body: body.into() });
        Ok(self)
    }

    /// Presses the button that matches a CSS selector, in place of the first one.
    ///
    /// # Errors
    /// The selector is not valid, or matches no button of this form.
    pub fn press(mut self, css: &str) -> Result<Self> {
        let mut wanted: HashSet<Node> = HashSet::new();
        for element in self.page.select(css)? {
            wanted.insert(element.as_node()?.id());
        }
        let pressed = self.buttons.iter().position(|button| wanted.contains(&button.node.id()));
        match pressed {
            Some(_) => self.pressed = pressed,
            None => return Err(self.error(format!("no button matches {css:?}"))),
        }
        Ok(self)
    }

    /// Sends the form as a script does that submits it: without a button.
    #[must_use]
    pub fn without_button(mut self) -> Self {
        self.pressed = None;
        self
    }

    /// The names and values of the fields that would be sent, without button and files.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let sent = self.controls.iter().filter(|control| control.is_on && control.kind != Kind::File);
        sent.map(|control| (control.name.as_str(), control.value.as_str()))
    }

    /// The request that sends the form.
    ///
    /// # Errors
    /// The action is not a URL of a page.
    pub fn request(&self) -> Result<Request> {
        let attr = |name: &str| {
            let of_button = self.pressed.and_then(|at| self.buttons[at].node.attr(&format!("form{name}")));
            of_button.or_else(|| self.form.attr(name)).unwrap_or_default().trim()
        };
        let action = match attr("action") {
            "" => Some(self.page.url().clone()),
            action => self.page.join(action),
        };
        let mut action =
            action.ok_or_else(|| self.error(format!("the action {:?} is no page", attr("action"))))?;
        let encoding = self.encoding();
        let fields = self.sent(encoding);
        if !attr("method").eq_ignore_ascii_case("post") {
            action.set_query(Some(&url_encoded(&fields, encoding)));
            return Ok(Request::get(action));
        }
        let (content_type, body) = match attr("enctype").to_ascii_lowercase().as_str() {
            "multipart/form-data" => multipart(&fields, encoding),
            "text/plain" => ("text/plain".to_owned(), plain(&fields, encoding)),
            _ => {
                ("application/x-www-form-urlencoded".to_owned(), url_encoded(&fields, encoding).into_bytes())
            }
        };
        post(action, &content_type, body)
    }

    /// The encoding of the values: the first known one of `accept-charset`, or that of the page.
    fn encoding(&self) -> &'static Encoding {
        let accepted = self.form.attr("accept-charset").unwrap_or_default();
        let mut labels = accepted.split_ascii_whitespace().chain([self.page.encoding()]);
        let known = labels.find_map(|label| Encoding::for_label(label.as_bytes()));
        known.map_or(UTF_8, Encoding::output_encoding)
    }

    /// The fields that are sent, in the order of the document; the button comes last.
    fn sent(&self, encoding: &'static Encoding) -> Vec<(Cow<'_, str>, Sent<'_>)> {
        let mut sent: Vec<(Cow<'_, str>, Sent<'_>)> = Vec::new();
        for control in self.controls.iter().filter(|control| control.is_on) {
            let value = match (&control.file, control.kind) {
                (Some(file), _) => Sent::File(file),
                (None, Kind::File) => Sent::File(&NO_FILE),
                (None, Kind::Charset) => Sent::Text(encoding.name().into()),
                (None, _) => Sent::Text(with_crlf(&control.value)),
            };
            sent.push((control.name.as_str().into(), value));
        }
        if let Some(button) = self.pressed.map(|at| &self.buttons[at]) {
            let name = button.node.attr("name").unwrap_or_default();
            let value = button.node.attr("value").unwrap_or_default();
            match (button.is_image, name) {
                // The place on the image at which it was clicked.
                (true, _) => sent.extend(["x", "y"].map(|axis| {
                    let name = if name.is_empty() { axis.to_owned() } else { format!("{name}.{axis}") };
                    (name.into(), Sent::Text("0".into()))
                })),
                (false, "") => {}
                (false, name) => sent.push((name.into(), Sent::Text(with_crlf(value)))),
            }
        }
        sent
    }

    fn require(&self, name: &str) -> Result<()> {
        if self.controls.iter().any(|control| control.name == name) {
            return Ok(());
        }
        let mut names: Vec<String> =
            self.controls.iter().map(|control| format!("{:?}", control.name)).collect();
        names.dedup();
        let has =
            if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
        Err(self.error(format!("the form has no field {name:?}; {has} (`insert` adds one)")))
    }

    fn error(&self, what: String) -> Error {
        Error::msg(what).context(self.page.url().to_string())
    }
}

/// What is sent of a file field for which no file was chosen.
static NO_FILE: File = File { name: String::new(), content_type: String::new(), body: Bytes::new() };

impl Control {
    fn text(name: &str, value: &str) -> Self {
        Self { name: name.to_owned(), kind: Kind::Text, value: value.to_owned(), is_on: true, file: None }
    }
}

/// The controls that belong to a form, in document order.
fn controls_of(form: PageNode<'_>) -> Result<Vec<PageNode<'_>>> {
    let id = form.attr("id").unwrap_or_default();
    let scope = Scope::new().variable("id", id);
    let inside = format!("descendant::*[{IS_CONTROL}][not(@form) or @form = $id]");
    let elsewhere = format!("//*[{IS_CONTROL}][@form = $id and $id != '']");
    // One expression for all controls has one budget of steps; one for each control would have thousands.
    let sent = format!("[not({DISABLED} or ancestor::datalist)]");
    let mut controls = form.nodes_with(&format!("({inside} | {elsewhere}){sent}"), &scope)?;
    if form.nodes("*")?.is_empty() {
        // A form right in a table is empty in the tree, but the parser ties the controls after it to the form.
        let tied = format!("{IS_CONTROL}][not(@form or ancestor::form or {DISABLED} or ancestor::datalist)");
        let following = form.nodes(&format!("following::*[self::form] | following::*[{tied}]"))?;
        controls.extend(following.into_iter().take_while(|node| node.name() != "form"));
    }
    Ok(controls)
}

fn with_crlf(value: &str) -> Cow<'_, str> {
    if !value.contains(['\r', '\n']) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(value.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n"))
}

/// A text in the encoding; a character that it lacks becomes a reference (`&#9786;`), as browsers send it.
fn encoded<'a>(text: &'a str, encoding: &'static Encoding) -> Cow<'a, [u8]> {
    encoding.encode(text).0
}

fn url_encoded(fields: &[(Cow<'_, str>, Sent<'_>)], encoding: &'static Encoding) -> String {
    let mut out = String::new();
    let push = |out: &mut String, text: &str| {
        form_urlencoded::byte_serialize(&encoded(text, encoding)).for_each(|part| out.push_str(part));
    };
    for (name, value) in fields {
        if !out.is_empty() {
            out.push('&');
        }
        push(&mut out, name);
        out.push('=');
        push(&mut out, value.text());
    }
    out
}

fn plain(fields: &[(Cow<'_, str>, Sent<'_>)], encoding: &'static Encoding) -> Vec<u8> {
    let lines: String = fields.iter().map(|(name, value)| format!("{name}={}\r\n", value.text())).collect();
    encoded(&lines, encoding).into_owned()
}

/// The content type with its boundary, and the body (RFC 7578). The boundary is a hash of the content, so that the same form has the same
/// fingerprint each time.
fn multipart(fields: &[(Cow<'_, str>, Sent<'_>)], encoding: &'static Encoding) -> (String, Vec<u8>) {
    let escaped = |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for (name, value) in fields {
        let mut head = format!("Content-Disposition: form-data; name=\"{}\"", escaped(name));
        let body = match value {
            Sent::Text(text) => encoded(text, encoding),
            Sent::File(file) => {
                let content_type = if file.content_type.is_empty() {
                    "application/octet-stream"
                } else {
                    &file.content_type
                };
                head.push_str(&format!(
                    "; filename=\"{}\"\r\nContent-Type: {}",
                    escaped(&file.name),
                    escaped(content_type)
                ));
                Cow::Borrowed(&file.body[..])
            }
        };
        let mut part = encoded(&head, encoding).into_owned();
        part.extend_from_slice(b"\r\n\r\n");
        part.extend_from_slice(&body);
        parts.push(part);
    }
    let mut boundary = format!("----form-{:032x}", xxh3_128(&parts.concat()));
    while parts.iter().any(|part| memchr::memmem::find(part, boundary.as_bytes()).is_some()) {
        boundary.push('x');
    }
    let mut body = Vec::new();
    for part in parts {
        body.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
        body.extend_from_slice(&part);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}

fn post(url: Url, content_type: &str, body: Vec<u8>) -> Result<Request> {
    let mut request = Request::get(url).method(Method::POST).body(body);
    request.headers.insert(CONTENT_TYPE, HeaderValue::from_str(content_type)?);
    Ok(request)
}

impl Sent<'_> {
    /// The value where only texts can be sent: of a file, its name.
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::File(file) => &file.name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::Response;

    fn page(html: &str) -> Page {
        let url = Url::parse("http://h.example/dir/page?old=1#top").unwrap();
        Page::new(Request::get(url.clone()), Response::html(url, html.to_owned()))
    }

    fn body(form: &Form<'_>) -> String {
        String::from_utf8(form.request().unwrap().body.to_vec()).unwrap()
    }

    #[test]
    fn what_a_browser_would_send_is_sent() {
        let page = page(
            "<form method=POST action=../go><input name=a value=1><input name=a value=2><input name=off value=x disabled>
             <input type=hidden name=h value='x&y'><input value=nameless><input type=checkbox name=c checked><input type=checkbox name=c value=no>
             <input type=radio name=r value=1><input type=radio name=r value=2 checked>
             <select name=s><option disabled>Please choose<option value=f> First <option>Second   one</select>
             <select name=m multiple><option selected>x<option>y<option selected>z</select><select name=e size=3><option>n</select>
             <textarea name=t>\none\ntwo</textarea><fieldset disabled><legend><input name=in value=1></legend><input name=out></fieldset>
             <datalist><input name=data></datalist><input type=reset name=no><button type=button name=nor></button>
             <input type=submit name=first value=Go><button name=second value=2>Two</button></form><input name=far value=9 form=other>",
        );
        let form = Form::of(&page, "form").unwrap();
        let request = form.request().unwrap();
        assert_eq!((request.method.as_str(), request.url.as_str()), ("POST", "http://h.example/go"));
        assert_eq!(request.headers[CONTENT_TYPE], "application/x-www-form-urlencoded");
        assert_eq!(body(&form), "a=1&a=2&h=x%26y&c=on&r=2&s=f&m=x&m=z&t=one%0D%0Atwo&in=1&first=Go");
        assert!(body(&form.clone().press("button").unwrap()).ends_with("&in=1&second=2"));
        assert!(body(&form.clone().without_button()).ends_with("&in=1"));
        assert_eq!(form.fields().count(), 10);
    }

    #[test]
    fn fields_take_the_values_that_they_have() {
        let page = page(
            "<form id=f><input name=q><input name=q><input type=checkbox name=c value=1 checked><input type=checkbox name=c value=2>
             <select name=s><option value=a>A<option value=b>B</select></form>",
        );
        let form = || Form::of(&page, "#f").unwrap();
        let query = |form: Form<'_>| form.request().unwrap().url.query().unwrap_or_default().to_owned();
        assert_eq!(query(form()), "q=&q=&c=1&s=a");
        assert_eq!(
            query(form().set("q", "x y").unwrap().set("s", "b").unwrap().set("c", "2").unwrap()),
            "q=x+y&c=2&s=b"
        );
        assert_eq!(
            query(form().set_all("q", &["1", "2", "3"]).unwrap().set_all("c", &[]).unwrap()),
            "q=1&q=2&q=3&s=a"
        );
        assert_eq!(
            query(form().set_all("c", &["2", "1"]).unwrap().insert("js", "1")),
            "q=&q=&c=1&c=2&s=a&js=1"
        );
        let error = |form: Result<Form<'_>>| form.unwrap_err().to_string();
        assert_eq!(
            error(form().set("p", "1")),
            "http://h.example/dir/page?old=1#top: the form has no field \"p\"; it has \"q\", \"c\", \"s\" (`insert` adds one)"
        );
        assert!(error(form().set("s", "z")).contains("has no choice \"z\"; it has \"a\", \"b\""));
        assert!(error(form().press("button")).contains("no button matches \"button\""));
        assert!(error(form().file("q", "f", "text/plain", "x")).contains("takes no file"));
        assert!(error(Form::of(&page, "div")).contains("no form matches \"div\""));
    }

    #[test]
    fn method_action_and_button_say_where_it_goes() {
        let page = page(
            "<base href=/base/><form action='?x=1'><input name=q value=1><input name=i type=image>
             <button formaction=/other formmethod=post name=b value=1>B</button></form>",
        );
        let form = Form::of(&page, "input[name=q]").unwrap();
        assert_eq!(form.request().unwrap().url.as_str(), "http://h.example/base/?q=1&i.x=0&i.y=0");
        let pressed = form.press("[name=b]").unwrap().request().unwrap();
        assert_eq!((pressed.url.as_str(), &pressed.body[..]), ("http://h.example/other", &b"q=1&b=1"[..]));
        let same = self::page("<form method=post><input name=q></form>");
        assert_eq!(
            Form::of(&same, "form").unwrap().request().unwrap().url,
            *same.url(),
            "without an action, the page itself"
        );
        let mail = self::page("<form action=mailto:x@y.example><input name=q></form>");
        assert!(Form::of(&mail, "form").unwrap().request().unwrap_err().to_string().contains("is no page"));
    }

    #[test]
    fn controls_belong_to_their_form_wherever_they_are() {
        let page = page(
            "<input name=before value=1 form=f><form id=f><input name=own value=2><input name=given value=3 form=g></form>
             <table><form id=t><tr><td><input name=cell value=4></td></tr></form><tr><td><input name=late value=5></table><form id=g></form>",
        );
        let names = |css: &str| {
            let form = Form::of(&page, css).unwrap();
            form.fields().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("#f"), ["before", "own"]);
        assert_eq!(names("#g"), ["given"]);
        assert_eq!(names("#t"), ["cell", "late"]);
    }

    #[test]
    fn files_are_sent_as_multipart() {
        let page = page(
            "<form method=post enctype=multipart/form-data><input name='a\"b' value=1><input type=file name=f><input type=file name=none></form>",
        );
        let form = Form::of(&page, "form").unwrap().file("f", "x.txt", "text/plain", "the body").unwrap();
        let request = form.request().unwrap();
        let content_type = request.headers[CONTENT_TYPE].to_str().unwrap().to_owned();
        let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
        let wanted = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"a%22b\"\r\n\r\n1\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\nContent-Type: text/plain\r\n\r\nthe body\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"none\"; filename=\"\"\r\nContent-Type: application/octet-stream\r\n\r\n\r\n\
             --{boundary}--\r\n"
        );
        assert_eq!(String::from_utf8_lossy(&request.body), wanted);
        assert_eq!(request.body, form.request().unwrap().body, "the same form is the same request");
    }

    #[test]
    fn values_are_in_the_encoding_of_the_form() {
        let html = "<form accept-charset='iso-8859-1'><input name=q value='\u{e9}\u{263a}'><input type=hidden name=_charset_></form>";
        let request = Form::of(&page(html), "form").unwrap().request().unwrap();
        assert_eq!(request.url.query(), Some("q=%E9%26%239786%3B&_charset_=windows-1252"));
    }

    #[test]
    fn a_form_of_many_controls_has_one_budget_of_steps() {
        let inputs = "<input name=a>".repeat(3_000);
        let html = format!(
            "<form id=f><fieldset disabled>{}<legend>{inputs}</legend></fieldset></form><form id=g>{inputs}</form>",
            "<br>".repeat(30_000)
        );
        let page = page(&html);
        let error = Form::of(&page, "#f").unwrap_err().to_string();
        assert!(error.contains("steps that are allowed"), "{error}");
        assert_eq!(Form::of(&page, "#g").unwrap().fields().count(), 3_000);
    }
}
