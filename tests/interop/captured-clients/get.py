# Asks for each address by requests, and prints the answers.
import sys

import requests

for address in sys.argv[1:]:
    print(requests.get(address).text, end="")
