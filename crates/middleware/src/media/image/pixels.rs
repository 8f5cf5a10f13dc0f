//! Sizes, formats and small copies of images. The header of an image is judged before a pixel is decoded.

use std::fmt::Display;
use std::io::Cursor;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, RgbImage};

use super::{ImageRules, ImageTarget, Made, Refusal};

/// One image is decoded at a time: it may need four bytes and more for each pixel that is allowed.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Bytes that decoding may need for each allowed pixel: 16 bits for each of four channels, and as much for the work.
const BYTES_PER_PIXEL: u64 = 16;

impl Refusal {
    fn unreadable(error: impl Display) -> Self {
        Self::Unreadable(format!("the image cannot be read: {error}"))
    }
}

/// Whether an image is as large as the rules want.
pub(super) fn check_size(body: &[u8], rules: &ImageRules) -> Result<(), Refusal> {
    let (width, height) = turned_size(&mut decoder(body, rules.max_pixels)?)?;
    let (min_width, min_height) = rules.min;
    if width >= min_width && height >= min_height {
        return Ok(());
    }
    Err(Refusal::Small(format!(
        "the image has {width} x {height} pixels, less than images_min_width x images_min_height = {min_width} x {min_height}"
    )))
}

/// Converts an image, if the rules want another format, and makes the thumbnails of these names and sizes.
pub(super) fn make(
    body: Bytes,
    ending: &'static str,
    rules: &ImageRules,
    thumbs: &[(&String, &(u32, u32))],
) -> Result<Made, Refusal> {
    let (width, height) = turned_size(&mut decoder(&body, rules.max_pixels)?)?;
    let pixels = u64::from(width) * u64::from(height);
    if pixels > rules.max_pixels {
        return Err(Refusal::Unreadable(format!(
            "the image has {width} x {height} pixels, more than images_max_pixels = {}",
            rules.max_pixels
        )));
    }
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let image = decode(&body, rules.max_pixels)?;
    let small = thumbs.iter().map(|(name, size)| Ok(((*name).clone(), jpeg(shrunk(&image, **size))?)));
    let thumbs = small.collect::<Result<_, Refusal>>()?;
    Ok(match rules.target(ending) {
        None => Made { body, ending, thumbs },
        Some(ImageTarget::Png) => {
            Made { body: encode(&image, ImageFormat::Png)?.into(), ending: "png", thumbs }
        }
        Some(ImageTarget::Jpeg) => Made { body: jpeg(image)?.into(), ending: "jpg", thumbs },
    })
}

/// A decoder of the image that has read no more than the header.
fn decoder(body: &[u8], max_pixels: u64) -> Result<impl ImageDecoder, Refusal> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(max_pixels.saturating_mul(BYTES_PER_PIXEL));
    let mut reader =
        ImageReader::new(Cursor::new(body)).with_guessed_format().map_err(Refusal::unreadable)?;
    reader.limits(limits);
    reader.into_decoder().map_err(Refusal::unreadable)
}

/// Width and height as a viewer shows the image: cameras note beside the pixels how it is to be turned.
fn turned_size(decoder: &mut impl ImageDecoder) -> Result<(u32, u32), Refusal> {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    let (width, height) = decoder.dimensions();
    Ok(match decoder.orientation().map_err(Refusal::unreadable)? {
        Rotate90 | Rotate270 | Rotate90FlipH | Rotate270FlipH => (height, width),
        _ => (width, height),
    })
}

/// The pixels, turned: no copy has the note of the camera.
fn decode(body: &[u8], max_pixels: u64) -> Result<DynamicImage, Refusal> {
    let mut decoder = decoder(body, max_pixels)?;
    let turn = decoder.orientation().map_err(Refusal::unreadable)?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(Refusal::unreadable)?;
    image.apply_orientation(turn);
    Ok(image)
}

/// A copy that fits into a box. An image that is smaller stays as it is, as in Scrapy.
fn shrunk(image: &DynamicImage, (width, height): (u32, u32)) -> DynamicImage {
    match image.width() <= width && image.height() <= height {
        true => image.clone(),
        false => DynamicImage::ImageRgb8(on_white(image.clone())).thumbnail(width, height),
    }
}

fn jpeg(image: DynamicImage) -> Result<Vec<u8>, Refusal> {
    encode(&DynamicImage::ImageRgb8(on_white(image)), ImageFormat::Jpeg)
}

fn encode(image: &DynamicImage, format: ImageFormat) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Cursor::new(Vec::new());
    let written = image.write_to(&mut bytes, format);
    written.map_err(|error| Refusal::Unreadable(format!("the image cannot be converted: {error}")))?;
    Ok(bytes.into_inner())
}

/// The image on a white ground, as Scrapy does it: JPEG has no transparency, and what is under transparent pixels is often black.
fn on_white(image: DynamicImage) -> RgbImage {
    if !image.color().has_alpha() {
        return image.into_rgb8();
    }
    let image = image.into_rgba8();
    let mut ground = RgbImage::new(image.width(), image.height());
    for (from, to) in image.pixels().zip(ground.pixels_mut()) {
        let [red, green, blue, alpha] = from.0.map(u32::from);
        let mixed = [red, green, blue].map(|value| (value * alpha + 255 * (255 - alpha) + 127) / 255);
        to.0 = mixed.map(|value| u8::try_from(value).unwrap_or(u8::MAX));
    }
    ground
}

#[cfg(test)]
mod tests {
    use image::{Rgba, RgbaImage};

    use super::*;

