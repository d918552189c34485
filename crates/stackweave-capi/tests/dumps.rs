//! Dumps of all threads that a host in C requests.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::mpsc;
use std::thread;

use stackweave::stackweave_status::{STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_NO_DUMP, STACKWEAVE_OK};
use stackweave::{stackweave_dump_threads, stackweave_prepare_dumps, stackweave_status};

fn dump(fd: i32) -> stackweave_status {
    // SAFETY: called outside a signal handler, so without a context.
    unsafe { stackweave_dump_threads(fd, 0, ptr::null()) }
}

#[test]
fn prepared_dumps_write_all_threads() {
    let path = std::env::temp_dir().join(format!("stackweave-dump-{}", std::process::id()));
    let mut file = File::options().create(true).truncate(true).read(true).write(true).open(&path).expect("a file");
    std::fs::remove_file(&path).expect("the file is there");
    assert_eq!(dump(-1), STACKWEAVE_BAD_ARGUMENT);
    assert_eq!(dump(file.as_raw_fd()), STACKWEAVE_NO_DUMP);
    assert_eq!(stackweave_prepare_dumps(), STACKWEAVE_OK);
    assert_eq!(stackweave_prepare_dumps(), STACKWEAVE_OK);
    let (release, waiting) = mpsc::channel::<()>();
    let (started, has_started) = mpsc::channel();
    let worker = thread::Builder::new()
        .name("waits-for-host".into())
        .spawn(move || started.send(()).is_ok() && waiting.recv().is_err());
    has_started.recv().expect("the thread has started");
    assert_eq!(dump(file.as_raw_fd()), STACKWEAVE_OK);
    drop(release);
    assert!(worker.expect("a thread").join().expect("it ends"));
    let mut text = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut text)).expect("the file can be read");
    assert!(text.contains("dumps were not prepared"), "{text}");
    assert!(text.contains("waits-for-host"), "{text}");
    assert!(text.contains("libc.so"), "{text}");
    assert_eq!(dump(1_000_000), STACKWEAVE_NO_DUMP);
}
