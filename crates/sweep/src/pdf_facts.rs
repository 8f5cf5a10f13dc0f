//! What a PDF file says besides its text.

/// What a PDF file says, as `pdf_child::write_facts` prints it.
///
/// ```
/// use huntsman_sweep::PdfFacts;
///
/// let facts = PdfFacts::of("Title: The mill\nLink: https://example.org/\n\nThe old mill stands on the bank.\n");
/// assert_eq!(facts.title.as_deref(), Some("The mill"));
/// assert_eq!(facts.links, ["https://example.org/"]);
/// assert_eq!(facts.text, "The old mill stands on the bank.\n");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PdfFacts {
    /// The title in its data.
    pub title: Option<String>,
    /// The addresses of its links, in the order of its pages.
    pub links: Vec<String>,
    /// Its text.
    pub text: String,
}

impl PdfFacts {
    /// Reads what was printed: a line for the title and for each link, an empty line, and the text.
    pub fn of(printed: &str) -> Self {
        let mut facts = Self::default();
        let mut rest = printed;
        while let Some((line, behind)) = rest.split_once('\n') {
            rest = behind;
            if let Some(title) = line.strip_prefix("Title: ") {
                facts.title = Some(title.trim().to_owned()).filter(|title| !title.is_empty());
            } else if let Some(link) = line.strip_prefix("Link: ") {
                facts.links.push(link.trim().to_owned());
            } else {
                break;
            }
        }
        rest.clone_into(&mut facts.text);
        facts
    }
}
