"""Asks for answers without a body, and for one with, over one kept-alive connection with httpx.

Usage: kept_alive.py http://HOST:PORT. Prints a line for each answer: status, Content-Length or "-", body, client port.
"""

import sys

import httpx

with httpx.Client(base_url=sys.argv[1], limits=httpx.Limits(max_connections=1)) as client:
    for path in ["/204", "/some", "/304", "/304-of-7", "/204", "/some"]:
        answer = client.get(path)
        port = answer.extensions["network_stream"].get_extra_info("client_addr")[1]
        print(answer.status_code, answer.headers.get("content-length", "-"), answer.text or "-", port)
