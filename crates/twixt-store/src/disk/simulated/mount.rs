//! The simulated disk as a process sees it.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use super::tree::{Content, FileContent, Names, Node};
use super::{Operation, State, lock};
use crate::disk::{About, Access, Disk, DiskFile};

const INPUT_OUTPUT: i32 = 5;
const TOO_MANY_OPEN_FILES: i32 = 24;
const NO_SPACE: i32 = 28;
const READ_ONLY: i32 = 30;

#[derive(Clone, Debug)]
pub(super) struct Mount {
    state: Arc<Mutex<State>>,
    /// `None` for a view, which no fault concerns.
    boot: Option<u64>,
}

#[derive(Debug)]
struct OpenFile {
    mount: Mount,
    id: usize,
    handle: u64,
    is_written: bool,
}

impl Mount {
    pub(super) const fn new(state: Arc<Mutex<State>>, boot: u64) -> Self {
        Self { state, boot: Some(boot) }
    }

    pub(super) const fn view(state: Arc<Mutex<State>>) -> Self {
        Self { state, boot: None }
    }

    /// Whether its process lives and is not stopped.
    fn is_alive(&self, state: &State) -> bool {
        self.boot.is_none_or(|boot| boot == state.boot && state.faults.stops_after != Some(0))
    }

    /// Begins an operation, unless a fault forbids it.
    fn begin(&self, operation: Operation) -> io::Result<MutexGuard<'_, State>> {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        if self.boot.is_none() {
            return Ok(guard);
        }
        if !self.is_alive(state) {
            return Err(io::Error::from_raw_os_error(INPUT_OUTPUT));
        }
        state.operations += 1;
        if let Some(left) = &mut state.faults.stops_after {
            *left -= 1;
        }
        let random = &mut state.random;
        let mut failing = state.faults.failing.iter().filter(|(kind, _)| *kind == operation);
        if failing.any(|(_, one_in)| random.below((*one_in).max(1)) == 0) {
            return Err(io::Error::from_raw_os_error(INPUT_OUTPUT));
        }
        Ok(guard)
    }

    /// Begins an operation that changes something.
    fn begin_change(&self, operation: Operation) -> io::Result<MutexGuard<'_, State>> {
        let state = self.begin(operation)?;
        match state.faults.is_read_only && self.boot.is_some() {
            true => Err(io::Error::from_raw_os_error(READ_ONLY)),
            false => Ok(state),
        }
    }
}

impl Disk for Mount {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.begin(Operation::Open)?;
        let has_faults = self.boot.is_some();
        let most = state.faults.open_files_max.filter(|_| has_faults);
        if most.is_some_and(|most| state.open_files >= most) {
            return Err(io::Error::from_raw_os_error(TOO_MANY_OPEN_FILES));
        }
        let is_written = access != Access::Read;
        if is_written && has_faults && state.faults.is_read_only {
            return Err(io::Error::from_raw_os_error(READ_ONLY));
        }
        let id = match state.tree.find(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_written => {
                state.tree.make(path, Content::File(FileContent::default()))?
            }
            found => found?,
        };
        let file = state.tree.file(id)?;
        if access == Access::Replace && !file.cached.is_empty() {
            file.cut(0);
            state.tree.touch(id);
        }
        state.open_files += usize::from(has_faults);
        state.handles += 1;
        Ok(Box::new(OpenFile { mount: self.clone(), id, handle: state.handles, is_written }))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin_change(Operation::Write)?;
        state.tree.make(path, Content::Folder(Names::default())).map(drop)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut state = self.begin(Operation::Open)?;
        let id = state.tree.find(folder)?;
        Ok(state.tree.folder(id)?.cached.keys().cloned().collect())
    }

    fn about(&self, path: &Path) -> io::Result<About> {
        let mut state = self.begin(Operation::Open)?;
        let id = state.tree.find(path)?;
        Ok(about(state.tree.node(id)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.begin_change(Operation::Write)?.tree.rename(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        let mut state = self.begin_change(Operation::Write)?;
        let id = state.tree.find(file)?;
        state.tree.file(id)?;
        state.tree.remove(file)
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.begin_change(Operation::Write)?;
        let id = state.tree.find(folder)?;
        state.tree.folder(id)?;
        state.tree.remove(folder)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.begin(Operation::SyncFolder)?;
        let id = state.tree.find(folder)?;
        state.tree.folder(id)?.sync();
        Ok(())
    }

    /// The same in every run of a simulation.
    fn user(&self) -> String {
        "1 simulated".to_owned()
    }
}

impl DiskFile for OpenFile {
    fn read_at(&self, buffer: &mut [u8], place: u64) -> io::Result<usize> {
        let mut state = self.mount.begin(Operation::Read)?;
        let has_faults = self.mount.boot.is_some();
        let is_short = has_faults && state.faults.has_short_reads && buffer.len() > 1;
        let most = match is_short {
            true => 1 + state.random.below(buffer.len() as u64 - 1) as usize,
            false => buffer.len(),
        };
        let content = &state.tree.file(self.id)?.cached;
        let start = usize::try_from(place).unwrap_or(usize::MAX).min(content.len());
        let read = most.min(content.len() - start);
        buffer[..read].copy_from_slice(&content[start..start + read]);
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], place: u64) -> io::Result<usize> {
        if !self.is_written {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut state = self.mount.begin_change(Operation::Write)?;
        let most = state.faults.bytes_max.filter(|_| self.mount.boot.is_some());
        let room = most.map_or(u64::MAX, |most| most.saturating_sub(state.tree.bytes()));
        let file = state.tree.file(self.id)?;
        let present = (file.cached.len() as u64).saturating_sub(place);
        let fits = (bytes.len() as u64).min(present.saturating_add(room)) as usize;
        if fits == 0 && !bytes.is_empty() {
            return Err(io::Error::from_raw_os_error(NO_SPACE));
        }
        file.write(place as usize, &bytes[..fits]);
        state.tree.touch(self.id);
        Ok(fits)
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.mount.begin_change(Operation::Write)?;
        state.tree.file(self.id)?.cut(bytes as usize);
        state.tree.touch(self.id);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let begun = self.mount.begin(Operation::Sync);
        match begun {
            Ok(mut state) => state.tree.file(self.id)?.sync(),
            Err(error) => {
                let mut state = lock(&self.mount.state);
                // A process that is gone changes nothing.
                if self.mount.is_alive(&state) {
                    state.tree.file(self.id)?.fail_to_sync();
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn about(&self) -> io::Result<About> {
        let mut state = self.mount.begin(Operation::Read)?;
        Ok(about(state.tree.node(self.id)))
    }

    fn try_lock(&self) -> io::Result<bool> {
        let mut state = self.mount.begin(Operation::Open)?;
        let holder = &mut state.tree.node(self.id).locked_by;
        let is_free = holder.is_none_or(|handle| handle == self.handle);
        if is_free {
            *holder = Some(self.handle);
        }
        Ok(is_free)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let mut state = lock(&self.mount.state);
        if self.mount.boot == Some(state.boot) {
            state.open_files -= 1;
            let holder = &mut state.tree.node(self.id).locked_by;
            if *holder == Some(self.handle) {
                *holder = None;
            }
        }
    }
}

fn about(node: &Node) -> About {
    About {
        bytes: match &node.content {
            Content::File(file) => file.cached.len() as u64,
            Content::Folder(_) => 0,
        },
        is_folder: matches!(node.content, Content::Folder(_)),
        is_linked: node.is_linked,
        // No clock: the order of changes is all that counts.
        changed: Some(SystemTime::UNIX_EPOCH + Duration::from_nanos(node.changed)),
    }
}
