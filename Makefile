# Every target is one line; longer ones are scripts in tools/ or deploy/.
export CARGO_TERM_COLOR ?= auto

.DEFAULT_GOAL := help
.PHONY: help run test setup format lint unit doc generate firestone schemathesis fuzz render faults bench bench-smoke e2e book deny clean
.PHONY: docker-build kind-create kind-demo demo demo-local cli-demo-port-forward cli-demo kind-delete

help: ## Show the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 24

run: setup ## Serve the demo fleet on http://127.0.0.1:8080 with the token "demo"
	API_MODE=$${API_MODE:-crud} AUTH_TOKEN=$${AUTH_TOKEN:-demo} LISTEN_ADDR=$${LISTEN_ADDR:-127.0.0.1:8080} cargo run --locked --bin flux-resourceset

test: setup format lint unit doc ## Format, lints, tests, docs: must pass before every commit

setup: ## Install the missing requirements of a build
	@tools/setup

format: ## Check the format
	cargo fmt --all --check

lint: ## Check the lints
	cargo clippy --locked --workspace --all-targets --all-features -- -D warnings

unit: ## Run the tests
	cargo test --locked --workspace

doc: ## Check the documentation of the code
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items

generate: ## Write the derived files: openapi/openapi.yaml and clusters/
	tools/generate

firestone: ## Check the resource types and OpenAPI with Firestone and an OpenAPI validator
	tools/firestone

schemathesis: setup ## Test a real server against the OpenAPI document with Schemathesis
	tools/schemathesis

fuzz: setup ## Send hostile requests to a real server: the corpus, then random ones for a minute (FUZZ_SECONDS)
	tools/fuzz

render: setup ## Render the templates with the real Flux Operator's tool
	tools/render

faults: setup ## Test that nothing is lost when the database, the network, disks or servers fail
	tools/faults

bench: setup ## Run all benchmarks (20 minutes; see bench/README.md)
	tools/bench

bench-smoke: setup ## Run the benchmarks with less data, to see that they work
	tools/bench --smoke

e2e: setup ## Test with the real Flux Operator and Kubernetes, on loopback
	tools/e2e

book: ## Build the book into target/book
	tools/book

deny: ## Check licences, sources and duplicates of the dependencies
	tools/deny

docker-build: ## Build the image flux-resourceset:local
	deploy/demo/need docker && docker build --tag flux-resourceset:local .

kind-create: ## Create the kind cluster flux-demo
	deploy/demo/kind-create

kind-demo: kind-create docker-build ## Install the API, Flux and the cluster's side in the kind cluster
	deploy/demo/kind-demo

demo: kind-demo ## Run the whole demo in kind

demo-local: setup ## Run the demo without Docker, on the components of "make e2e"
	tools/e2e demo

cli-demo-port-forward: ## Forward the demo's API to http://127.0.0.1:8080
	kubectl --context kind-flux-demo --namespace flux-system port-forward service/flux-api-crud 8080:8080

cli-demo: ## Add a namespace with the command line tool, and wait until the cluster has it
	env -u FLUX_API_URL -u FLUX_API_TOKEN -u FLUX_API_WRITE_TOKEN DEMO_CONTEXT=kind-flux-demo deploy/demo/cli-demo

kind-delete: ## Delete the kind cluster flux-demo
	deploy/demo/kind-delete

clean: kind-delete ## Remove the results of builds and the kind cluster
	cargo clean
