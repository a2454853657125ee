#!/bin/sh
# Make .venv from the hashed lock files in requirements/ and put the `ratchet` command into it.
#
#   deploy/setup.sh          what `make up` needs
#   deploy/setup.sh --dev    also what `make test` and `make check` need
#
# A stamp in .venv holds the hash of the lock files: when nothing changed this ends at once, and an
# installation that broke off half way is taken up again.
set -eu

project=$(cd "$(dirname "$0")/.." && pwd)
venv=$project/.venv
locks=$project/requirements
log=$project/.ratchet/logs/setup.log
if [ "${1:-}" = --dev ]; then dev=yes; else dev=; fi

say() { printf 'ratchet: %s\n' "$*" >&2; }
die() {
    say "$*"
    exit 1
}

# The first Python from 3.11 on that is there and works; $PYTHON is preferred.
find_python() {
    for name in ${PYTHON:-} python3.11 python3 python3.12 python3.13 python; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    die "Python 3.11 or newer is needed and was not found. Install it (Debian and Ubuntu:
  apt-get install python3 python3-venv), or name it: make up PYTHON=/path/to/python3.11"
}

has_nvidia_gpu() {
    [ -e /dev/nvidia0 ] || nvidia-smi -L >/dev/null 2>&1
}

# Whether the stamp of this name was written for the lock files as they are now.
is_current() {
    [ "$(cat "$venv/.ratchet-$1" 2>/dev/null)" = "$(fingerprint)" ]
}

fingerprint() {
    { echo "$project" && cat "$locks"/*.txt "$project/deploy/setup.sh"; } | sha256sum | cut -d ' ' -f 1
}

# Run pip with these lock files. What it says goes to the log; every 15 s a line says how far it is.
install() {
    for file in "$@"; do
        set -- "$@" --requirement "$locks/$file"
        shift
    done
    "$venv/bin/python" -m pip --disable-pip-version-check --no-input install --no-deps --require-hashes \
        --progress-bar off "$@" >"$log" 2>&1 &
    pip=$!
    trap 'kill "$pip" 2>/dev/null; exit 130' INT TERM HUP
    seconds=0
    while kill -0 "$pip" 2>/dev/null; do
        sleep 1
        seconds=$((seconds + 1))
        if [ $((seconds % 15)) -eq 0 ]; then say "  $seconds s: $(progress)"; fi
    done
    trap - INT TERM HUP
    wait "$pip"
}

progress() {
    if grep -q '^Installing collected' "$log"; then
        echo "installing what was fetched"
    else
        echo "fetched $(grep -c '^Collecting' "$log") packages"
    fi
}

die_of_pip() {
    tail -n 30 "$log" >&2
    die "the installation failed; what pip said is above and in $log. Run the same command again to go on."
}

make_venv() {
    python=$(find_python)
    # Kept when it works and was made for this place: scripts in it hold its path.
    if grep -qsF "$venv" "$venv/bin/activate" && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        return
    fi
    say "making $venv with $("$python" --version)"
    rm -rf "$venv"
    "$python" -m venv "$venv" >"$log" 2>&1 && return
    cat "$log" >&2
    rm -rf "$venv"
    die "Python cannot make virtual environments here. Debian and Ubuntu: apt-get install python3-venv"
}

# One pip call for everything; torch for the processor alone where there is no NVIDIA GPU.
install_runtime() {
    if ! has_nvidia_gpu; then
        say "installing (no NVIDIA GPU here, so PyTorch for the processor alone); about two minutes"
        if install services.txt local.txt demo.txt torch-cpu.txt trainer.txt "$@"; then return; fi
        if ! sed -n '/^ERROR/,$p' "$log" | grep -q 'torch==[0-9.]*+cpu'; then die_of_pip; fi
        say "pip finds no PyTorch for the processor alone, so the CUDA build comes (5.5 GB in all; it runs
  without a GPU too). To have the small one, 1.4 GB in all, stop this and run it again with
  PIP_EXTRA_INDEX_URL set to PyTorch's index of CPU builds: its installation page has the address."
    else
        say "installing with PyTorch for CUDA (several GB)"
    fi
    install services.txt local.txt demo.txt torch-cuda.txt trainer.txt "$@" || die_of_pip
}

# The command and the import path, without a build: works offline, and edits take effect at once.
link_project() {
    site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    printf '%s\n' "$project" >"$site/ratchet.pth"
    cat >"$venv/bin/ratchet" <<EOF
#!/bin/sh
'''exec' "$venv/bin/python" -P "\$0" "\$@"
' '''
import sys

from services.cli.main import app

sys.exit(app(prog_name="ratchet"))
EOF
    chmod +x "$venv/bin/ratchet"
}

if is_current runtime && { [ -z "$dev" ] || is_current dev; } && [ -x "$venv/bin/ratchet" ]; then exit 0; fi

mkdir -p "$(dirname "$log")" 2>/dev/null || die "$project is not writable: run this as its owner"
started=$(date +%s)
make_venv
if is_current runtime; then
    say "installing what tests need"
    install dev.txt || die_of_pip
else
    rm -f "$venv"/.ratchet-*
    if [ -n "$dev" ]; then install_runtime dev.txt; else install_runtime; fi
fi
link_project
fingerprint >"$venv/.ratchet-runtime"
if [ -n "$dev" ]; then fingerprint >"$venv/.ratchet-dev"; fi
say "installed in $(($(date +%s) - started)) s: $venv/bin/ratchet"
