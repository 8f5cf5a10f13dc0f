//! The folders of a site, with the numbers of what is in them.

/// Folders that are kept: those with the most pages.
const KEPT: usize = 400;
/// Folders within folders that are told apart.
const MAX_DEPTH: usize = 12;

/// A folder of the site, with all that is in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    /// Its URL, which ends in a slash.
    pub(super) url: String,
    /// Number of folders around it.
    pub(super) depth: usize,
    pub(super) pages: usize,
    pub(super) indexable: usize,
    /// Errors, warnings and notices of its pages.
    pub(super) issues: [usize; 3],
    /// The sum of the PageRanks of its pages.
    pub(super) rank: f64,
}

impl Directory {
    fn add(&mut self, other: &Self) {
        self.pages += other.pages;
        self.indexable += other.indexable;
        self.rank += other.rank;
        for (sum, number) in self.issues.iter_mut().zip(other.issues) {
            *sum += number;
        }
    }

    /// The name of the folder within the one around it, or the host.
    pub(super) fn name(&self) -> &str {
        let path = self.url.trim_end_matches('/');
        match self.depth {
            0 => path.split_once("://").map_or(path, |(_, host)| host),
            _ => path.rsplit('/').next().unwrap_or_default(),
        }
    }
}

/// Sums pages up by their folders. Pages come in the order of their URLs, so a folder is complete once a page outside of it comes, and memory does
/// not grow with the site.
#[derive(Debug, Default)]
pub(super) struct Directories {
    open: Vec<Directory>,
    closed: Vec<Directory>,
}

impl Directories {
    pub(super) fn add(&mut self, url: &str, is_indexable: bool, rank: f64, issues: [usize; 3]) {
        let folder = folder_of(url);
        while self.open.last().is_some_and(|last| !folder.starts_with(&last.url)) {
            self.close();
        }
        let mut end = match self.open.last() {
            Some(last) => last.url.len(),
            None => {
                let end = url.find("://").map_or(0, |at| at + 3);
                let end = folder[end..].find('/').map_or(folder.len(), |at| end + at + 1);
                self.open.push(Directory { url: folder[..end].to_owned(), ..Directory::default() });
                end
            }
        };
        while end < folder.len() && self.open.len() < MAX_DEPTH {
            end += folder[end..].find('/').map_or(folder.len() - end, |at| at + 1);
            let depth = self.open.len();
            self.open.push(Directory { url: folder[..end].to_owned(), depth, ..Directory::default() });
        }
        let page = Directory {
            pages: 1,
            indexable: usize::from(is_indexable),
            issues,
            rank,
            ..Directory::default()
        };
        if let Some(last) = self.open.last_mut() {
            last.add(&page);
        }
    }

    fn close(&mut self) {
        let Some(done) = self.open.pop() else { return };
        if let Some(around) = self.open.last_mut() {
            around.add(&done);
        }
        self.closed.push(done);
        if self.closed.len() > 8 * KEPT {
            self.keep();
        }
    }

    /// Keeps the largest ones. A folder is never smaller than one in it.
    fn keep(&mut self) {
        self.closed.sort_by(|a, b| b.pages.cmp(&a.pages).then(a.depth.cmp(&b.depth)).then(a.url.cmp(&b.url)));
        self.closed.truncate(KEPT);
    }

    /// The folders with the most pages, in the order of their URLs.
    pub(super) fn finish(mut self) -> Vec<Directory> {
        while !self.open.is_empty() {
            self.close();
        }
        self.keep();
        self.closed.sort_by(|a, b| a.url.cmp(&b.url));
        self.closed
    }
}

/// The URL of the folder that a page is in.
pub(super) fn folder_of(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.rfind('/').map_or(path, |at| &path[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_sum_up_what_is_in_them() {
        let mut folders = Directories::default();
        for url in [
            "https://a.example/",
            "https://a.example/b-c/x",
            "https://a.example/b/",
            "https://a.example/b/c/1?q=/x/",
            "https://a.example/b/c/2",
            "https://b.example/z",
        ] {
            folders.add(url, url.ends_with('/'), 1.0, [1, 0, 0]);
        }
        let found: Vec<(String, usize, usize, &str)> = folders
            .finish()
            .iter()
            .map(|folder| (folder.url.clone(), folder.pages, folder.depth, ""))
            .collect();
        let expected = [
            ("https://a.example/", 5, 0),
            ("https://a.example/b-c/", 1, 1),
            ("https://a.example/b/", 3, 1),
            ("https://a.example/b/c/", 2, 2),
            ("https://b.example/", 1, 0),
        ];
        let expected = expected.map(|(url, pages, depth)| (url.to_owned(), pages, depth, ""));
        assert_eq!(found, expected);
    }

    #[test]
    fn of_very_many_folders_the_largest_are_kept() {
        let mut folders = Directories::default();
        let mut urls: Vec<String> = (0..5_000).map(|n| format!("https://a.example/{n}/page")).collect();
        urls.extend((0..10).map(|n| format!("https://a.example/77/{n}")));
        urls.sort();
        urls.iter().for_each(|url| folders.add(url, true, 0.0, [0; 3]));
        let kept = folders.finish();
        assert_eq!(kept.len(), KEPT);
        let sizes: Vec<usize> =
            kept.iter().filter(|folder| folder.pages > 1).map(|folder| folder.pages).collect();
        assert_eq!(sizes, [5_010, 11]);
    }
}
