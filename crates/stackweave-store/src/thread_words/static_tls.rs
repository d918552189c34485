//! The words of threads on Linux on x86-64, at a fixed distance from the thread pointer.
//!
//! In a program, they are in its own thread-local memory. A library loads a separate object (`elf_object.rs`) from
//! memory when it is itself loaded: before any of its code can be called, and never in a signal handler.
//!
//! Hot file: getting and setting a word neither allocates nor calls, unless the loader had no memory left.

use core::arch::asm;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};
use core::{ptr, slice};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::OnceLock;

use super::named_object::NamedObject;
use super::{COUNT, NoThreadWords, ThreadWords, dynamic, elf_object};

/// A link to the folder of this process, which contains the paths of its open files.
const OWN_PROCESS: &str = "/proc/self";

/// The distance of the first word from the thread pointer; 0: only ordinary thread-locals are used.
static DISTANCE: AtomicUsize = AtomicUsize::new(0);
static OUTCOME: OnceLock<Result<ThreadWords, NoThreadWords>> = OnceLock::new();

/// Runs when the program starts, or when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = set_up_words;

#[inline(always)]
pub(super) fn get<const INDEX: usize>() -> usize {
    let distance = DISTANCE.load(Ordering::Relaxed);
    if distance == 0 {
        return dynamic::get(INDEX);
    }
    let word;
    // SAFETY: loads eight bytes of this thread.
    unsafe {
        asm!(
            "mov {word}, qword ptr fs:[{distance} + {place}]",
            word = lateout(reg) word,
            distance = in(reg) distance,
            place = const INDEX * size_of::<usize>(),
            options(nostack, readonly, preserves_flags),
        );
    }
    word
}

#[inline(always)]
pub(super) fn set<const INDEX: usize>(word: usize) {
    let distance = DISTANCE.load(Ordering::Relaxed);
    if distance == 0 {
        return dynamic::set(INDEX, word);
    }
    // SAFETY: stores eight bytes of this thread.
    unsafe {
        asm!(
            "mov qword ptr fs:[{distance} + {place}], {word}",
            word = in(reg) word,
            distance = in(reg) distance,
            place = const INDEX * size_of::<usize>(),
            options(nostack, preserves_flags),
        );
    }
}

pub(super) fn thread_words() -> Result<ThreadWords, NoThreadWords> {
    let never_ran = || Err(NoThreadWords("the constructor of the library did not run".into()));
    OUTCOME.get().cloned().unwrap_or_else(never_ran)
}

extern "C" fn set_up_words() {
    let placed = if is_in_program(ptr::from_ref(&DISTANCE).addr()) {
        Ok((dynamic::address().wrapping_sub(thread_pointer()), ThreadWords::Program))
    } else {
        load(ptr::from_ref(&DISTANCE).addr())
            .map(|distance| (distance, ThreadWords::Reserve(COUNT * size_of::<usize>())))
    };
    let outcome = placed.map(|(distance, place)| {
        DISTANCE.store(distance, Ordering::Relaxed);
        place
    });
    // The first outcome stays: this runs once.
    let _ = OUTCOME.set(outcome.map_err(NoThreadWords));
}

fn thread_pointer() -> usize {
    let address;
    // SAFETY: the first word of the thread control block is its own address.
    unsafe { asm!("mov {0}, qword ptr fs:[0]", out(reg) address, options(nostack, readonly, preserves_flags)) };
    address
}

/// Returns whether an address is in the program itself, not in a library. The loader lists the program first.
fn is_in_program(address: usize) -> bool {
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, address: *mut c_void) -> c_int {
        // SAFETY: the loader passes valid data.
        let headers = unsafe { slice::from_raw_parts((*info).dlpi_phdr, usize::from((*info).dlpi_phnum)) };
        // SAFETY: the loader passes the number of headers.
        let offset = (address.addr() as u64).wrapping_sub(unsafe { (*info).dlpi_addr });
        let has = |header: &libc::Elf64_Phdr| {
            header.p_type == libc::PT_LOAD && offset.wrapping_sub(header.p_vaddr) < header.p_memsz
        };
        if headers.iter().any(has) { FOUND } else { NOT_FOUND }
    }
    const FOUND: c_int = 1;
    const NOT_FOUND: c_int = 2;
    // SAFETY: the callback has the right signature; the address is not dereferenced.
    unsafe { libc::dl_iterate_phdr(Some(look), ptr::without_provenance_mut(address)) == FOUND }
}

