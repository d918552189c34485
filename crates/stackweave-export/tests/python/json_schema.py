"""`json_schema.py SCHEMA FILE` validates a JSON file with a schema."""

import json
import sys
from pathlib import Path

import jsonschema

schema, instance = (json.loads(Path(path).read_text(encoding="utf-8")) for path in sys.argv[1:])
jsonschema.validate(instance, schema)
