# One static binary in an empty image. Alpine's Rust links with musl, so the binary needs no other files.
FROM rust:1.95-alpine AS build
# SQLite is compiled in.
RUN apk add --no-cache musl-dev
WORKDIR /src
COPY . .
# The caches keep downloads and compiled dependencies, so a source change compiles only our crates.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --locked --release --package flux-resourceset && \
    install -D target/release/flux-resourceset /out/flux-resourceset && \
    install -d /store

FROM scratch
COPY --from=build /out/flux-resourceset /flux-resourceset
# A new volume gets its owner from this folder.
COPY --from=build --chown=65532:65532 /store /var/lib/flux-resourceset
ENV DATABASE_URL=sqlite:///var/lib/flux-resourceset/fleet.db?mode=rwc
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/flux-resourceset"]
