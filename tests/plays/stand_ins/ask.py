"""What a host's interpreter starts in a play: it has `forking_server.py` run the module, and ends as that does.

Started with `-IS` and of built-in modules alone, as its start is what is to be saved.
"""

import _socket
import marshal
import posix
import sys

PYTHON, *ARGUMENTS = sys.argv[1:]


def main():
    server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        server.connect(posix.environ[b"STAND_IN_MODULES"])
    except OSError:
        # A task that runs on when its playbook has ended.
        posix.execv(PYTHON, [PYTHON, *ARGUMENTS])
    umask = posix.umask(0o22)
    request = marshal.dumps((ARGUMENTS, posix.environ, posix.getcwd(), umask))
    descriptors = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    server.sendmsg([len(request).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
    server.sendall(request)
    posix._exit((server.recv(1) or b"\1")[0])


main()
