#!/bin/sh
# What becomes of a service that opens a connection for every request, on a network.
#
#   chapters/4-client-per-request/time-wait.sh [VARIANT [ROUNDS]]     (default: hyper-per-request 15)
#
# Linux only, no privileges needed. On loopback Linux uses a port in TIME_WAIT again after a second,
# between machines it does not. So this runs in a network of its own, in which that is turned off;
# your system's settings are not touched. Each round is five seconds of fifty users.
set -eu
variant=${1:-hyper-per-request}
rounds=${2:-15}

if [ "${IN_OWN_NETWORK:-}" != yes ]; then
    cargo build --quiet -p chapter4 -p workshop
    IN_OWN_NETWORK=yes exec unshare --user --map-root-user --net "$0" "$variant" "$rounds"
fi

ip link set lo up
echo 0 >/proc/sys/net/ipv4/tcp_tw_reuse
target/debug/chapter4 "$variant" --port 8080 --admin-port 6060 &
trap 'kill $!' EXIT
sleep 1
for round in $(seq "$rounds"); do
    echo "round $round:"
    # Failed requests are what this is about: they must not end the script.
    target/debug/cargo-workshop load 4 --host http://127.0.0.1:8080 --users 50 --think 0 --seconds 5 || true
    curl -s http://127.0.0.1:6060/metrics | grep '^upstream_ports_in_time_wait' || true
    curl -s -o /dev/null -w 'one more request: status %{http_code}\n' http://127.0.0.1:8080/io
done
