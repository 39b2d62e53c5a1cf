#!/usr/bin/env bash
# Writes requirements/*.txt: exact versions with the hashes of all their files, no index addresses, for Python 3.11 to 3.14.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v uv >/dev/null || { echo "lock.sh needs uv: https://docs.astral.sh/uv/" >&2; exit 1; }

compile() {
    local name=$1
    shift
    # No local configuration or wheel directory may decide what is pinned.
    env -u UV_FIND_LINKS UV_NO_CONFIG=1 uv pip compile --quiet --upgrade --universal \
        --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
        --custom-compile-command "make lock" --output-file "requirements/$name.txt" "$@"
}

compile run pyproject.toml --extra embedded --group build
# What the container image holds: the same versions, without the embedded server and what only an editable install needs.
compile image pyproject.toml --constraint requirements/run.txt
compile dev pyproject.toml --all-extras --group build --group dev
compile node --group node
