//! Follows the system calls of a run, and models the directory after each of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::recording::{Change, Content, Naming, Node, Operation, ROOT, Recording};
use super::trace::{self, Call};

/// The system calls to record. The file model does not support those of the last line: they are errors if used for
/// files of the directory.
pub(super) const CALLS: &str = "openat,open,creat,close,dup,dup2,dup3,fcntl,lseek,read,readv,write,pwrite64,writev,pwritev,\
    ftruncate,fsync,fdatasync,sync_file_range,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,symlink,symlinkat,\
    truncate,fallocate,pwritev2,copy_file_range,sendfile,link,linkat,mmap";

/// An open file; several descriptors may share it.
struct Open {
    node: Node,
    at: usize,
    appends: bool,
}

/// Follows system calls, one after the other.
pub(super) struct Recorder {
    root: PathBuf,
    now: BTreeMap<(Node, String), Node>,
    lengths: HashMap<Node, usize>,
    open: Vec<Open>,
    numbers: HashMap<i64, usize>,
    /// Number of operations before each call.
    operations_before: Vec<usize>,
    done: Recording,
}

impl Recorder {
    /// A recorder with the files that exist before the run.
    pub(super) fn before(root: &Path) -> Self {
        let done = Recording {
            contents: vec![Content::Directory],
            names: BTreeMap::new(),
            operations: Vec::new(),
            calls: BTreeMap::new(),
        };
        let mut recorder = Self {
            root: root.to_owned(),
            now: BTreeMap::new(),
            lengths: HashMap::new(),
            open: Vec::new(),
            numbers: HashMap::new(),
            operations_before: Vec::new(),
            done,
        };
        recorder.read(root, ROOT);
        recorder.done.names = recorder.now.clone();
        recorder
    }

    fn read(&mut self, directory: &Path, node: Node) {
        for entry in fs::read_dir(directory).expect("the directory can be read") {
            let entry = entry.expect("the directory can be read");
            let (path, kind) = (entry.path(), entry.file_type().expect("files have types"));
            let content = if kind.is_dir() {
                Content::Directory
            } else if kind.is_symlink() {
                Content::Link(fs::read_link(&path).expect("links can be read"))
            } else {
                Content::File(fs::read(&path).expect("files can be read"))
            };
            let child = self.make(content);
            self.now.insert((node, entry.file_name().to_string_lossy().into_owned()), child);
            if kind.is_dir() {
                self.read(&path, child);
            }
        }
    }

    fn make(&mut self, content: Content) -> Node {
        let node = self.done.contents.len();
        if let Content::File(bytes) = &content {
            self.lengths.insert(node, bytes.len());
        }
        self.done.contents.push(content);
        node
    }

    pub(super) fn done(self) -> Recording {
        self.done
    }

    pub(super) fn take(&mut self, call: &Call) {
        self.operations_before.push(self.done.operations.len());
        match call.name.as_str() {
            "openat" | "open" | "creat" => self.opened(call),
            "close" => drop(self.numbers.remove(&call.number(0))),
            "dup" | "dup2" | "dup3" => self.doubled(call),
            "fcntl" if call.argument(1).starts_with("F_DUPFD") => self.doubled(call),
            "lseek" => self.moved(call, |_| call.result),
            "read" | "readv" => self.moved(call, |at| at + call.result),
            "write" | "writev" => self.written(call, None),
            "pwrite64" | "pwritev" => self.written(call, Some(call.number(3))),
            "ftruncate" => {
                if let Some(node) = self.counted(call) {
                    self.resized(call, node, call.number(1));
                }
            }
            "fsync" | "fdatasync" => {
                if let Some(node) = self.counted(call) {
                    let since = self.operations_before[call.began.min(self.operations_before.len() - 1)];
                    self.push(call, node, Change::Sync { node, since });
                }
            }
            // This call starts writing data, but syncs neither the length of the file nor the cache of the disk.
            "sync_file_range" => drop(self.counted(call)),
            "unlink" | "rmdir" => self.removed(call, None, 0),
            "unlinkat" => self.removed(call, Some(0), 1),
            "mkdir" => self.made(call, Content::Directory, None, 0),
            "mkdirat" => self.made(call, Content::Directory, Some(0), 1),
            "symlink" => self.made(call, Content::Link(call.text(0).into()), None, 1),
            "symlinkat" => self.made(call, Content::Link(call.text(0).into()), Some(1), 2),
            "rename" => self.renamed(call, (None, 0), (None, 1)),
            "renameat" | "renameat2" => self.renamed(call, (Some(0), 1), (Some(2), 3)),
            _ => self.refuse(call),
        }
    }

