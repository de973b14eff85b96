//! Files and folders, as they are in memory and as they are on the disk.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::Random;

/// Smallest part of a file that is written whole or not at all.
const SECTOR_BYTES: usize = 512;
const ROOT: usize = 0;

/// All files and folders, by number. None is ever taken out: tests are short.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    clock: u64,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) is_linked: bool,
    /// The handle that has the lock.
    pub(super) locked_by: Option<u64>,
    /// Grows with every change.
    pub(super) changed: u64,
}

#[derive(Debug)]
pub(super) enum Content {
    File(FileContent),
    Folder(Names),
}

#[derive(Debug, Default)]
pub(super) struct FileContent {
    /// What readers see.
    pub(super) cached: Vec<u8>,
    durable: Vec<u8>,
    /// What syncing would make durable.
    unsynced: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Write { place: usize, bytes: Vec<u8> },
    Cut { bytes: usize },
}

#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) cached: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    unsynced: Vec<Rename>,
}

/// One change of names that is made at once: `gone` is no more, `new` names a node.
#[derive(Debug)]
struct Rename {
    gone: Option<String>,
    new: Option<(String, usize)>,
}

impl Default for Tree {
    fn default() -> Self {
        let root = Node::new(Content::Folder(Names::default()));
        Self { nodes: vec![Node { is_linked: true, ..root }], clock: 0 }
    }
}

impl Node {
    const fn new(content: Content) -> Self {
        Self { content, is_linked: true, locked_by: None, changed: 0 }
    }
}

impl FileContent {
    pub(super) fn write(&mut self, place: usize, bytes: &[u8]) {
        let change = Change::Write { place, bytes: bytes.to_vec() };
        apply(&change, &mut self.cached);
        self.unsynced.push(change);
    }

    pub(super) fn cut(&mut self, bytes: usize) {
        let change = Change::Cut { bytes };
        apply(&change, &mut self.cached);
        self.unsynced.push(change);
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            apply(&change, &mut self.durable);
        }
    }

    /// What a failed sync leaves: readers see what was written, but nothing will write it.
    pub(super) fn fail_to_sync(&mut self) {
        self.unsynced.clear();
    }

    fn crash(&mut self, random: &mut Random) {
        for change in std::mem::take(&mut self.unsynced) {
            match random.below(3) {
                0 => {}
                1 => apply(&change, &mut self.durable),
                _ => tear(&change, &mut self.durable, random),
            }
        }
        self.cached.clone_from(&self.durable);
    }
}

fn apply(change: &Change, content: &mut Vec<u8>) {
    match change {
        Change::Cut { bytes } => content.resize(*bytes, 0),
        Change::Write { place, bytes } => {
            let end = place + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            content[*place..end].copy_from_slice(bytes);
        }
    }
}

/// Some sectors reach the disk and others do not; the new length may be there without its bytes.
fn tear(change: &Change, content: &mut Vec<u8>, random: &mut Random) {
    let Change::Write { place, bytes } = change else { return };
    let mut start = 0;
    while start < bytes.len() {
        let end = (((place + start) / SECTOR_BYTES + 1) * SECTOR_BYTES - place).min(bytes.len());
        if random.below(2) == 0 {
            let piece = Change::Write { place: place + start, bytes: bytes[start..end].to_vec() };
            apply(&piece, content);
        }
        start = end;
    }
    if random.below(2) == 0 && content.len() < place + bytes.len() {
        content.resize(place + bytes.len(), 0);
    }
}

impl Names {
    fn change(&mut self, gone: Option<&str>, new: Option<(&str, usize)>) {
        let rename = Rename {
            gone: gone.map(str::to_owned),
            new: new.map(|(name, id)| (name.to_owned(), id)),
        };
        rename.apply(&mut self.cached);
        self.unsynced.push(rename);
    }

    pub(super) fn sync(&mut self) {
        self.durable.clone_from(&self.cached);
        self.unsynced.clear();
    }

    fn crash(&mut self, random: &mut Random) {
        let unsynced = std::mem::take(&mut self.unsynced);
        let kept = random.below(unsynced.len() as u64 + 1) as usize;
        unsynced[..kept].iter().for_each(|rename| rename.apply(&mut self.durable));
        self.cached.clone_from(&self.durable);
    }
}

impl Rename {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        if let Some(gone) = &self.gone {
            names.remove(gone);
        }
        if let Some((name, id)) = &self.new {
            names.insert(name.clone(), *id);
        }
    }
}

impl Tree {
    pub(super) fn node(&mut self, id: usize) -> &mut Node {
        &mut self.nodes[id]
    }

