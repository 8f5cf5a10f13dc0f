//! How a report looks to its readers: the title and the logo that settings choose.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use huntsman_crawler::{Error, Result};
use huntsman_middleware::AuditSettings;

/// Bytes of a logo.
const MAX_LOGO: u64 = 200_000;
/// How files of images begin, and their types.
const IMAGES: [(&[u8], &str); 5] = [
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"<svg", "image/svg+xml"),
    (b"<?xml", "image/svg+xml"),
];

/// The title and the logo that settings choose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// The title of the report in place of "Audit of" and the host.
    pub(crate) title: Option<String>,
    /// A logo as a `data:` URL.
    pub(crate) logo: Option<String>,
}

impl Look {
    /// Reads the logo.
    ///
    /// # Errors
    /// The file of the logo cannot be read, is too large or no image; the error names it.
    pub(crate) fn of(settings: &AuditSettings) -> Result<Self> {
        let logo = settings.audit_logo.as_deref().map(|path| data_url(Path::new(path)));
        Ok(Self { title: settings.audit_title.clone(), logo: logo.transpose()? })
    }
}

fn data_url(path: &Path) -> Result<String> {
    let wrong = |why: String| Error::usage(format!("setting audit_logo: {}: {why}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
    if size > MAX_LOGO {
        return Err(wrong(format!("it has {size} bytes, and a logo may have {MAX_LOGO}")));
    }
    let bytes = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let found = IMAGES.iter().find(|(begin, _)| bytes.starts_with(begin));
    let (_, kind) = found.ok_or_else(|| wrong("use a PNG, JPEG, GIF or SVG image".to_owned()))?;
    Ok(format!("data:{kind};base64,{}", STANDARD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logo_is_an_image_of_a_moderate_size_or_the_error_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let of = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            data_url(&path)
        };
        assert_eq!(of("a.svg", b"<svg/>").unwrap(), "data:image/svg+xml;base64,PHN2Zy8+");
        for (name, bytes, why) in
            [("b.png", b"MZ".to_vec(), "use a PNG"), ("c.png", vec![0x89; 300_000], "300000 bytes")]
        {
            let said = of(name, &bytes).unwrap_err().to_string();
            assert!(said.contains(name) && said.contains(why), "{said}");
        }
        let said = data_url(&dir.path().join("none.png")).unwrap_err().to_string();
        assert!(said.contains("none.png"), "{said}");
    }
}
