# Shorthands; everything works without make too.
.PHONY: test demo ci fuzz

test: ## every test of every module
	sh .ci/test

demo: ## a quorum that loses masters, on a terminal
	go run ./cmd/redlock demo

ci: ## what a change must pass
	bash .ci/run

fuzz: ## each fuzz target for a minute
	go test -run '^$$' -fuzz FuzzValidity -fuzztime 1m ./clock
	go test -run '^$$' -fuzz FuzzTally -fuzztime 1m ./quorum
	go test -run '^$$' -fuzz FuzzConfig -fuzztime 1m -fuzzminimizetime 10x ./redlock
	go test -run '^$$' -fuzz FuzzOpen -fuzztime 1m ./redlock
	go test -run '^$$' -fuzz FuzzReply -fuzztime 1m -fuzzminimizetime 10x ./redlock
