//! The tree that is delivered.

use crate::kit::{Site, rendered, run};

const PAGE: &str = "https://a.test/dir/";

/// What is between the tags of the body.
fn body(html: &str) -> &str {
    let (_, body) = html.split_once("<body>").expect("there is a body");
    body.split_once("</body>").expect("it ends").0
}

async fn body_of(source: &str) -> String {
    body(&rendered(&Site::new().html(PAGE, source.to_owned()).share(), PAGE).await.html).to_owned()
}

#[test]
fn open_shadow_roots_stand_where_they_are_seen_and_slots_are_filled() {
    run(async {
        let source = r#"<x-card><b slot="title">Name</b>light</x-card><x-closed>unseen</x-closed><script>
            customElements.define("x-card", class extends HTMLElement { connectedCallback() {
                this.attachShadow({ mode: "open" }).innerHTML = '<h2><slot name="title"></slot></h2><p><slot>none</slot></p><i><slot name="other">fallback</slot></i><x-inner></x-inner>'; } });
            customElements.define("x-inner", class extends HTMLElement { connectedCallback() {
                this.attachShadow({ mode: "open" }).innerHTML = '<a href="deep">deep</a>'; } });
            document.querySelector("x-closed").attachShadow({ mode: "closed" }).innerHTML = "secret";
            document.currentScript.remove()</script>"#;
        assert_eq!(
            body_of(source).await,
            r#"<x-card><h2><b slot="title">Name</b></h2><p>light</p><i>fallback</i><x-inner><a href="deep">deep</a></x-inner></x-card><x-closed>unseen</x-closed>"#
        );
    });
}

#[test]
fn frames_of_the_same_site_are_part_of_the_page_and_others_are_not() {
    run(async {
        let page = "<!doctype html><iframe src=https://sub.a.test/in/frame></iframe><iframe src=https://b.test/frame></iframe><iframe srcdoc='<p>written</p>'></iframe>";
        let site = Site::new()
            .html(PAGE, page)
            .html(
                "https://sub.a.test/in/frame",
                "<p>of the site</p><a href=next?a=1&b=2>next</a><iframe src=more></iframe>",
            )
            .html("https://sub.a.test/in/more", "<a href=x>nested</a>")
            .html("https://b.test/frame", "<p>of another site</p>")
            .share();
        let page = rendered(&site, PAGE).await;
        let nested = r#"<iframe src="https://sub.a.test/in/more"></iframe><div data-huntsman-frame="https://sub.a.test/in/more"><a href="https://sub.a.test/in/x">nested</a></div>"#;
        let expected = format!(
            r#"<iframe src="https://sub.a.test/in/frame"></iframe><div data-huntsman-frame="https://sub.a.test/in/frame"><p>of the site</p><a href="https://sub.a.test/in/next?a=1&amp;b=2">next</a>{nested}</div><iframe src="https://b.test/frame"></iframe><iframe></iframe><div data-huntsman-frame="about:srcdoc"><p>written</p></div>"#
        );
        assert_eq!(body(&page.html), expected);
    });
}

#[test]
fn text_and_attributes_mean_the_same_when_they_are_read_again() {
    run(async {
        let source = "<p title='a \"b\" &amp; <c>'>1 &lt; 2 &amp;&nbsp;3</p><pre>\n\nx</pre><br><svg viewBox='0 0 1 1'><linearGradient/></svg><!-- note --><template><i>inert</i></template><textarea>\n\na</textarea>";
        let once = body_of(source).await;
        assert_eq!(
            once,
            "<p title=\"a &quot;b&quot; &amp; &lt;c&gt;\">1 &lt; 2 &amp;&nbsp;3</p><pre>\n\nx</pre><br><svg viewBox=\"0 0 1 1\"><linearGradient></linearGradient></svg><!-- note --><template><i>inert</i></template><textarea>\n\na</textarea>"
        );
        assert_eq!(body_of(&format!("<body>{once}</body>")).await, once);
    });
}

#[test]
fn scripts_and_styles_keep_their_text_and_halves_of_characters_are_replaced() {
    run(async {
        let source = "<style>a > b {}</style><p></p><script>if (1 < 2 && 3 > 2) document.querySelector('p').textContent = 'x\\ud800y'</script>";
        assert_eq!(
            body_of(&format!("<body>{source}</body>")).await,
            source.replace("<p></p>", "<p>x\u{fffd}y</p>")
        );
    });
}

#[test]
fn the_address_is_that_at_the_end_also_if_a_script_changed_it() {
    run(async {
        let site =
            Site::new().html(PAGE, "<script>history.pushState({}, '', '/other?q=1#part')</script>").share();
        assert_eq!(rendered(&site, PAGE).await.url, "https://a.test/other?q=1#part");
    });
}

#[test]
fn a_tree_that_is_too_deep_for_recursion_is_read() {
    run(async {
        let source = "<body><script>let at = document.body; for (let i = 0; i < 2000; i++) { const next = document.createElement('div'); at.append(next); at = next; } at.append('bottom')</script>";
        let page = rendered(&Site::new().html(PAGE, source).share(), PAGE).await;
        assert_eq!((page.html.matches("<div>").count(), page.html.contains("bottom")), (2_000, true));
    });
}
