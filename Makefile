PYTHON ?= python3
RUN = .venv/bin/python manage.py

.PHONY: demo serve test lint bench bench-peers models
demo: models ; SITEWISE_ALLOW_LOOPBACK=1 $(RUN) demo
serve: models ; $(RUN) serve
test: models ; .venv/bin/pytest
lint: .venv/ready ; .venv/bin/ruff check . && .venv/bin/ruff format --check .
bench: models ; .venv/bin/python -m tests.benchmarks
bench-peers: .venv/ready ; .venv/bin/python -m tests.benchmarks.peers $(PEERS)
models: .venv/ready ; $(RUN) fetch_models

.venv/ready: requirements.txt
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --require-hashes -r requirements.txt
	touch $@
