#!/usr/bin/env bash
# try_two_hosts.sh [HEDDLE] [RATE] [DELAY]  Two network namespaces as two hosts, joined by a link of RATE (default
# 200mbit) and, where the kernel has netem, DELAY each way (default 1ms): measures the link with `heddle devices`, plans
# a random network on it, runs it with emulated devices whose tensors really cross the link, and prints prediction and
# measurement. Exit status 0: within 10 %; 1: not; 77: cannot be tried here (no root, ip, tc or mpirun).
set -euo pipefail
heddle=$(realpath "${1:-build/heddle}")
rate=${2:-200mbit}
delay=${3:-1ms}

skip() {
  echo "try_two_hosts: $*; skipped" >&2
  exit 77
}
[ "$(id -u)" = 0 ] || skip "needs root"
for program in ip tc mpirun nsenter python3; do
  command -v "$program" >/dev/null || skip "no $program"
done

work=$(mktemp -d)
a=heddle-a-$$ b=heddle-b-$$
clean() {
  ip netns del "$a" 2>/dev/null || true
  ip netns del "$b" 2>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT
for host in "$a" "$b"; do
  ip netns add "$host" 2>/dev/null || skip "no network namespaces"
  ip -n "$host" link set lo up
done
ip link add hva netns "$a" type veth peer name hvb netns "$b" || skip "no veth"
ip -n "$a" addr add 10.77.0.1/24 dev hva
ip -n "$b" addr add 10.77.0.2/24 dev hvb
ip -n "$a" link set hva up
ip -n "$b" link set hvb up
shaped=""
shape() {
  if tc -n "$1" qdisc add dev "$2" root netem delay "$delay" rate "$rate" limit 100000 2>/dev/null; then
    shaped="$rate, $delay each way (netem)"
  else
    tc -n "$1" qdisc add dev "$2" root tbf rate "$rate" burst 64kb latency 400ms || skip "tc shapes nothing"
    shaped="$rate, no delay (no netem here)"
  fi
}
shape "$a" hva
shape "$b" hvb
echo "link: $shaped"

# PMIx usually listens on the loopback device, which the other namespace does not share.
export PMIX_MCA_ptl_base_remote_connections=1 PMIX_MCA_ptl_base_if_include=10.77.0.0/24
export HEDDLE_PROFILE_STORE=$work/store.sqlite
on_both() {
  ip netns exec "$a" mpirun --allow-run-as-root --oversubscribe --bind-to none --mca btl tcp,self \
    --mca btl_tcp_if_include 10.77.0.0/24 -n 1 "$heddle" "$@" : -n 1 nsenter --net="/run/netns/$b" "$heddle" "$@"
}
on_both devices -o "$work/measured.yaml"
sed 's/backend: openvino/backend: emulated/' "$work/measured.yaml" >"$work/hosts.yaml"
devices=$("$heddle" devices --cluster "$work/hosts.yaml" --json | python3 -c '
import json, sys
first = {}
for device in json.load(sys.stdin)["devices"]:
    first.setdefault(device["host"], device["name"])
print(",".join(first.values()))')
worst=0
for family in er ws; do
  "$heddle" generate $family --nodes 6 --modules 2 --channels 4 --devices-like "$work/hosts.yaml" \
    -o "$work/net.json" >/dev/null
  "$heddle" plan "$work/net.json" --cluster "$work/hosts.yaml" --devices "$devices" --planner round-robin \
    -o "$work/plan.json" >/dev/null
  on_both run "$work/plan.json" --quiet --real-transfers --repeat 7 --warmup 1 --json >"$work/run.json"
  python3 - "$work/run.json" "$family" <<'PY' || worst=1
import json, sys
run = json.load(open(sys.argv[1]))
sent = [s for s in run["steps"] if s["step"].startswith("send")]
print(f"{sys.argv[2]}: {len(run['steps'])} steps, {len(sent)} transfers: "
      f"predicted {run['predicted_us'] / 1000:.2f} ms, "
      f"measured {run['measured_us'] / 1000:.2f} ms, error {100 * run['error']:+.1f} %")
sys.exit(abs(run["error"]) > 0.1)
PY
done
exit $worst
