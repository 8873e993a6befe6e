"""Looks names up as any program in Python does, and prints what each of them is."""
import socket
import sys

for name in sys.argv[1:]:
    try:
        addresses = [found[4][0] for found in socket.getaddrinfo(name, 80, proto=socket.IPPROTO_TCP)]
    except socket.gaierror as error:
        addresses = ["none" if error.errno == socket.EAI_NONAME else str(error)]
    print(name, ",".join(addresses))
