//! The server's process: reads its settings, wires the parts, and stops on a signal.

use std::{
    io::{IsTerminal as _, Write as _},
    net::SocketAddr,
    path::Path,
    process::ExitCode,
    sync::Arc,
};

use model::{Registry, excerpt::printable};
use server::{
    ApiService, App, ChangeLog, Fatal, Follower, Limits, Parts, RuntimeHandles, Runtimes, Status, SystemClock, back_up,
    config::{self, Command, Config, ConfigError, Mode},
    disable_huge_pages, listen, openapi_document, restore, retain, serve,
};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit code for a setting that is missing or invalid.
const INVALID_SETTING: u8 = 2;

fn main() -> ExitCode {
    disable_huge_pages();
    let outcome = match config::read(std::env::args_os()) {
        Ok(Command::Serve(config)) => serve_all(*config),
        Ok(Command::Openapi { resources }) => print_openapi(resources.as_deref()),
        Ok(Command::Clusters { resources, directory }) => write_clusters(resources.as_deref(), &directory),
        Ok(Command::Backup { backend, file }) => block_on(back_up(&backend, &file)),
        Ok(Command::Restore { backend, file, replace }) => block_on(restore(&backend, &file, replace)),
        Err(ConfigError::CommandLine(error)) => error.exit(),
        Err(error) => Err(Fatal::Setting(error.to_string())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(fatal) => {
            // If standard error is closed, there is nowhere to report it.
            let lines: Vec<_> = fatal.to_string().lines().map(|line| printable(line.to_owned())).collect();
            let _ = writeln!(std::io::stderr(), "flux-resourceset: {}", lines.join("\n"));
            ExitCode::from(if matches!(fatal, Fatal::Setting(_)) { INVALID_SETTING } else { 1 })
        }
    }
}

fn registry(resources: Option<&Path>) -> Result<Registry, Fatal> {
    let registry = match resources {
        Some(directory) => Registry::with_directory(directory),
        None => Registry::built_in(),
    };
    registry.map_err(|error| Fatal::Setting(format!("RESOURCES_DIR: {error}")))
}

fn print_openapi(resources: Option<&Path>) -> Result<(), Fatal> {
    let text = openapi_document(&registry(resources)?, Mode::Crud).map_err(Fatal::other)?;
    std::io::stdout().write_all(text.as_bytes()).map_err(Fatal::other)
}

fn write_clusters(resources: Option<&Path>, directory: &Path) -> Result<(), Fatal> {
    for file in manifests::tree(&registry(resources)?).map_err(Fatal::other)? {
        let path = directory.join(&file.path);
        let written =
            path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&path, file.text));
        written.map_err(|error| Fatal::other(format!("{}: {error}", path.display())))?;
    }
    Ok(())
}

fn block_on(work: impl Future<Output = Result<(), Fatal>>) -> Result<(), Fatal> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Fatal::other)?;
    runtime.block_on(work)
}

fn serve_all(config: Config) -> Result<(), Fatal> {
    let runtimes = Runtimes::start().map_err(Fatal::other)?;
    let handles = runtimes.handles();
    // In a task, so that the threads that serve connections accept them too: this thread would have to hand each one over.
    let served = block_on(async { tokio::spawn(run(config, handles)).await.map_err(Fatal::other)? });
    runtimes.shut_down();
    served
}

fn listen_at(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Fatal> {
    let listener = listen(address).map_err(|error| Fatal::other(format!("cannot listen on {address}: {error}")))?;
    // For port 0, the system has chosen the port.
    let address = listener.local_addr().map_err(Fatal::other)?;
    Ok((listener, address))
}

async fn run(config: Config, runtimes: RuntimeHandles) -> Result<(), Fatal> {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    tracing_subscriber::fmt().with_env_filter(config.log).with_writer(std::io::stderr).with_ansi(colour).init();
    let registry = Arc::new(registry(config.resources.as_deref())?);
    let openapi = match &config.openapi {
        Some(file) => Some(
            std::fs::read_to_string(file)
                .map_err(|error| Fatal::Setting(format!("OPENAPI_FILE: {}: {error}", file.display())))?,
        ),
        None => None,
    };
    let (writer, reader) = fleet::fleet();
    let follower = Follower {
        backend: config.backend,
        seed: config.seed,
        snapshot_file: config.snapshot_file,
        registry,
        records_types: config.mode == Mode::Crud,
        clock: Arc::new(SystemClock::start()),
        status: Arc::new(Status::default()),
        change_log: Arc::new(ChangeLog::default()),
    };
    let parts = Parts {
        fleet: reader,
        follower: &follower,
        mode: config.mode,
        tokens: config.tokens,
        openapi,
        public_url: config.public_url,
        has_admin_address: config.admin.is_some(),
        runtimes: runtimes.clone(),
    };
    let app = App::new(parts).map_err(Fatal::other)?;

    let admin = config.admin.map(listen_at).transpose()?;
    if let Some((_, address)) = &admin {
        tracing::info!(admin.address = %address, "metrics and probes are served at ADMIN_ADDR");
    }
    let (listener, address) = listen_at(config.listen)?;
    tracing::info!(%address, mode = %config.mode, version = env!("CARGO_PKG_VERSION"), "listening");

    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate()).map_err(Fatal::other)?,
        signal(SignalKind::interrupt()).map_err(Fatal::other)?,
    );
    let log = follower.change_log.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        log.close();
    });
    let log = follower.change_log.clone();
    if let Some((listener, _)) = admin {
        let (service, api, log) = (ApiService::admin(&app), runtimes.api.clone(), log.clone());
        // A stop does not wait for scrapes: they are short.
        tokio::spawn(async move { serve(listener, service, api, Limits::default(), log.closed()).await });
    }
    if let (Mode::Crud, Some(keep)) = (config.mode, config.retention) {
        tokio::spawn(retain(follower.change_log.clone(), follower.status.clone(), follower.clock.clone(), keep));
    }
    let (stop_following, stopped) = oneshot::channel::<()>();
    let mut following = tokio::spawn(follower.run(writer, async { drop(stopped.await) }));
    tokio::select! {
        () = serve(listener, ApiService::api(&app), runtimes.api, Limits::default(), log.closed()) => drop(stop_following),
        ended = &mut following => return ended.map_err(Fatal::other)?,
    }
    following.await.map_err(Fatal::other)?
}
