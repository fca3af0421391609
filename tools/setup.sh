#!/bin/sh
# Makes .venv from the lock file.  Says what is missing on this machine, with the command that installs it, before anything is done.
set -eu
cd "$(dirname "$0")/.."
UV_VERSION=0.13.9
PYTHON=${PYTHON:-python3}

missing=
packages=
need() { # need PROGRAM PACKAGE
    command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || { missing="$missing $1"; packages="$packages $2"; }
}
need "$PYTHON" python3-venv
need git git
need gpg gnupg
need ssh-keygen openssh-client
need sshd openssh-server
if [ -n "$missing" ]; then
    echo "missing:$missing" >&2
    echo "install: apt-get install --no-install-recommends$packages" >&2
    exit 1
fi
if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "$PYTHON is $("$PYTHON" -V 2>&1); 3.11 or newer is needed" >&2
    echo "install: a newer Python, then name it to make: make demo PYTHON=/path/to/python3" >&2
    exit 1
fi
if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "$PYTHON cannot make virtual environments" >&2
    echo "install: apt-get install --no-install-recommends python3-venv" >&2
    exit 1
fi
if ! command -v go >/dev/null 2>&1 && [ ! -x /usr/local/go/bin/go ] && [ -z "${KUBEBUILDER_ASSETS:-}" ]; then
    echo "note: Go is not installed; it is needed once, to build the control plane" >&2
    echo "install: Go 1.26 or newer, an archive of https://go.dev/dl unpacked in /usr/local" >&2
fi

# uv lives beside .venv, because it removes from .venv whatever the lock file does not name.
uv=.uv/bin/uv
if [ "$("$uv" --version 2>/dev/null | cut -d' ' -f2)" != "$UV_VERSION" ]; then
    echo "installing uv $UV_VERSION"
    "$PYTHON" -m venv --clear .uv
    echo '*' >.uv/.gitignore
    .uv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION"
fi
[ -x .venv/bin/python ] || "$PYTHON" -m venv --without-pip .venv
echo "installing the packages of uv.lock"
UV_PYTHON_DOWNLOADS=never "$uv" sync --frozen --quiet --python .venv/bin/python
touch .venv/.synced
