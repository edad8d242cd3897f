#!/usr/bin/env bash
# try_two_hosts.sh [HEDDLE] [RATE] [DELAY] [HOSTS]  Network namespaces as hosts (two, or HOSTS up to 9) on one switch,
# each joined to it by a link of RATE (default 200mbit) and, where the kernel has netem, DELAY each way (default 1ms):
# measures the links with `heddle devices`, plans random networks on them, runs these with emulated devices whose
# tensors really cross the links, and prints prediction and measurement. NETS="er-6-2-4-1 ..." are the networks: family,
# nodes, modules, channels, seed. Exit status 0: all within 10 %; 1: not; 77: cannot be tried here (no root, ip, tc or
# mpirun).
set -euo pipefail
heddle=$(realpath "${1:-build/heddle}")
rate=${2:-200mbit}
delay=${3:-1ms}
hosts=${4:-2}
nets=${NETS:-er-6-2-4-1 ws-6-2-4-1}

skip() {
  echo "try_two_hosts: $*; skipped" >&2
  exit 77
}
[ "$(id -u)" = 0 ] || skip "needs root"
for program in ip tc mpirun nsenter python3; do
  command -v "$program" >/dev/null || skip "no $program"
done
case $hosts in [2-9]) ;; *) echo "try_two_hosts: HOSTS is 2 to 9, not '$hosts'" >&2; exit 2 ;; esac

work=$(mktemp -d)
switch=heddle-s-$$
host() { echo "heddle-$1-$$"; }
clean() {
  for i in $(seq "$hosts"); do ip netns del "$(host "$i")" 2>/dev/null || true; done
  ip netns del "$switch" 2>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT
shaped=""
shape() {
  if tc -n "$1" qdisc add dev "$2" root netem delay "$delay" rate "$rate" limit 100000 2>/dev/null; then
    shaped="$rate, $delay each way (netem)"
  else
    tc -n "$1" qdisc add dev "$2" root tbf rate "$rate" burst 64kb latency 400ms || skip "tc shapes nothing"
    shaped="$rate, no delay (no netem here)"
  fi
}
ip netns add "$switch" 2>/dev/null || skip "no network namespaces"
ip -n "$switch" link add bridge type bridge 2>/dev/null || [ "$hosts" = 2 ] || skip "no bridge"
[ "$hosts" = 2 ] || ip -n "$switch" link set bridge up
for i in $(seq "$hosts"); do
  ip netns add "$(host "$i")" || skip "no network namespaces"
  ip -n "$(host "$i")" link set lo up
done
if [ "$hosts" = 2 ]; then
  ip link add eth netns "$(host 1)" type veth peer name eth netns "$(host 2)" || skip "no veth"
fi
for i in $(seq "$hosts"); do
  if [ "$hosts" != 2 ]; then
    ip link add eth netns "$(host "$i")" type veth peer name "port$i" netns "$switch" || skip "no veth"
    ip -n "$switch" link set "port$i" master bridge up
    shape "$switch" "port$i"  # to the host
  fi
  ip -n "$(host "$i")" addr add "10.77.0.$i/24" dev eth
  ip -n "$(host "$i")" link set eth up
  shape "$(host "$i")" eth  # from the host
done
echo "$hosts hosts: $shaped"

# PMIx usually listens on the loopback device, which the other namespaces do not share.
export PMIX_MCA_ptl_base_remote_connections=1 PMIX_MCA_ptl_base_if_include=10.77.0.0/24
export HEDDLE_PROFILE_STORE=$work/store.sqlite
on_all() {
  local ranks=()
  for i in $(seq "$hosts"); do ranks+=(: -n 1 nsenter "--net=/run/netns/$(host "$i")" "$heddle" "$@"); done
  ip netns exec "$(host 1)" mpirun --allow-run-as-root --oversubscribe --bind-to none --mca btl tcp,self \
    --mca btl_tcp_if_include 10.77.0.0/24 "${ranks[@]:1}"
}
on_all devices -o "$work/measured.yaml"
sed 's/backend: openvino/backend: emulated/' "$work/measured.yaml" >"$work/hosts.yaml"
devices=$("$heddle" devices --cluster "$work/hosts.yaml" --json | python3 -c '
import json, sys
first = {}
for device in json.load(sys.stdin)["devices"]:
    first.setdefault(device["host"], device["name"])
print(",".join(first.values()))')
worst=0
for net in $nets; do
  IFS=- read -r family nodes modules channels seed <<<"$net"
  "$heddle" generate "$family" --nodes "$nodes" --modules "$modules" --channels "$channels" --seed "$seed" \
    --devices-like "$work/hosts.yaml" -o "$work/net.json" >/dev/null
  "$heddle" plan "$work/net.json" --cluster "$work/hosts.yaml" --devices "$devices" --planner round-robin \
    -o "$work/plan.json" >/dev/null
  on_all run "$work/plan.json" --quiet --real-transfers --repeat 7 --warmup 1 --json >"$work/run.json"
  python3 - "$work/run.json" "$family" "$net" <<'PY' || worst=1
import json, sys
run = json.load(open(sys.argv[1]))
sent = [s for s in run["steps"] if s["step"].startswith("send")]
print(f"{sys.argv[2]}: {len(run['steps'])} steps, {len(sent)} transfers: "
      f"predicted {run['predicted_us'] / 1000:.2f} ms, "
      f"measured {run['measured_us'] / 1000:.2f} ms, error {100 * run['error']:+.1f} % ({sys.argv[3]})")
sys.exit(abs(run["error"]) > 0.1)
PY
done
exit $worst
