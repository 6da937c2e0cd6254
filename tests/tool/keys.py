#!/usr/bin/python3
"""keys.py MANUAL COMMAND JSON... - compares the JSON keys that the manual has of a command with those in the files.

A key is known by its name and that of the object which it is in. In the manual they are the items of the lists
after a line with "JSON is", and what is in an object stands in a list within its item.
"""
import json
import sys


def documented(lines, command):
    keys, parents, last = set(), [], []
    section = wanted = False
    for line in lines:
        words = line.split()
        if words[:1] in ([".Ss"], [".Sh"]):
            section = words == [".Ss", command]
        if not section:
            continue
        wanted = wanted or "JSON is" in line
        if wanted and words[:1] == [".Bl"]:
            parents.append(last or [None])
        elif parents and words[:1] == [".El"]:
            parents.pop()
            wanted = bool(parents)
            last = []
        elif parents and words[:2] == [".It", "Cm"]:
            last = [word for word in words[2:] if word != ","]
            keys |= {(parent, key) for parent in parents[-1] for key in last}
    return keys


def printed(value, parent=None):
    if isinstance(value, list):
        return set().union(*(printed(one, parent) for one in value))
    if not isinstance(value, dict):
        return set()
    return {(parent, key) for key in value}.union(*(printed(one, key) for key, one in value.items()))


def main():
    manual, command, *paths = sys.argv[1:]
    with open(manual, encoding="utf-8") as file:
        said = documented(file, command)
    found = set()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            found |= printed(json.load(file))
    for key in said - found:
        print("documented, and not printed:", key)
    for key in found - said:
        print("printed, and not documented:", key)
    sys.exit(not said or said != found)


main()
