#!/bin/sh
# Entry point of an implementation, here mxwire itself, for mxwire interop --with; also that of a container.
#
#   sudo mxwire interop --with mine=examples/interop/run_endpoint.sh
#
# The environment names ROLE, INTERFACE, TESTCASE and more: see docs/interop-with.md.

# Cases that this implementation does not support.
case "$TESTCASE" in
given-up) exit 127 ;;
esac

set -- -i "$INTERFACE" --name "$NAME" --dialect "$DIALECT"
case "$ROLE" in
echo) exec mxwire serve --echo "$@" --endpoint "$ENDPOINT" --key "$KEY" ;;
sink | nothing) exec mxwire serve --sink "$@" --endpoint "$ENDPOINT" --key "$KEY" ;;
perf) exec mxwire perf -s -B "$@" -e "$ENDPOINT" ;;
*) exit 127 ;;
esac
