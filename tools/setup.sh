#!/bin/sh
# Makes .venv from the lock file.  Says what is missing on this machine, with the command that installs it, before anything is done.
set -eu
cd "$(dirname "$0")/.."
UV_VERSION=0.13.9
PYTHON=${PYTHON:-python3}

# The package manager of this machine, and the number of its names in the lists below.
if command -v apt-get >/dev/null 2>&1; then
    install="apt-get install --no-install-recommends" column=1
elif command -v dnf >/dev/null 2>&1; then
    install="dnf install" column=2
elif command -v apk >/dev/null 2>&1; then
    install="apk add" column=3
elif command -v brew >/dev/null 2>&1; then
    install="brew install" column=4
else
    install="with the package manager of this system, by their names in Debian:" column=1
fi

missing=
packages=
named() { # named APT DNF APK BREW: the name of a package here
    case $column in 1) echo "$1" ;; 2) echo "$2" ;; 3) echo "$3" ;; *) echo "$4" ;; esac
}
need() { # need PROGRAM APT DNF APK BREW
    command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || {
        missing="$missing $1"
        package=$(named "$2" "$3" "$4" "$5")
        case "$packages " in *" $package "*) ;; *) packages="$packages $package" ;; esac
    }
}
need "$PYTHON" python3-venv python3 python3 python3
need git git git git git
need gpg gnupg gnupg2 gnupg gnupg
need ssh-keygen openssh-client openssh-clients openssh-keygen openssh
need sshd openssh-server openssh-server openssh-server openssh
if [ -n "$missing" ]; then
    echo "missing:$missing" >&2
    echo "install: $install$packages" >&2
    exit 1
fi
if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "$PYTHON is $("$PYTHON" -V 2>&1); 3.11 or newer is needed" >&2
    echo "install: a newer Python, then name it to make: make demo PYTHON=/path/to/python3" >&2
    exit 1
fi
if ! "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "$PYTHON cannot make virtual environments" >&2
    echo "install: $install $(named python3-venv python3 python3 python3)" >&2
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
