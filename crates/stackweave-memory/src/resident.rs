//! The resident size of the process, as the kernel reports it.
//!
//! Neither allocates nor keeps a file open: a program may close all file descriptors that it does not know.

/// Returns the resident size in bytes; `None` if the kernel does not report it.
pub(crate) fn resident_bytes() -> Option<u64> {
    let mut text = [0_u8; 128];
    let length = read_statm(&mut text)?;
    let page = page_size()?;
    parse_pages(text.get(..length)?).map(|pages| pages * page)
}

fn read_statm(text: &mut [u8]) -> Option<usize> {
    // SAFETY: the path ends in zero.
    let file = unsafe { libc::open(c"/proc/self/statm".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return None;
    }
    // SAFETY: the buffer has room for as many bytes.
    let length = unsafe { libc::read(file, text.as_mut_ptr().cast(), text.len()) };
    // SAFETY: opened above.
    unsafe { libc::close(file) };
    usize::try_from(length).ok()
}

fn page_size() -> Option<u64> {
    // SAFETY: has no conditions.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()
}

/// Returns the second of the numbers.
fn parse_pages(text: &[u8]) -> Option<u64> {
    let word = text.split(u8::is_ascii_whitespace).nth(1)?;
    str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_size_is_the_second_number() {
        assert_eq!(parse_pages(b"4321 1234 500 2 0 700 0\n"), Some(1234));
        assert_eq!((parse_pages(b"12"), parse_pages(b"12 x"), parse_pages(b"")), (None, None, None));
    }

    #[test]
    fn the_resident_size_grows_when_pages_are_touched() {
        let before = resident_bytes().unwrap();
        let block = vec![1_u8; 64 << 20];
        let after = resident_bytes().unwrap();
        assert!(after > before + (32 << 20), "{before} {after}");
        drop(block);
    }
}
