//! One pass over a web page: links, title, meta, blocks and text without a tree.
