//! Tests of the models through their public interface, against other implementations and against corpora.

mod avoid;
mod copyvio;
mod copyvio_corpus;
mod copyvio_evidence;
mod copyvio_index;
mod copyvio_oracle;
mod lsh;
mod maybedont;
mod maybedont_oracle;
mod neardup_oracle;
mod simhash;