    /// Fails for a call that the model does not support, unless it is for a file elsewhere.
    fn refuse(&self, call: &Call) {
        let is_open =
            |at: usize| call.argument(at).parse().is_ok_and(|number: i64| self.numbers.contains_key(&number));
        let is_ours = match call.name.as_str() {
            "mmap" => {
                let writes =
                    call.argument(2).contains("PROT_WRITE") && call.argument(3).contains("MAP_SHARED");
                writes && is_open(4) && !self.is_index_of_sqlite(call.argument(4))
            }
            "copy_file_range" => is_open(2),
            "fallocate" | "pwritev2" | "sendfile" => is_open(0),
            "truncate" => self.place(call, None, 0).is_some(),
            "link" => self.place(call, None, 1).is_some(),
            "linkat" => self.place(call, Some(2), 3).is_some(),
            _ => false,
        };
        assert!(!is_ours, "the model of files does not know this: {call:?}");
    }

    /// Whether an open file is the index of a log of SQLite, which SQLite makes anew after a crash, so that its content needs no model.
    fn is_index_of_sqlite(&self, number: &str) -> bool {
        let node = number.parse().ok().and_then(|number: i64| self.numbers.get(&number));
        let path = node.and_then(|open| self.path_of(self.open[*open].node));
        path.is_some_and(|path| path.to_string_lossy().ends_with("-shm"))
    }

    /// Resolves a path: the directory, the name in it, and the path relative to the root. `None` if it is elsewhere.
    fn place(&self, call: &Call, directory: Option<usize>, name: usize) -> Option<(Node, String, PathBuf)> {
        let given = PathBuf::from(call.text(name));
        let number = directory.and_then(|at| call.argument(at).parse::<i64>().ok());
        let (mut node, mut path) = match number {
            Some(number) if given.is_relative() => {
                let node = self.open[*self.numbers.get(&number)?].node;
                (node, self.path_of(node)?)
            }
            _ => (ROOT, PathBuf::new()),
        };
        // Commands run in the root, so relative paths begin there.
        let below = if given.is_absolute() { given.strip_prefix(&self.root).ok()?.to_owned() } else { given };
        let mut names = Vec::new();
        for component in below.components() {
            match component {
                Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
                Component::CurDir => {}
                _ => return None,
            }
        }
        let last = names.pop().unwrap_or_else(|| ".".to_owned());
        for name in names {
            path.push(&name);
            node = *self.now.get(&(node, name))?;
        }
        path.push(&last);
        Some((node, last, path))
    }

    /// A present path of a node.
    fn path_of(&self, node: Node) -> Option<PathBuf> {
        if node == ROOT {
            return Some(PathBuf::new());
        }
        let ((parent, name), _) = self.now.iter().find(|(_, child)| **child == node)?;
        Some(self.path_of(*parent)?.join(name))
    }

    fn find(&self, directory: Node, name: &str) -> Option<Node> {
        if name == "." { Some(directory) } else { self.now.get(&(directory, name.to_owned())).copied() }
    }

    /// The file of the first argument; the call is counted for it.
    fn counted(&mut self, call: &Call) -> Option<Node> {
        let node = self.open[*self.numbers.get(&call.number(0))?].node;
        let path = self.path_of(node)?;
        self.count(call, path);
        Some(node)
    }

    fn count(&mut self, call: &Call, path: PathBuf) {
        *self.done.calls.entry((call.name.clone(), path)).or_default() += 1;
    }

    fn push(&mut self, call: &Call, node: Node, change: Change) {
        let path =
            self.path_of(node).map_or_else(|| "a removed file".to_owned(), |path| path.display().to_string());
        let what = match &change {
            Change::Write { at, data, .. } => format!("{} {path}, {} bytes at {at}", call.name, data.len()),
            Change::Resize { length, .. } => format!("{} {path} to {length} bytes", call.name),
            _ => format!("{} {path}", call.name),
        };
        self.done.operations.push(Operation { change, what });
    }

