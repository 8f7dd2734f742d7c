# Every target is one line; what needs more is a script in tools/.
export CARGO_TERM_COLOR ?= auto

.DEFAULT_GOAL := help
.PHONY: help run test setup format lint unit doc generate firestone schemathesis render book deny clean

help: ## Show the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 16

run: setup ## Serve the demo fleet on http://127.0.0.1:8080 with the token "demo"
	API_MODE=$${API_MODE:-crud} AUTH_TOKEN=$${AUTH_TOKEN:-demo} LISTEN_ADDR=$${LISTEN_ADDR:-127.0.0.1:8080} cargo run --locked --bin flux-resourceset

test: setup format lint unit doc ## Everything a newcomer needs to see green: format, lints, tests, docs

setup: ## Install what a build needs and this machine lacks
	@tools/setup

format: ## Check the format
	cargo fmt --all --check

lint: ## Check the lints
	cargo clippy --locked --workspace --all-targets --all-features -- -D warnings

unit: ## Run the tests
	cargo test --locked --workspace

doc: ## Check the documentation of the code
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items

generate: ## Write what is derived: openapi/openapi.yaml
	tools/generate

firestone: ## Let Firestone and an OpenAPI validator read the resource types and what follows from them
	tools/firestone

schemathesis: setup ## Let Schemathesis try to break a real server with what the OpenAPI document says
	tools/schemathesis

render: setup ## Let the real Flux Operator's tool render what clusters get
	tools/render

book: ## Build the book into target/book
	tools/book

deny: ## Check licences, sources and duplicates of the dependencies
	tools/deny

clean: ## Remove what builds have made
	cargo clean
