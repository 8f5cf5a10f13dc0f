//! Thumbnails of images, as JPEG files. The header of an image is judged before a pixel is decoded.

use std::collections::BTreeMap;
use std::io::{self, Cursor};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use huntsman_files as files;
use image::{ImageFormat, ImageReader, Limits};

/// One image is decoded at a time: it may need four bytes and more for each pixel that is allowed.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Bytes that decoding may need for each allowed pixel: 16 bits for each of four channels, and as much for the work.
const BYTES_PER_PIXEL: u64 = 16;

/// Why there is no thumbnail.
pub(super) enum Failure {
    /// The image cannot be read, or is too large.
    Image(String),
    /// The file cannot be read or written.
    Disk(io::Error),
}

/// Makes the thumbnails of an image: all if it is new, otherwise those that are missing. Returns their names within the folder.
pub(super) fn make(
    folder: &Path,
    stem: &str,
    thumbs: &BTreeMap<String, (u32, u32)>,
    max_pixels: u64,
    is_new: bool,
    read: impl FnOnce() -> io::Result<Bytes>,
) -> Result<BTreeMap<String, String>, Failure> {
    let path = |name: &String| format!("thumbs/{name}/{stem}.jpg");
    let names: BTreeMap<String, String> = thumbs.keys().map(|name| (name.clone(), path(name))).collect();
    let is_there = |path: &String| folder.join(path).symlink_metadata().is_ok_and(|found| found.is_file());
    if !is_new && names.values().all(is_there) {
        return Ok(names);
    }
    let body = read().map_err(Failure::Disk)?;
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let image = decode(&body, max_pixels).map_err(Failure::Image)?;
    for (name, (width, height)) in thumbs {
        let file = folder.join(&names[name]);
        if !is_new && is_there(&names[name]) {
            continue;
        }
        // An image that is smaller stays as it is, as in Scrapy.
        let is_small = image.width() <= *width && image.height() <= *height;
        let small = if is_small { image.clone() } else { image.thumbnail(*width, *height) };
        let mut jpeg = Vec::new();
        // JPEG has no transparency.
        image::DynamicImage::ImageRgb8(small.to_rgb8())
            .write_to(&mut Cursor::new(&mut jpeg), ImageFormat::Jpeg)
            .map_err(|error| Failure::Image(format!("making the thumbnail {name}: {error}")))?;
        files::write(file, &jpeg).map_err(Failure::Disk)?;
    }
    Ok(names)
}

fn decode(body: &[u8], max_pixels: u64) -> Result<image::DynamicImage, String> {
    let fault = |error: &dyn std::fmt::Display| format!("the image cannot be read: {error}");
    let open = || ImageReader::new(Cursor::new(body)).with_guessed_format();
    let (width, height) =
        open().map_err(|error| fault(&error))?.into_dimensions().map_err(|error| fault(&error))?;
    let pixels = u64::from(width) * u64::from(height);
    if pixels > max_pixels {
        return Err(format!(
            "the image has {width} x {height} pixels, more than images_max_pixels = {max_pixels}"
        ));
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(max_pixels.saturating_mul(BYTES_PER_PIXEL));
    let mut reader = open().map_err(|error| fault(&error))?;
    reader.limits(limits);
    reader.decode().map_err(|error| fault(&error))
}

#[cfg(test)]
mod tests {
    use image::{DynamicImage, RgbaImage};

    use super::*;

    fn encoded(width: u32, height: u32, format: ImageFormat) -> Bytes {
        let mut bytes = Vec::new();
        let image = DynamicImage::ImageRgba8(RgbaImage::new(width, height));
        let image =
            if format == ImageFormat::Jpeg { DynamicImage::ImageRgb8(image.to_rgb8()) } else { image };
        image.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
        bytes.into()
    }

    #[test]
    fn images_of_all_formats_become_small_ones_of_the_same_shape() {
        for format in [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Gif, ImageFormat::WebP] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(dir.path().join("thumbs/small")).unwrap();
            let thumbs = BTreeMap::from([("small".to_owned(), (50, 50))]);
            let read = || Ok(encoded(200, 100, format));
            let made = make(dir.path(), "abc", &thumbs, 20_000, true, read).ok().unwrap();
            assert_eq!(made["small"], "thumbs/small/abc.jpg");
            let small = image::open(dir.path().join(&made["small"])).unwrap();
            assert_eq!((small.width(), small.height()), (50, 25), "{format:?}");
        }
    }

    #[test]
    fn an_image_with_too_many_pixels_is_refused_by_its_header() {
        // A PNG whose header claims four thousand million pixels, and which has none.
        let mut png = encoded(1, 1, ImageFormat::Png).to_vec();
        png[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
        let mut sum = crc(&png[12..29]).to_be_bytes().to_vec();
        png.splice(29..33, sum.drain(..));
        let error = decode(&png, 40_000_000).unwrap_err();
        assert!(error.contains("65536 x 65536 pixels, more than images_max_pixels"), "{error}");
        assert!(decode(&encoded(100, 100, ImageFormat::Gif), 9_999).is_err());
        assert!(decode(b"GIF89a and nothing else", 1_000).is_err());
    }

    fn crc(bytes: &[u8]) -> u32 {
        let mut crc = u32::MAX;
        for byte in bytes {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
            }
        }
        !crc
    }
}
