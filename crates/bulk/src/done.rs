//! `_DONE.json`, the file that is written last: a folder that has it is whole.

use std::io::Read;
use std::path::Path;

use huntsman_detect::simhash::Features;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::input::VERSION;
use crate::place::Place;
use crate::table::Part;

pub(crate) const DONE: &str = "_DONE.json";

/// What an exported folder has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Done {
    /// The version of the format.
    pub(crate) version: String,
    /// The features of the fingerprints.
    #[serde(with = "named")]
    pub(crate) features: Option<Features>,
    /// The distance that the index was made for.
    pub(crate) k: Option<u32>,
    /// Documents of all files.
    pub(crate) documents: u64,
    /// The files.
    pub(crate) files: Vec<Part>,
}

impl Done {
    /// What a folder says; `None` if it has no such file.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>> {
        let Some(place) = Place::in_folder(folder, DONE)? else { return Ok(None) };
        let mut bytes = Vec::new();
        place.open()?.read_to_end(&mut bytes).map_err(Error::reading(place.path()))?;
        serde_json::from_slice(&bytes).map(Some).map_err(|error| Error::input(place.path(), error))
    }

    pub(crate) fn check_version(&self, folder: &Path) -> Result<()> {
        if self.version == VERSION {
            return Ok(());
        }
        let message = format!("has version {} of the format, and this program reads {VERSION}", self.version);
        Err(Error::input(folder, message))
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        write_json(&folder.join(DONE), self)
    }
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut json = serde_json::to_vec_pretty(value).expect("numbers and texts are JSON");
    json.push(b'\n');
    huntsman_files::write(path, json).map_err(Error::writing(path))
}

/// Features by their name.
mod named {
    use huntsman_detect::simhash::Features;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(features: &Option<Features>, to: S) -> Result<S::Ok, S::Error> {
        features.map(Features::name).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Features>, D::Error> {
        let name = Option::<String>::deserialize(from)?;
        name.map(|name| name.parse().map_err(|_| D::Error::custom("no such features"))).transpose()
    }
}
