#!/usr/bin/env bash
# `make test-compose`: the whole stack on a real engine, with docker-compose 1.29 and docker compose v2,
# whichever are there. Builds, starts, waits until healthy, runs programs in the sandbox, drops real code,
# waits for an adapter, reads /health and /metrics, stops. In a copy of the tree, as a project of its own,
# all removed at the end.
#
#   BASE_IMAGE        image that the trainer's image starts from. Without it the CPU build of torch is
#                     fetched by this machine's pip, as it is configured, into a stand-in base image;
#                     where pip does not find it, the build fetches it itself.
#   COMPOSE_VERSIONS  which to test, "v1 v2" if not set
#   TRAINER_CPUS      processors the trainer may use, 2 if not set
#   ADAPTER_TIMEOUT   seconds to wait for the adapter, 900 if not set
#   KEEP=1            leave the last stack running, to look at it
#
# Exit status: 0 passed, 1 failed, 77 not run because there is no engine or no Compose.
set -euo pipefail

NOT_RUN=77
PROJECT=$(cd "$(dirname "$0")/.." && pwd)
NAME=ratchet-test-$$
COPY=$(mktemp -d "${TMPDIR:-/tmp}/$NAME.XXXXXX")
BASE_STANDIN=$NAME-base
COMPOSE=()
RESULTS=()
export COMPOSE_PROJECT_NAME=$NAME
TRAINER_LIMIT=${TRAINER_CPUS:-2}
unset COMPOSE_FILE POSTGRES_PASSWORD TRAINER_CPUS # the shell's would win over those of .env

