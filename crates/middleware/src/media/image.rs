//! What is done with images before they are stored. What needs their pixels is in `pixels`, behind the feature `thumbnails`.

#[cfg(feature = "thumbnails")]
mod pixels;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A format in which images are stored (`images_convert`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageTarget {
    /// JPEG: transparent pixels become white, and of an animation the first picture is kept.
    Jpeg,
    /// PNG: of an animation the first picture is kept.
    Png,
}

impl ImageTarget {
    /// The ending of its files.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            Self::Png => "png",
        }
    }
}

/// What the settings want of images. Without the feature `thumbnails` they want nothing.
#[derive(Clone, Debug)]
pub(super) struct ImageRules {
    /// Least width and height.
    #[cfg_attr(not(feature = "thumbnails"), expect(dead_code, reason = "no image is looked at"))]
    pub(super) min: (u32, u32),
    pub(super) convert: Option<ImageTarget>,
    /// Greatest width and height of thumbnails, by their names.
    pub(super) thumbs: BTreeMap<String, (u32, u32)>,
    #[cfg_attr(not(feature = "thumbnails"), expect(dead_code, reason = "no image is decoded"))]
    pub(super) max_pixels: u64,
}

/// An image or a file as it is stored, with its thumbnails.
pub(super) struct Made {
    pub(super) body: Bytes,
    pub(super) ending: &'static str,
    /// Small copies by their names, as JPEG files.
    pub(super) thumbs: BTreeMap<String, Vec<u8>>,
}

impl Made {
    pub(super) fn as_it_is(body: Bytes, ending: &'static str) -> Self {
        Self { body, ending, thumbs: BTreeMap::new() }
    }
}

/// Why an image is not stored.
#[cfg_attr(not(feature = "thumbnails"), expect(dead_code, reason = "no image is looked at"))]
pub(super) enum Refusal {
    /// It is smaller than the settings want.
    Small(String),
    /// It cannot be read, or is too large to be decoded.
    Unreadable(String),
}

#[cfg_attr(
    not(feature = "thumbnails"),
    expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "settings want nothing")
)]
impl ImageRules {
    /// Whether an image is large enough, by its header.
    pub(super) fn check_size(&self, body: &[u8]) -> Result<(), Refusal> {
        #[cfg(feature = "thumbnails")]
        if self.min != (0, 0) {
            return pixels::check_size(body, self);
        }
        let _ = body;
        Ok(())
    }

    /// The image in the format that is wanted, with the thumbnails for whose names `is_wanted` is true. An image that needs neither is not
    /// decoded.
    pub(super) fn make(
        &self,
        body: Bytes,
        ending: &'static str,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Result<Made, Refusal> {
        let thumbs: Vec<_> = self.thumbs.iter().filter(|(name, _)| is_wanted(name)).collect();
        #[cfg(feature = "thumbnails")]
        if !thumbs.is_empty() || self.target(ending).is_some() {
            return pixels::make(body, ending, self, &thumbs);
        }
        let _ = thumbs;
        Ok(Made::as_it_is(body, ending))
    }

    /// The format into which an image with this ending is converted.
    #[cfg(feature = "thumbnails")]
    fn target(&self, ending: &str) -> Option<ImageTarget> {
        self.convert.filter(|target| target.ending() != ending)
    }
}
