"""Reads a picture as XML and prints the texts of its titles and the names of its elements."""

import json
import sys
import xml.etree.ElementTree as ElementTree

root = ElementTree.parse(sys.argv[1]).getroot()
names = [element.tag.rpartition("}")[2] for element in root.iter()]
titles = [element.text for element in root.iter() if element.tag.endswith("}title")]
print(json.dumps({"elements": sorted(set(names)), "scripts": names.count("script"), "titles": titles}))
