//! PostgreSQL's programs on this machine, and the user that runs them: they refuse to run as root.

use std::{
    env,
    ffi::OsString,
    fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
};

use nix::unistd::{Uid, User};

#[derive(Clone)]
pub(super) struct Installed {
    path: OsString,
    owner: Option<User>,
}

impl Installed {
    /// The newest PostgreSQL of Debian's packages, else the one on `PATH`.
    pub(super) fn find() -> Self {
        let programs = debian().or_else(on_path).unwrap_or_else(|| {
            panic!("there is no PostgreSQL on this machine: tools/setup installs it");
        });
        let inherited = env::var_os("PATH").unwrap_or_default();
        // The pooler is in a folder that is on the path of root only.
        let folders = [programs].into_iter().chain(env::split_paths(&inherited)).chain(["/usr/sbin".into()]);
        let path = env::join_paths(folders).unwrap();
        let owner = Uid::effective().is_root().then(|| {
            let user = |name| User::from_name(name).unwrap();
            user("postgres")
                .or_else(|| user("nobody"))
                .unwrap_or_else(|| panic!("there is neither a user postgres nor nobody"))
        });
        Self { path, owner }
    }

    /// Changes the owner of a folder to the user that runs the programs.
    pub(super) fn set_owner(&self, folder: &Path) {
        if let Some(owner) = &self.owner {
            chown(folder, Some(owner.uid.as_raw()), Some(owner.gid.as_raw())).unwrap();
        }
    }

    /// A program that works in a folder, without the caller's environment.
    pub(super) fn command(&self, program: &str, folder: &Path) -> Command {
        let mut command = match &self.owner {
            None => Command::new(program),
            Some(owner) => {
                let mut command = Command::new("setpriv");
                command.arg(format!("--reuid={}", owner.uid)).arg(format!("--regid={}", owner.gid));
                command.args(["--clear-groups", program]);
                command
            }
        };
        command.env_clear().env("PATH", &self.path).env("LC_ALL", "C").current_dir(folder);
        command
    }
}

fn debian() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let versions = versions.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let programs = versions.map(|version| (version, format!("/usr/lib/postgresql/{version}/bin")));
    // A package of the client programs has a folder too.
    let complete = programs.filter(|(_, folder)| Path::new(folder).join("initdb").exists());
    complete.max().map(|(_, folder)| folder.into())
}

fn on_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let found = env::split_paths(&path).map(|folder| folder.join("pg_ctl")).find(|file| file.exists())?;
    // The other programs are in the folder of the link's target.
    found.canonicalize().ok()?.parent().map(Path::to_owned)
}
