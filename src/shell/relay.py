# Joins its own input and output to a port of its container, until the port closes.
import os
import socket
import sys
import threading

port = socket.create_connection(("127.0.0.1", int(sys.argv[1])))


def send():
    while part := os.read(0, 65536):
        port.sendall(part)
    port.shutdown(socket.SHUT_WR)


threading.Thread(target=send, daemon=True).start()
while part := port.recv(65536):
    sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