    fn name(&mut self, call: &Call, namings: Vec<Naming>, path: &Path) {
        for (directory, name, node) in &namings {
            match node {
                Some(node) => self.now.insert((*directory, name.clone()), *node),
                None => self.now.remove(&(*directory, name.clone())),
            };
        }
        let what = format!("{} {}", call.name, path.display());
        self.done.operations.push(Operation { change: Change::Name(namings), what });
    }

    fn opened(&mut self, call: &Call) {
        let (directory, name) = if call.name == "openat" { (Some(0), 1) } else { (None, 0) };
        self.numbers.remove(&call.result);
        let Some((directory, name, path)) = self.place(call, directory, name) else { return };
        let flags = match call.name.as_str() {
            "openat" => call.argument(2),
            "open" => call.argument(1),
            _ => "O_WRONLY|O_CREAT|O_TRUNC",
        };
        self.count(call, path.clone());
        let flags: HashSet<&str> = flags.split('|').collect();
        let node = match self.find(directory, &name) {
            Some(node) => node,
            None => {
                let node = self.make(Content::File(Vec::new()));
                // The recording of writes gives the contents, and the file exists from here on.
                self.name(call, vec![(directory, name, Some(node))], &path);
                node
            }
        };
        if flags.contains("O_TRUNC") && self.lengths.get(&node).is_some_and(|length| *length > 0) {
            self.resized(call, node, 0);
        }
        self.numbers.insert(call.result, self.open.len());
        self.open.push(Open { node, at: 0, appends: flags.contains("O_APPEND") });
    }

    fn doubled(&mut self, call: &Call) {
        match self.numbers.get(&call.number(0)).copied() {
            Some(open) => self.numbers.insert(call.result, open),
            None => self.numbers.remove(&call.result),
        };
    }

    fn moved(&mut self, call: &Call, to: impl FnOnce(i64) -> i64) {
        if let Some(open) = self.numbers.get(&call.number(0)) {
            let at = &mut self.open[*open].at;
            *at = to(*at as i64) as usize;
        }
    }

    fn written(&mut self, call: &Call, at: Option<i64>) {
        let Some(node) = self.counted(call) else { return };
        let open = &mut self.open[self.numbers[&call.number(0)]];
        let length = self.lengths.get_mut(&node).expect("only files are written");
        let mut data = trace::bytes(call.argument(1));
        data.truncate(call.result as usize);
        let at = match at {
            Some(at) => at as usize,
            None => {
                let at = if open.appends { *length } else { open.at };
                open.at = at + data.len();
                at
            }
        };
        *length = (*length).max(at + data.len());
        self.push(call, node, Change::Write { node, at, data });
    }

    fn resized(&mut self, call: &Call, node: Node, length: i64) {
        let length = length as usize;
        self.lengths.insert(node, length);
        self.push(call, node, Change::Resize { node, length });
    }

    fn removed(&mut self, call: &Call, directory: Option<usize>, name: usize) {
        if let Some((directory, name, path)) = self.place(call, directory, name) {
            self.count(call, path.clone());
            self.name(call, vec![(directory, name, None)], &path);
        }
    }

    fn made(&mut self, call: &Call, content: Content, directory: Option<usize>, name: usize) {
        if let Some((directory, name, path)) = self.place(call, directory, name) {
            self.count(call, path.clone());
            let node = self.make(content);
            self.name(call, vec![(directory, name, Some(node))], &path);
        }
    }

    fn renamed(&mut self, call: &Call, from: (Option<usize>, usize), to: (Option<usize>, usize)) {
        match (self.place(call, from.0, from.1), self.place(call, to.0, to.1)) {
            (Some((from, old, old_path)), Some((to, new, path))) => {
                self.count(call, old_path);
                let node = self.find(from, &old).expect("what is renamed is there");
                self.name(call, vec![(from, old, None), (to, new, Some(node))], &path);
            }
            (None, None) => {}
            _ => panic!("the model of files does not know this: {call:?}"),
        }
    }
}
