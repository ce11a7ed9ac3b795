# Floodgate's commands. `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help build run test stack-up stack-down run-stack vet fmt-check

export CGO_ENABLED ?= 0

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/floodgate
	go build -trimpath -ldflags "-X main.commit=$$(git rev-parse --short=12 HEAD 2>/dev/null)" -o bin/floodgate .

run: build ## everything in one process, nothing installed: http://127.0.0.1:8080
	@exec ./bin/floodgate serve

test: ## install what is missing, start a private stack, check and test everything, stop it
	@.ci/test

stack-up: ## start Redis, MariaDB and RocketMQ on this machine, in .stack
	@deploy/stack up

stack-down: ## stop them
	@deploy/stack down

run-stack: build ## the real parts, two edges, two workers, a notifier and a console, until Ctrl-C
	@exec deploy/run-stack

vet: ## go vet
	go vet ./...

fmt-check: ## name the files that gofmt would change
	@files=$$(gofmt -l .); test -z "$$files" || { echo "gofmt -w $$files"; exit 1; }