    const FORMATS: [(ImageFormat, &str); 4] = [
        (ImageFormat::Jpeg, "jpg"),
        (ImageFormat::Png, "png"),
        (ImageFormat::Gif, "gif"),
        (ImageFormat::WebP, "webp"),
    ];

    fn rules(thumbs: &[(&str, (u32, u32))]) -> ImageRules {
        let thumbs = thumbs.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
        ImageRules { min: (0, 0), convert: None, thumbs, max_pixels: 40_000_000 }
    }

    /// An image whose pixels are transparent, with black under it.
    fn encoded(width: u32, height: u32, format: ImageFormat) -> Bytes {
        let mut bytes = Vec::new();
        let image = DynamicImage::ImageRgba8(RgbaImage::from_pixel(width, height, Rgba([0, 0, 0, 0])));
        let image =
            if format == ImageFormat::Jpeg { DynamicImage::ImageRgb8(image.to_rgb8()) } else { image };
        image.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
        bytes.into()
    }

    fn made(body: Bytes, ending: &'static str, rules: &ImageRules) -> Result<Made, String> {
        rules.make(body, ending, |_| true).map_err(|refusal| match refusal {
            Refusal::Small(why) | Refusal::Unreadable(why) => why,
        })
    }

    fn has_size(body: &[u8], min: (u32, u32)) -> bool {
        match (ImageRules { min, ..rules(&[]) }.check_size(body)) {
            Ok(()) => true,
            Err(Refusal::Small(why)) => {
                assert!(why.contains("less than images_min_width"), "{why}");
                false
            }
            Err(Refusal::Unreadable(why)) => panic!("{why}"),
        }
    }

    #[test]
    fn images_of_all_formats_become_small_ones_of_the_same_shape() {
        for (format, ending) in FORMATS {
            let body = encoded(200, 100, format);
            let made = made(body.clone(), ending, &rules(&[("small", (50, 50))])).unwrap();
            assert_eq!((&made.body, made.ending), (&body, ending), "the image itself stays as it is");
            let small =
                image::load_from_memory_with_format(&made.thumbs["small"], ImageFormat::Jpeg).unwrap();
            assert_eq!((small.width(), small.height()), (50, 25), "{format:?}");
        }
    }

    #[test]
    fn images_are_converted_unless_they_have_the_format_already() {
        for (format, ending) in FORMATS {
            for (target, wanted) in
                [(ImageTarget::Jpeg, ImageFormat::Jpeg), (ImageTarget::Png, ImageFormat::Png)]
            {
                let body = encoded(20, 10, format);
                let rules = ImageRules { convert: Some(target), ..rules(&[]) };
                let made = made(body.clone(), ending, &rules).unwrap();
                assert_eq!(made.ending, target.ending());
                assert_eq!(made.body == body, format == wanted, "an image is not encoded a second time");
                let image = image::load_from_memory_with_format(&made.body, wanted).unwrap();
                assert_eq!((image.width(), image.height()), (20, 10), "{format:?}");
            }
        }
    }

    #[test]
    fn transparent_pixels_are_white_where_there_is_no_transparency() {
        let rules = ImageRules {
            convert: Some(ImageTarget::Jpeg),
            ..rules(&[("small", (8, 8)), ("same", (64, 64))])
        };
        let made = made(encoded(32, 32, ImageFormat::Png), "png", &rules).unwrap();
        for jpeg in [&made.body[..], &made.thumbs["small"], &made.thumbs["same"]] {
            let image = image::load_from_memory(jpeg).unwrap().into_rgb8();
            assert!(image.pixels().all(|pixel| pixel.0.iter().all(|value| *value > 250)));
        }
    }

    #[test]
    fn an_image_is_turned_as_its_camera_noted() {
        let mut jpeg = encoded(40, 20, ImageFormat::Jpeg).to_vec();
        // A segment with EXIF that has one entry: orientation 6, a quarter turn to the right.
        let exif = b"\xFF\xE1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        jpeg.splice(2..2, exif.iter().copied());
        let body = Bytes::from(jpeg);
        let small = made(body.clone(), "jpg", &rules(&[("small", (20, 20))])).unwrap().thumbs.remove("small");
        let small = image::load_from_memory(&small.unwrap()).unwrap();
        assert_eq!((small.width(), small.height()), (10, 20));
        assert!(has_size(&body, (20, 40)) && !has_size(&body, (40, 20)));
    }

    #[test]
    fn an_image_that_is_too_small_is_refused_by_its_header() {
        for (format, _) in FORMATS {
            assert!(has_size(&encoded(100, 50, format), (100, 50)), "{format:?}");
            assert!(!has_size(&encoded(99, 50, format), (100, 50)), "{format:?}");
            assert!(!has_size(&encoded(100, 49, format), (100, 50)), "{format:?}");
        }
    }

    #[test]
    fn an_image_with_too_many_pixels_is_refused_by_its_header() {
        // A PNG whose header claims four thousand million pixels, and which has none.
        let mut png = encoded(1, 1, ImageFormat::Png).to_vec();
        png[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
        let mut sum = crc(&png[12..29]).to_be_bytes().to_vec();
        png.splice(29..33, sum.drain(..));
        let wanted = rules(&[("small", (50, 50))]);
        let refused = |body: Bytes, rules: &ImageRules| made(body, "png", rules).err().unwrap();
        let error = refused(png.into(), &wanted);
        assert!(error.contains("65536 x 65536 pixels, more than images_max_pixels"), "{error}");
        refused(encoded(100, 100, ImageFormat::Gif), &ImageRules { max_pixels: 9_999, ..wanted.clone() });
        refused(Bytes::from_static(b"GIF89a and nothing else"), &wanted);
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