/// The documented part of the result of `dlinfo`.
#[repr(C)]
struct LinkMap {
    address: usize,
    name: *mut c_char,
}

/// Returns a path of an open file that no other copy of this library has used. The loader always regards equal
/// paths as the same object, and file descriptor numbers are reused: so the path contains the address of this
/// copy, as empty components and dots. `process` is this process's number in `/proc`, which may be that of another
/// PID namespace. The path does not use "self", because debuggers open the path of a loaded object, and there
/// "self" would be the debugger.
fn unique_path(process: &Path, file: &File, address: usize) -> String {
    let bits = (0..usize::BITS - address.leading_zeros()).map(|bit| if address >> bit & 1 == 0 { "/" } else { "/." });
    format!("/proc/{}/fd{}/{}", process.display(), bits.collect::<String>(), file.as_raw_fd())
}

/// Lets the loader load the object, and returns the distance of its thread-local memory. No other copy has this
/// `address`.
fn load(address: usize) -> Result<usize, Box<str>> {
    let unwritten = |error: io::Error| format!("can't write the object that has it: {error}");
    if let Ok(process) = fs::read_link(OWN_PROCESS) {
        let file = object_file().map_err(unwritten)?;
        return load_from(unique_path(&process, &file, address).into());
    }
    let object = NamedObject::create(address).map_err(unwritten)?;
    load_from(object.path().to_owned().into_os_string().into_vec())
}

/// Lets the loader load the object at this path, as [`load`] does.
fn load_from(path: Vec<u8>) -> Result<usize, Box<str>> {
    let path = CString::new(path).map_err(|error| error.to_string())?;
    let mut map: *mut LinkMap = ptr::null_mut();
    // SAFETY: the path is a C string, the object has no code, and `map` is valid memory for a pointer.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE);
        if handle.is_null() || libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) != 0 {
            let why = libc::dlerror();
            let why = if why.is_null() { c"the loader refuses it" } else { CStr::from_ptr(why) };
            return Err(why.to_string_lossy().into());
        }
        // Debuggers and profilers open the files that the loader lists, and the path will soon belong to another
        // file, or to none. The name is copied, because the loader may free it. The old name is not freed: other
        // threads may be reading it.
        let name = libc::strdup(elf_object::NAME.as_ptr());
        if !name.is_null() {
            (*map).name = name;
        }
        let distance = (*map).address + elf_object::DISTANCE_AT as usize;
        Ok(ptr::with_exposed_provenance::<usize>(distance).read())
    }
}

/// Returns an unnamed file that contains the object.
fn object_file() -> io::Result<File> {
    let mut file = memory_file().or_else(|error| {
        let folders = [std::env::temp_dir(), "/dev/shm".into(), "/var/tmp".into()];
        folders.iter().find_map(|folder| unnamed_file(folder).ok()).ok_or(error)
    })?;
    file.write_all(&elf_object::bytes())?;
    Ok(file)
}

fn memory_file() -> io::Result<File> {
    // Some systems refuse executable memory files, and older ones do not know the flag.
    let flags = [libc::MFD_CLOEXEC | libc::MFD_NOEXEC_SEAL, libc::MFD_CLOEXEC];
    // SAFETY: the name is a C string.
    let open = |flags| unsafe { libc::memfd_create(elf_object::NAME.as_ptr(), flags) };
    let descriptor = flags.into_iter().map(open).find(|descriptor| *descriptor >= 0);
    // SAFETY: this code has just opened the descriptor.
    descriptor.map(|descriptor| unsafe { File::from_raw_fd(descriptor) }).ok_or_else(io::Error::last_os_error)
}

