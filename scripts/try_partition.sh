#!/usr/bin/env bash
# try_partition.sh [HEDDLE]  Four network namespaces as the hosts of a server and of three workers, on a switch. One
# worker's host is cut off while clients send requests: its port leaves the switch, so that packets vanish and nothing
# is closed. Tells when the server knew, how long after the healing the worker was back, and what became of the
# requests. Exit status 0: each had one fate, no later than a second after its deadline, and the worker came back; 1:
# not; 77: it cannot be tried here (no root or ip).
set -euo pipefail
heddle=$(realpath "${1:-build/heddle}")

skip() {
  echo "try_partition: $*; skipped" >&2
  exit 77
}
[ "$(id -u)" = 0 ] || skip "needs root"
for program in ip python3; do
  command -v "$program" >/dev/null || skip "no $program"
done

work=$(mktemp -d)
switch=heddle-sw-$$
hosts=(server front back1 back2)
started=()
clean() {
  [ ${#started[@]} -eq 0 ] || kill "${started[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  for name in "$switch" "${hosts[@]/%/-$$}"; do ip netns del "$name" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean EXIT
ip netns add "$switch" 2>/dev/null || skip "no network namespaces"
ip -n "$switch" link add br0 type bridge 2>/dev/null || skip "no bridge"
ip -n "$switch" link set br0 up
number=0
for host in "${hosts[@]}"; do
  number=$((number + 1))
  ip netns add "$host-$$"
  ip -n "$host-$$" link set lo up
  ip link add eth0 netns "$host-$$" type veth peer name "$host" netns "$switch" || skip "no veth"
  ip -n "$host-$$" addr add "10.78.0.$number/24" dev eth0
  ip -n "$host-$$" link set eth0 up
  ip -n "$switch" link set "$host" up
  ip -n "$switch" link set "$host" master br0
done

python3 - "$work/fleet.json" <<'PY'
import json, sys
block = {"front": [20e3, 400e3], "back": [400e3, 20e3]}
json.dump({"format": "heddle-fleet", "version": 1, "name": "two-parts", "max_partitions": 2,
           "classes": [{"name": name, "count": 2, "nic": "8Gbit/s"} for name in block],
           "models": [{"name": "net", "slo": "1s", "cut_bytes": [1000, 300000, 1000],
                       "latency_us": {name: [[times]] for name, times in block.items()}}]},
          open(sys.argv[1], "w"))
PY
run_on() {
  local host=$1
  shift
  ip netns exec "$host-$$" "$heddle" "$@" &
  started+=($!)
}
run_on server serve "$work/fleet.json" --port 8000 --grpc-port 0 --worker-host 10.78.0.1 --worker-port 9000 \
  --quiet --json >"$work/serves"
run_on front worker --quiet --name front --host 10.78.0.2 --connect 10.78.0.1:9000 --devices front=2
run_on back1 worker --quiet --name back1 --host 10.78.0.3 --connect 10.78.0.1:9000 --devices back=1
run_on back2 worker --quiet --name back2 --host 10.78.0.4 --connect 10.78.0.1:9000 --devices back=1
for _ in $(seq 200); do
  [ -s "$work/serves" ] && break
  sleep .1
done
grep -q '"port"' "$work/serves" || {
  echo "try_partition: the fleet does not serve: $(cat "$work/serves")" >&2
  exit 1
}
ip netns exec "server-$$" "$heddle" load http://127.0.0.1:8000 --rate 30 --duration 40 --json --quiet \
  >"$work/load.json" &
load=$!

# until_state WORKER gone|there SINCE  The seconds from SINCE until its state is (not) "connected" with a device.
until_state() {
  ip netns exec "server-$$" python3 - "$@" <<'PY'
import json, sys, time, urllib.request
name, wanted, begun = sys.argv[1], sys.argv[2] == "there", float(sys.argv[3])
while time.time() < begun + 60:
    status = json.load(urllib.request.urlopen("http://127.0.0.1:8000/v2/status"))
    worker = next(w for w in status["workers"] if w["name"] == name)
    if (worker["state"] == "connected" and worker["virtual_devices"] > 0) == wanted:
        print(f"{time.time() - begun:.2f} s")
        sys.exit(0)
    time.sleep(.02)
sys.exit(f"after 60 s the worker's state is {worker['state']}: {worker['reason']}")
PY
}
for cut in 3 12; do
  sleep 2
  begun=$(date +%s.%N)
  ip -n "$switch" link set back1 nomaster
  took=$(until_state back1 gone "$begun")
  echo "back1 is cut off; known after $took"
  sleep "$cut"
  begun=$(date +%s.%N)
  ip -n "$switch" link set back1 master br0
  took=$(until_state back1 there "$begun")
  echo "healed $cut s later; back after $took"
done
wait "$load"
python3 - "$work/load.json" <<'PY'
import json, sys
load = json.load(open(sys.argv[1]))
load = load[0] if isinstance(load, list) else load
print(json.dumps({k: v for k, v in load.items() if k in ("statuses", "errors", "mismatched", "requests")}))
print(json.dumps(load["latency"]))
sys.exit(load["mismatched"] > 0 or load["latency"]["max_us"] > 2e6)
PY
