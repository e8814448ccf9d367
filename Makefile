# These targets are shorthands; everything also works without make.
.PHONY: test demo lab ci fuzz sim mutants chaos bench dist

test: ## every test of every module
	sh .ci/test

demo: ## a quorum that loses masters, on a terminal
	go run ./cmd/redlock-lab demo

lab: ## the lab in a browser
	go run ./cmd/redlock-lab serve --open

ci: ## what a change must pass
	bash .ci/run

fuzz: ## each fuzz target for a minute
	sh .ci/fuzz 1m

sim: ## the fault lab, until you stop it
	go run ./cmd/redlock-lab sim --seeds 1-1000000000

mutants: ## planted bugs, which the fault lab must find; writes docs/testing.md
	go run ./internal/lab/mutants -write docs/testing.md

chaos: ## a storm over real servers
	go test ./internal/lab/chaos -count=1 -v -chaos.for 60s

bench: ## the comparison with other libraries; writes docs/benchmarks.md
	go -C bench run .

dist: ## a release: archives with manual pages and completions, and checksums
	sh .ci/dist $(VERSION)
