# Every target is one line; what needs more is a script in tools/ or deploy/.
export CARGO_TERM_COLOR ?= auto

.DEFAULT_GOAL := help
.PHONY: help run test setup format lint unit doc generate firestone schemathesis fuzz render faults bench bench-smoke e2e book deny clean
.PHONY: docker-build kind-create kind-demo demo demo-local cli-demo-port-forward cli-demo kind-delete

help: ## Show the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 24

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

generate: ## Write what is derived: openapi/openapi.yaml and clusters/
	tools/generate

firestone: ## Let Firestone and an OpenAPI validator read the resource types and what follows from them
	tools/firestone

schemathesis: setup ## Let Schemathesis try to break a real server with what the OpenAPI document says
	tools/schemathesis

fuzz: setup ## Send hostile requests to a real server for a minute (FUZZ_SECONDS), after those that are kept
	tools/fuzz

render: setup ## Let the real Flux Operator's tool render what clusters get
	tools/render

faults: setup ## Break the database, the network, the disks and the servers, and see that nothing is lost
	tools/faults

bench: setup ## Measure, beside what it stands on and in one run
	tools/bench

bench-smoke: setup ## See that the measurements work
	tools/bench --smoke

e2e: setup ## Prove it all on the real Flux Operator and Kubernetes, on loopback
	tools/e2e

book: ## Build the book into target/book
	tools/book

deny: ## Check licences, sources and duplicates of the dependencies
	tools/deny

docker-build: ## Build the image flux-resourceset:local
	deploy/demo/need docker && docker build --tag flux-resourceset:local .

kind-create: ## Create the kind cluster flux-demo
	deploy/demo/kind-create

kind-demo: kind-create docker-build ## Put the API, Flux and the cluster's side into it
	deploy/demo/kind-demo

demo: kind-demo ## The whole demo in kind, with one command

demo-local: setup ## The same story without Docker, on the real parts that "make e2e" uses
	tools/e2e demo

cli-demo-port-forward: ## Let the demo's API answer on http://127.0.0.1:8080
	kubectl --context kind-flux-demo --namespace flux-system port-forward service/flux-api-crud 8080:8080

cli-demo: ## Add a namespace with the operator's tool, and wait until the cluster has it
	env -u FLUX_API_URL -u FLUX_API_TOKEN -u FLUX_API_WRITE_TOKEN DEMO_CONTEXT=kind-flux-demo deploy/demo/cli-demo

kind-delete: ## Delete the kind cluster flux-demo
	deploy/demo/kind-delete

clean: kind-delete ## Remove what builds and the demo have made
	cargo clean