    /// Notes that a node changed.
    pub(super) fn touch(&mut self, id: usize) {
        self.clock += 1;
        self.nodes[id].changed = self.clock;
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<usize> {
        let mut id = ROOT;
        for name in names_of(path) {
            let Content::Folder(names) = &self.nodes[id].content else {
                return Err(io::ErrorKind::NotADirectory.into());
            };
            id = *names.cached.get(&name).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(id)
    }

    pub(super) fn folder(&mut self, id: usize) -> io::Result<&mut Names> {
        match &mut self.nodes[id].content {
            Content::Folder(names) => Ok(names),
            Content::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    pub(super) fn file(&mut self, id: usize) -> io::Result<&mut FileContent> {
        match &mut self.nodes[id].content {
            Content::File(file) => Ok(file),
            Content::Folder(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    /// Makes an empty file or folder.
    pub(super) fn make(&mut self, path: &Path, content: Content) -> io::Result<usize> {
        let (parent, name) = self.place_of(path)?;
        let id = self.nodes.len();
        let names = self.folder(parent)?;
        if names.cached.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        names.change(None, Some((&name, id)));
        self.nodes.push(Node::new(content));
        self.touch(parent);
        self.touch(id);
        Ok(id)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let id = self.find(from)?;
        let ((from_folder, from), (to_folder, to)) = (self.place_of(from)?, self.place_of(to)?);
        let replaced = self.folder(to_folder)?.cached.get(&to).copied();
        if from_folder == to_folder {
            self.folder(from_folder)?.change(Some(&from), Some((&to, id)));
        } else {
            self.folder(to_folder)?.change(None, Some((&to, id)));
            self.folder(from_folder)?.change(Some(&from), None);
        }
        if let Some(replaced) = replaced.filter(|replaced| *replaced != id) {
            self.nodes[replaced].is_linked = false;
        }
        Ok(())
    }

    /// Deletes a file or folder, with what is in it.
    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        let id = self.find(path)?;
        let (parent, name) = self.place_of(path)?;
        self.folder(parent)?.change(Some(&name), None);
        self.unlink(id);
        Ok(())
    }

    fn unlink(&mut self, id: usize) {
        self.nodes[id].is_linked = false;
        if let Content::Folder(names) = &self.nodes[id].content {
            let below: Vec<usize> = names.cached.values().copied().collect();
            below.into_iter().for_each(|id| self.unlink(id));
        }
    }

    /// The folder of a path, and the name in it.
    fn place_of(&self, path: &Path) -> io::Result<(usize, String)> {
        let name = names_of(path).pop().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.find(path.parent().unwrap_or(Path::new("/")))?, name))
    }

    /// Files that have a name, by path, with their lengths.
    pub(super) fn files(&self) -> Vec<(PathBuf, u64)> {
        let mut files = Vec::new();
        self.collect(ROOT, Path::new("/"), &mut files);
        files
    }

    fn collect(&self, id: usize, path: &Path, files: &mut Vec<(PathBuf, u64)>) {
        match &self.nodes[id].content {
            Content::File(file) => files.push((path.to_owned(), file.cached.len() as u64)),
            Content::Folder(names) => {
                names
                    .cached
                    .iter()
                    .for_each(|(name, id)| self.collect(*id, &path.join(name), files));
            }
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.files().iter().map(|(_, bytes)| bytes).sum()
    }

    /// Changes a bit in memory and on the disk; `None` if there is no such bit.
    pub(super) fn flip_bit(&mut self, path: &Path, bit: u64) -> Option<()> {
        let id = self.find(path).ok()?;
        let file = self.file(id).ok()?;
        let (at, mask) = ((bit / 8) as usize, 1 << (bit % 8));
        *file.cached.get_mut(at)? ^= mask;
        // What is not on the disk yet will be written as it is in memory.
        for change in &mut file.unsynced {
            if let Change::Write { place, bytes } = change
                && let Some(byte) = at.checked_sub(*place).and_then(|at| bytes.get_mut(at))
            {
                *byte ^= mask;
            }
        }
        if let Some(byte) = file.durable.get_mut(at) {
            *byte ^= mask;
        }
        Some(())
    }

    pub(super) fn unlock_all(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.locked_by = None);
    }

    /// What is durable, and nothing else.
    pub(super) fn durable_copy(&self) -> Self {
        let copy = |node: &Node| {
            Node::new(match &node.content {
                Content::File(file) => Content::File(FileContent {
                    cached: file.durable.clone(),
                    durable: file.durable.clone(),
                    unsynced: Vec::new(),
                }),
                Content::Folder(names) => Content::Folder(Names {
                    cached: names.durable.clone(),
                    durable: names.durable.clone(),
                    unsynced: Vec::new(),
                }),
            })
        };
        Self { nodes: self.nodes.iter().map(copy).collect(), clock: self.clock }
    }

    pub(super) fn crash(&mut self, random: &mut Random) {
        for node in &mut self.nodes {
            match &mut node.content {
                Content::File(file) => file.crash(random),
                Content::Folder(names) => names.crash(random),
            }
            node.is_linked = false;
        }
        self.link(ROOT);
    }

    fn link(&mut self, id: usize) {
        self.nodes[id].is_linked = true;
        if let Content::Folder(names) = &self.nodes[id].content {
            let below: Vec<usize> = names.cached.values().copied().collect();
            below.into_iter().for_each(|id| self.link(id));
        }
    }
}

/// The names that lead to a path; all paths begin at the root.
fn names_of(path: &Path) -> Vec<String> {
    let name = |component| match component {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}
