//! A disk that is full.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, io::ErrorKind};

use harness::SmallDisk;

#[test]
fn a_full_disk_refuses_writes_until_space_is_freed() {
    let Some(disk) = SmallDisk::mount(2) else { return };
    let file = disk.path().join("file");
    fs::write(&file, "before").unwrap();
    disk.fill();
    let error = fs::write(disk.path().join("other"), "more").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
    disk.free();
    fs::write(disk.path().join("other"), "more").unwrap();
}

#[test]
fn nothing_of_a_disk_is_left() {
    let Some(disk) = SmallDisk::mount(1) else { return };
    let path = disk.path().to_owned();
    assert!(mounts().contains(path.to_str().unwrap()));
    let open = fs::File::create(path.join("open")).unwrap();
    drop(disk);
    assert!(!mounts().contains(path.to_str().unwrap()));
    assert!(!path.exists());
    drop(open);
}

fn mounts() -> String {
    fs::read_to_string("/proc/self/mounts").unwrap()
}
