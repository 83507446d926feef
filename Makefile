.DEFAULT_GOAL := help
.PHONY: help check test race lint fuzz demo docs

# How long `make fuzz` works on each target.
FUZZTIME ?= 20s

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

check: ## Run exactly what CI runs
	.ci/run

test: ## Run all tests
	go test ./...

race: ## Run all tests with the race detector
	go test -race ./...

lint: ## Check format, vet, staticcheck and go.mod
	.ci/run lint

fuzz: ## Fuzz every target for FUZZTIME (20s) each
	@set -e; for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' "$$package" | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package"; \
		done; \
	done

demo: ## Run the shop and its storm on a PostgreSQL of its own
	go run ./cmd/idem demo

docs: ## Write the generated parts of docs/http.md
	go test ./idemhttp -run TestDocs -update
