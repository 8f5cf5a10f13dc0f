//! The reader of PDF files for audits: this program in another process.

use std::sync::Arc;

use huntsman::audit::ReadPdf;

/// The reader.
#[cfg(feature = "pdf")]
pub(super) fn reader() -> Option<Arc<dyn ReadPdf>> {
    use huntsman::audit::PdfFacts;
    use huntsman::sweep::{PdfError, PdfProcess, PdfText};

    #[derive(Debug)]
    struct Reader(PdfProcess);

    impl ReadPdf for Reader {
        fn read(&self, pdf: &[u8]) -> Result<PdfFacts, String> {
            let printed = match self.0.text(pdf) {
                Ok(printed) => printed,
                Err(PdfError::NoText) => String::new(),
                Err(error) => return Err(error.to_string()),
            };
            let found = huntsman::sweep::PdfFacts::of(&printed);
            Ok(PdfFacts { title: found.title, text: found.text, links: found.links })
        }
    }

    let process = crate::copyvio::pdf_process(&["pdf-text", "--facts"])?;
    Some(Arc::new(Reader(process)))
}

/// No reader: the command was built without the feature `pdf`.
#[cfg(not(feature = "pdf"))]
pub(super) fn reader() -> Option<Arc<dyn ReadPdf>> {
    None
}
