#!/usr/bin/env python3
"""Ends with 0 if the package index that pip asks by default answers, else says why not and ends with 1."""

import os
import sys
import urllib.error
import urllib.request


def address():
    for name in ("ENVFORGE_INDEX", "PIP_INDEX_URL"):
        if os.environ.get(name):
            return os.environ[name]
    try:
        from pip._internal.models.index import PyPI
    except ImportError:
        sys.exit("no package index is known: set ENVFORGE_INDEX")
    return PyPI.simple_url


try:
    urllib.request.urlopen(f"{address().rstrip('/')}/torch/", timeout=20).read(1)
except (OSError, ValueError) as error:
    sys.exit(f"the package index is out of reach: {type(error).__name__}")
