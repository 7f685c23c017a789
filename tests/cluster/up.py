"""Keep a test Kubernetes for development until ctrl-C: `make cluster-up`.

Our custom resources are installed, and fake nodes with GPUs take pods that run in name only. Run the operator
beside it with `hexflow operator`.
"""

import argparse
import signal
import sys

from support.apiserver import ApiServer
from support.binaries import BinariesMissing, binaries
from support.controllers import ControlPlane
from support.definitions import define
from support.runfolder import RunFolder


def main() -> None:
    """Start it, say how to use it, and wait."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=2, help="fake nodes (default: 2)")
    parser.add_argument("--gpus", type=int, default=8, help="GPUs of each (default: 8)")
    wishes = parser.parse_args()
    try:
        folder_of_binaries = binaries("b")
    except BinariesMissing as missing:
        sys.exit(str(missing))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with RunFolder() as folder:
        server = ApiServer(binaries=folder_of_binaries, folder=folder)
        define(server.api)
        controllers = ControlPlane(server)
        try:
            for _ in range(wishes.nodes):
                controllers.kubelet.add_node(gpus=wishes.gpus)
            print(  # noqa: T201
                f"export KUBECONFIG={server.admin_kubeconfig}",
                f"export PATH={folder_of_binaries}:$PATH",
                f"# logs and the audit log are in {folder.path}; ctrl-C ends it and removes all",
                sep="\n",
                flush=True,
            )
            signal.pause()
        except KeyboardInterrupt:
            pass
        finally:
            controllers.close()
            server.close()


if __name__ == "__main__":
    main()
