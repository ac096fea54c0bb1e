# Prints what python-dotenv makes of each file named, as a JSON list.
import json
import sys

from dotenv import dotenv_values

json.dump([dotenv_values(path) for path in sys.argv[1:]], sys.stdout)