say() { printf '== %s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
now() { date +%s.%N; }
since() { awk -v from="$1" -v to="$(now)" 'BEGIN { printf "%.1f", to - from }'; }

compose() { (cd "$COPY" && "${COMPOSE[@]}" "$@"); }
status_of() { curl --silent --output /dev/null --max-time 5 --write-out '%{http_code}' "$@" || true; }

clean_up() {
  local status=$?
  if [ "$status" != 0 ] && [ "$status" != "$NOT_RUN" ] && [ "${#COMPOSE[@]}" != 0 ]; then
    compose ps || true
    compose logs --tail 40 || true
  fi
  if [ "${KEEP:-0}" = 1 ]; then
    say "kept: $COPY, project $NAME"
    return
  fi
  if [ "${#COMPOSE[@]}" != 0 ]; then
    compose down --volumes --remove-orphans --timeout 20 >/dev/null 2>&1 || true
    docker image rm --force "$NAME-services" "$NAME-trainer" "$BASE_STANDIN" >/dev/null 2>&1 || true
  fi
  rm -rf "$COPY" || true
}
trap clean_up EXIT

copy_tree() { # what git tracks or would track
  git -C "$PROJECT" ls-files -z --cached --others --exclude-standard \
    | (cd "$PROJECT" && tar --create --null --files-from - --ignore-failed-read 2>/dev/null) | tar --extract --directory "$COPY"
}

make_base_image() { # sets TRAINER_BASE_IMAGE
  if [ -n "${BASE_IMAGE:-}" ]; then
    TRAINER_BASE_IMAGE=$BASE_IMAGE
  elif fetch_torch; then
    say "stand-in base image with $(basename "$COPY"/wheels/torch*.whl)"
    printf '%s\n' 'FROM python:3.11-slim-bookworm' 'COPY torch*.whl /wheels/' \
      'RUN pip install --no-cache-dir --no-deps /wheels/*.whl && rm -r /wheels' >"$COPY/wheels/Dockerfile"
    docker build --quiet --tag "$BASE_STANDIN" "$COPY/wheels" >/dev/null
    rm -r "$COPY/wheels"
    TRAINER_BASE_IMAGE=$BASE_STANDIN
  else
    TRAINER_BASE_IMAGE=python:3.11-slim-bookworm
  fi
}
fetch_torch() {
  "$PYTHON" -m pip download --quiet --no-deps --require-hashes --dest "$COPY/wheels" \
    --requirement "$PROJECT/requirements/torch-cpu.txt" 2>/dev/null
}

write_settings() { # v1 or v2; a short round on little code
  (cd "$COPY" && sh deploy/env.sh)
  cat >>"$COPY/.env" <<SETTINGS
TRAINER_BASE_IMAGE=$TRAINER_BASE_IMAGE
RECIPE=demo
MIN_NEW_FILES=60
MAX_DATASET_SIZE=40
MAX_LENGTH=256
STALL_TIMEOUT=600
TRAINER_CPUS=$TRAINER_LIMIT
QUALITY_THRESHOLD=50
CHECK_INTERVAL=2
RESCAN_INTERVAL=5
METRICS_PORT=$PORT
SETTINGS
  # Once with the images' own user and once with another, as on a machine where `make env` set yours.
  [ "$1" = v1 ] || printf 'RATCHET_UID=%s\nRATCHET_GID=%s\n' 54321 54321 >>"$COPY/.env"
}

free_port() { "$PYTHON" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

drop_repository() { # pure Python that every machine with Python has
  "$PYTHON" - "$COPY/ingest/standard-library" <<'PROGRAM'
import pathlib, shutil, sys, sysconfig
source, target = pathlib.Path(sysconfig.get_path("stdlib")), pathlib.Path(sys.argv[1])
for package in ("asyncio", "concurrent", "email", "http", "importlib", "json", "logging", "multiprocessing", "unittest", "urllib", "xml"):
    for file in sorted((source / package).rglob("*.py")):
        copy = target / file.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
print(f"== dropped {sum(1 for _ in target.rglob('*.py'))} files")
PROGRAM
}

container_state() { # service → running, healthy, exited 0 …
  local id
  id=$(compose ps -q --all "$1" 2>/dev/null || compose ps -q "$1")
  [ -n "$id" ] || { echo absent; return; }
  docker inspect --format \
    '{{if .State.Health}}{{.State.Health.Status}}{{else}}{{.State.Status}} {{.State.ExitCode}}{{end}}' "$id"
}

wait_healthy() {
  local service deadline=$((SECONDS + 180))
  for service in postgres processor sandbox trainer metrics; do
    until [ "$(container_state "$service")" = healthy ]; do
      [ "$SECONDS" -lt "$deadline" ] || fail "$service is $(container_state "$service") after 180 s"
      sleep 1
    done
  done
}

wait_adapter() {
  local ended deadline=$((SECONDS + ${ADAPTER_TIMEOUT:-900}))
  until [ -e "$COPY/adapters/demo/current/adapter_model.safetensors" ]; do
    ended=$(query "SELECT verdict ->> 'reason' FROM rounds WHERE state IN ('refused', 'failed')")
    [ -z "$ended" ] || fail "the round ended without an adapter: $ended"
    [ "$SECONDS" -lt "$deadline" ] || fail "no adapters/demo/current after ${ADAPTER_TIMEOUT:-900} s"
    sleep 3
  done
}
query() { # as the owner, one value a line
  compose exec -T postgres sh -c \
    "PGPASSWORD=\$POSTGRES_PASSWORD psql -h 127.0.0.1 -U \$POSTGRES_USER -d \$POSTGRES_DB -tAc \"$1\""
}

check_adapter() {
  local file
  for file in adapter_config.json manifest.json tokenizer.json; do
    [ -s "$COPY/adapters/demo/current/$file" ] || fail "adapters/demo/current lacks $file"
  done
  [ -L "$COPY/adapters/demo/current" ] || fail "adapters/demo/current is not a symbolic link"
}

check_metrics() {
  local url=http://127.0.0.1:$PORT
  local status
  status=$(status_of "$url/health")
  [ "$status" = 200 ] || fail "/health answers $status, expected 200"
  curl --silent --fail "$url/metrics" | "$PYTHON" -c '
import json, sys
document = json.load(sys.stdin)
missing = {"state", "training_metrics", "config"} - set(document)
sys.exit(f"/metrics lacks {sorted(missing)}" if missing else 0)' || fail "/metrics as JSON"
  curl --silent --fail --header 'Accept: text/plain' "$url/metrics" | grep -c '^# TYPE ratchet_' >/dev/null \
    || fail "/metrics as Prometheus text"
}

check_refusals() { # what must not be possible
  [ -z "$(docker port "$(compose ps -q postgres)")" ] || fail "PostgreSQL is published"
  (cd "$COPY" && mv .env .env.away && ! "${COMPOSE[@]}" config >config.log 2>&1) || fail "a missing password is no error"
  mv "$COPY/.env.away" "$COPY/.env"
  grep -q 'make env' "$COPY/config.log" || fail "a missing password does not say to run make env"
  if compose exec -T processor sh -c 'touch /app/x || touch /data/ingest/x' 2>/dev/null; then
    fail "the processor can write to its image or to the ingest folder"
  fi
}

check_sandbox() { # as the trainer: honest programs pass, cheats fail, nothing stays; only there bubblewrap works
  local try
  for try in 1 2 3; do # on a machine that is busy with other things an honest program may run out of time
    in_trainer python bench/sandbox.py --quick --socket /run/sandbox/socket >"$COPY/sandbox.log" 2>&1 \
      || { tail -n 40 "$COPY/sandbox.log"; fail "programs in the sandbox"; }
    SANDBOX=$(tail -n 1 "$COPY/sandbox.log")
    say "sandbox: $SANDBOX"
    if is_safe_and_sound "$SANDBOX"; then break; fi
    grep -E '^(FAILED|PASSED)' "$COPY/sandbox.log" || true
    [ "$try" != 3 ] || fail "in the sandbox not all honest programs pass, or not all cheats fail"
  done
  [ -z "$(compose exec -T sandbox ls -A /tmp)" ] || fail "programs left files in the sandbox"
  if docker top "$(compose ps -q sandbox)" | grep -q 'inside.candidate'; then fail "programs are left running"; fi
  if in_trainer python -m services.sandbox --socket /tmp/socket >"$COPY/sandbox.log" 2>&1; then
    fail "a sandbox starts under Docker's default seccomp profile"
  fi
  grep -q 'cannot be isolated here' "$COPY/sandbox.log" || { cat "$COPY/sandbox.log"; fail "no clear error"; }
}
is_safe_and_sound() {
  "$PYTHON" -c '
import json, sys
found = json.loads(sys.argv[1])
sys.exit(not (found["canonical_passed"] == 164 and found["cheats_failed"] == found["cheats_tried"] >= 12))' "$1"
}
in_trainer() { # a container like the trainer's, with what the image leaves out
  compose run --rm --no-deps -T --volume "$COPY/bench:/app/bench:ro" --volume "$COPY/tests:/app/tests:ro" trainer "$@"
}

check_nothing_left() {
  local left
  left=$(docker ps --all --quiet --filter "label=com.docker.compose.project=$NAME"
    docker volume ls --quiet --filter "label=com.docker.compose.project=$NAME"
    docker network ls --quiet --filter "label=com.docker.compose.project=$NAME")
  [ -z "$left" ] || fail "left behind: $left"
}

test_version() { # v1 or v2, with COMPOSE set
  local from build up adapter stop SANDBOX
  say "$1: ${COMPOSE[*]} $("${COMPOSE[@]}" version --short)"
  write_settings "$1"
  from=$(now); compose build >"$COPY/build.log" 2>&1 || { tail -n 40 "$COPY/build.log"; fail "build"; }
  build=$(since "$from")
  from=$(now); compose up -d >"$COPY/up.log" 2>&1 || { cat "$COPY/up.log"; fail "up"; }
  wait_healthy
  up=$(since "$from")
  say "$1: healthy after $up s"
  check_sandbox
  from=$(now); drop_repository; wait_adapter
  adapter=$(since "$from")
  say "$1: an adapter after $adapter s"
  check_adapter; check_metrics; check_refusals
  from=$(now)
  [ "${KEEP:-0}" = 1 ] || compose stop >/dev/null 2>&1
  stop=$(since "$from")
  check_exit_statuses
  RESULTS+=("\"$1_seconds_build\": $build, \"$1_seconds_up_to_healthy\": $up, \"$1_seconds_to_adapter\": $adapter, \"$1_seconds_stop\": $stop, \"$1_sandbox\": $SANDBOX")
  [ "${KEEP:-0}" = 1 ] && return
  compose down --volumes --timeout 20 >/dev/null 2>&1
  check_nothing_left
  docker image rm --force "$NAME-services" "$NAME-trainer" >/dev/null 2>&1 || true
  rm -rf "${COPY:?}"/{ingest,adapters,checkpoints,logs,cache,.env}
}

check_exit_statuses() { # stopped in good order: SIGTERM was heard
  local service status
  [ "${KEEP:-0}" = 1 ] && return
  for service in volumes migrate processor sandbox trainer metrics postgres; do
    status=$(docker inspect --format '{{.State.ExitCode}}' \
      "$(docker ps --all --quiet --filter "label=com.docker.compose.project=$NAME" --filter "label=com.docker.compose.service=$service")")
    [ "$status" = 0 ] || fail "$service ended with status $status"
  done
}

if ! docker version --format '{{.Server.Version}}' >/dev/null 2>&1; then
  say "NOT RUN: no Docker engine answers here, so nothing was tested (exit status $NOT_RUN)"
  exit "$NOT_RUN"
fi
PYTHON=$(command -v "$PROJECT/.venv/bin/python" || command -v python3)
PORT=$(free_port)
copy_tree
make_base_image
for version in ${COMPOSE_VERSIONS:-v1 v2}; do
  case $version in
    v1) COMPOSE=(docker-compose) ;;
    v2) COMPOSE=(docker compose) ;;
    *) fail "COMPOSE_VERSIONS names $version: expected v1, v2" ;;
  esac
  if "${COMPOSE[@]}" version >/dev/null 2>&1; then
    test_version "$version"
  else
    say "$version: ${COMPOSE[*]} is not here, not tested"
  fi
done
if [ "${#RESULTS[@]}" = 0 ]; then
  say "NOT RUN: neither docker-compose nor docker compose is here (exit status $NOT_RUN)"
  exit "$NOT_RUN"
fi
joined=$(printf ', %s' "${RESULTS[@]}")
printf '{%s}\n' "${joined:2}"
