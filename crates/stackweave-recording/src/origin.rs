//! The machine and the user that made a recording.

use std::fs;

use crate::file::ProcessStart;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const HOST: &str = "/proc/sys/kernel/hostname";
const MACHINE_ID: &str = "/etc/machine-id";

/// A user on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingOrigin {
    /// The effective user id of the process.
    pub uid: u32,
    /// The name of the machine.
    pub host: String,
    /// Identifies one boot of the machine; empty if unknown.
    pub boot_id: String,
    /// Identifies the machine across boots; empty if unknown.
    pub machine: String,
}

impl RecordingOrigin {
    /// Returns the origin of recordings that this process makes.
    pub fn here() -> Self {
        // SAFETY: it has no conditions and can't fail.
        let uid = unsafe { libc::geteuid() };
        let machine = line_of(MACHINE_ID);
        let machine = if machine.is_empty() { machine } else { digest(&machine) };
        Self { uid, host: line_of(HOST), boot_id: line_of(BOOT_ID), machine }
    }

    /// Returns whether the header `start` shows that this user made the recording on this machine. Recordings of old versions
    /// have no user, so the answer for them is `false`.
    pub fn has_made(&self, start: &ProcessStart) -> bool {
        let is_equal = |own: &str, other: &str| !own.is_empty() && own == other;
        let is_machine = is_equal(&self.boot_id, &start.boot_id) || is_equal(&self.machine, &start.machine);
        start.uid == Some(self.uid) && is_equal(&self.host, &start.host) && is_machine
    }
}

fn line_of(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim_end().to_owned()
}

/// Hashes a machine id (FNV-1a). The id is confidential, so recordings contain only half as many bits.
fn digest(id: &str) -> String {
    let hash = id
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_belong_to_the_same_user_on_the_same_machine() {
        let own = RecordingOrigin { uid: 7, host: "host".into(), boot_id: "boot".into(), machine: "machine".into() };
        let start = ProcessStart {
            uid: Some(7),
            host: "host".into(),
            boot_id: "boot".into(),
            machine: "machine".into(),
            ..ProcessStart::default()
        };
        assert!(own.has_made(&start));
        assert!(own.has_made(&ProcessStart { boot_id: "another run".into(), ..start.clone() }));
        assert!(own.has_made(&ProcessStart { machine: String::new(), ..start.clone() }));
        let foreign = [
            ProcessStart { uid: Some(0), ..start.clone() },
            ProcessStart { uid: None, ..start.clone() },
            ProcessStart { host: "other".into(), ..start.clone() },
            ProcessStart { boot_id: String::new(), machine: String::new(), ..start.clone() },
            ProcessStart { boot_id: "other".into(), machine: "other".into(), ..start.clone() },
        ];
        assert!(foreign.iter().all(|start| !own.has_made(start)));
        let nowhere = RecordingOrigin { boot_id: String::new(), machine: String::new(), ..own };
        assert!(!nowhere.has_made(&ProcessStart { boot_id: String::new(), machine: String::new(), ..start }));
    }

    #[test]
    fn the_machine_id_is_not_disclosed() {
        let id = line_of(MACHINE_ID);
        assert!(id.is_empty() || !RecordingOrigin::here().machine.contains(&id[..8]));
        assert_eq!(digest(""), "cbf29ce484222325");
        assert_eq!(digest("a"), "af63dc4c8601ec8c");
    }
}
