#!/bin/sh
# Four processes on two hosts, all to all, on one machine: two network namespaces joined by a veth pair. Needs root,
# mxwire library build, and a C compiler.
#
#   sudo sh examples/mx_alltoall.sh [BYTES]
set -eu
MXWIRE=${MXWIRE:-mxwire}
folder=$(mktemp -d)
one=mx-alltoall-$$-a
other=mx-alltoall-$$-b
# The others, too, if one fails.
trap 'kill ${started:-} 2>/dev/null || :; ip netns del $one 2>/dev/null; ip netns del $other 2>/dev/null; rm -r "$folder"' EXIT

PKG_CONFIG_PATH=$($MXWIRE library path --packages)
export PKG_CONFIG_PATH
cc $(pkg-config --cflags --libs mxwire-mx) "$(dirname "$0")/mx_alltoall.c" -o "$folder/alltoall"
ip netns add $one
ip netns add $other
ip link add veth0 netns $one mtu 9000 type veth peer name veth1 netns $other mtu 9000
ip -n $one link set veth0 up
ip -n $other link set veth1 up

hosts=alpha:0,alpha:0,beta:0,beta:0
start() {
    ip netns exec "$1" $MXWIRE run -i "$2" --name "$3" -- "$folder/alltoall" "$4" $hosts ${bytes:-} &
    started="${started:-} $!"
}
bytes=${1:-}
start $one veth0 alpha 0
start $one veth0 alpha 1
start $other veth1 beta 2
start $other veth1 beta 3
for each in $started; do
    wait "$each"
done
