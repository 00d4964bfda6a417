"""Adds the project of this container behind everything that its Python has."""
import os
import site
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_path, _this = list(sys.path), sys.modules["sitecustomize"]
# The sitecustomize that stood here otherwise, found without the project.
sys.path[:] = [path for path in _path if path != _here]
del sys.modules["sitecustomize"]
try:
    import sitecustomize  # noqa: F401
except ImportError as error:
    if error.name != "sitecustomize":
        raise
finally:
    sys.modules.setdefault("sitecustomize", _this)
    sys.path[:] = [path for path in _path if path not in sys.path] + sys.path
site.addsitedir(os.path.join(_here, "site"))