fn unnamed_file(folder: &Path) -> io::Result<File> {
    File::options().read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE).open(folder)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// Returns the address of the calling thread's word in a loaded object.
    fn word_at(distance: usize) -> *mut usize {
        ptr::with_exposed_provenance_mut(thread_pointer().wrapping_add(distance))
    }

    #[test]
    fn a_program_has_the_words_in_its_own_thread_local_memory() {
        assert_eq!(thread_words(), Ok(ThreadWords::Program));
        assert_eq!(thread_pointer().wrapping_add(DISTANCE.load(Ordering::Relaxed)), dynamic::address());
        set::<7>(9);
        assert_eq!((get::<7>(), dynamic::get(7), get::<6>()), (9, 9, 0));
        thread::spawn(|| assert_eq!(get::<7>(), 0)).join().unwrap();
    }

    #[test]
    fn threads_older_than_the_object_have_zeroed_words() {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..8).map(|_| mpsc::channel::<usize>()).unzip();
        let (ready, wait) = mpsc::channel();
        let threads: Vec<_> = receivers
            .into_iter()
            .map(|receiver| {
                let ready = ready.clone();
                thread::spawn(move || {
                    ready.send(()).unwrap();
                    let words = word_at(receiver.recv().unwrap());
                    // SAFETY: the words of this thread, which the loader has allocated.
                    let old = unsafe { slice::from_raw_parts(words, COUNT) }.to_vec();
                    // SAFETY: as above.
                    unsafe { words.write(thread_pointer()) };
                    // SAFETY: as above.
                    (old, unsafe { words.read() } == thread_pointer())
                })
            })
            .collect();
        for _ in &threads {
            wait.recv().unwrap();
        }
        let distance = load(1).unwrap();
        for sender in &senders {
            sender.send(distance).unwrap();
        }
        for thread in threads {
            assert_eq!(thread.join().unwrap(), (vec![0; COUNT], true));
        }
        // SAFETY: as above, on a thread that is younger than the object.
        assert_eq!(thread::spawn(move || unsafe { word_at(distance).read() }).join().unwrap(), 0);
    }

    #[test]
    fn the_loader_lists_the_object_by_its_name() {
        unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
            // SAFETY: the loader passes valid data, and `found` is the variable below.
            unsafe {
                let name = CStr::from_ptr((*info).dlpi_name);
                assert!(!name.to_bytes().starts_with(b"/proc/"), "{name:?}");
                *found.cast::<bool>() |= name == elf_object::NAME;
            }
            0
        }
        load(1).unwrap();
        let mut found = false;
        // SAFETY: the callback has the right signature.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
        assert!(found);
    }

    #[test]
    fn each_copy_of_the_library_has_its_own_words() {
        // All files have the same descriptor number, one after the other.
        let mut distances: Vec<_> =
            (0x7f00_1000_0000..0x7f00_1000_0008_usize).map(|copy| load(copy).unwrap()).collect();
        distances.sort_unstable();
        let gaps = distances.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
        assert!(gaps.min().unwrap() >= COUNT * size_of::<usize>(), "{distances:?}");
    }

    #[test]
    fn a_named_file_is_used_if_open_files_have_no_paths() {
        let load_named = |copy| {
            let object = NamedObject::create(copy).unwrap();
            load_from(object.path().to_owned().into_os_string().into_vec()).unwrap()
        };
        let distances = [load_named(0x7f00_2000_0000), load_named(0x7f00_2000_1000)];
        // SAFETY: the words of this thread, which the loader has allocated.
        let words = distances.map(|distance| unsafe { word_at(distance).read() });
        assert_eq!(words, [0, 0]);
        assert!(distances[0].abs_diff(distances[1]) >= COUNT * size_of::<usize>(), "{distances:?}");
    }

    #[test]
    fn an_unnamed_file_is_used_if_there_are_no_memory_files() {
        let mut file = unnamed_file(Path::new("/dev/shm")).or_else(|_| unnamed_file(&std::env::temp_dir())).unwrap();
        file.write_all(&elf_object::bytes()).unwrap();
        load_from(format!("/proc/self/fd/{}", file.as_raw_fd()).into()).unwrap();
    }
}
