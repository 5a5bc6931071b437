"""An implementation for mxwire interop --with: a host of mxwire that echoes messages, or only receives them.

sudo mxwire interop --with mine="python examples/interop/echo.py" --case connecting --case sizes --html site
"""

import os
import sys

from mxwire.host import Host, HostError

UNSUPPORTED = 127


def serve(endpoint, echo: bool) -> None:
    """Receive every message, and return it to its sender."""
    partners = {}
    while True:
        try:
            message = endpoint.receive()
        except HostError as error:
            print(error)  # the sender has died, for example
            continue
        sender = message.partner
        if not echo:
            continue
        if partners.get(sender) != sender.epoch:
            # Connect back before the first answer; a restarted sender needs another connect.
            endpoint.connect(sender.peer.address, sender.number)
            partners[sender] = sender.epoch
        endpoint.send(sender, bytes(message), message.match_info)


def main() -> int:
    """Play the role that the environment names, until Ctrl-C."""
    variables = os.environ
    if variables["ROLE"] == "perf":
        return UNSUPPORTED
    with Host.open(variables["INTERFACE"], name=variables["NAME"], dialect=variables["DIALECT"]) as host:
        endpoint = host.open_endpoint(int(variables["ENDPOINT"]), int(variables["KEY"], 0))
        print("ready", flush=True)
        serve(endpoint, echo=variables["ROLE"] == "echo")
    return 0


if __name__ == "__main__":
    sys.exit(main())
