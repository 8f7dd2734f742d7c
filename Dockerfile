# One static binary in an empty image. Alpine's Rust links with musl, so nothing of the build is needed to run.
FROM rust:1.95-alpine AS build
# SQLite is compiled in.
RUN apk add --no-cache musl-dev
WORKDIR /src
COPY . .
# What cargo has downloaded and built outlives the layer, so a change of ours builds ours alone.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --locked --release --package flux-resourceset && \
    install -D target/release/flux-resourceset /out/flux-resourceset && \
    install -d /store

FROM scratch
COPY --from=build /out/flux-resourceset /flux-resourceset
# A volume that is new takes its owner from here.
COPY --from=build --chown=65532:65532 /store /var/lib/flux-resourceset
ENV DATABASE_URL=sqlite:///var/lib/flux-resourceset/fleet.db?mode=rwc
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/flux-resourceset"]
