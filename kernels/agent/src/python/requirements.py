"""What `pip check` compares, where pip stops at a wheel whose tags it cannot read: a line for each requirement that is not met."""
from importlib.metadata import distributions

from pip._vendor.packaging.requirements import InvalidRequirement, Requirement
from pip._vendor.packaging.utils import canonicalize_name

installed = {canonicalize_name(one.metadata["Name"]): one for one in distributions()}
for name, one in sorted(installed.items()):
    for text in one.requires or ():
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            print(f"{name} {one.version} has a requirement that cannot be read: {text}")
            continue
        if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
            continue
        found = installed.get(canonicalize_name(wanted.name))
        if found is None:
            print(f"{name} {one.version} requires {wanted.name}, which is not installed.")
        elif not wanted.specifier.contains(found.version, prereleases=True):
            print(f"{name} {one.version} has requirement {wanted}, but you have {wanted.name} {found.version}.")
