"""Says which of the given requirements the locked packages of this image do not meet; exit code 1 if any."""
import sys
from importlib.metadata import PackageNotFoundError, version

from pip._vendor.packaging.requirements import InvalidRequirement, Requirement


def unmet(text):
    try:
        requirement = Requirement(text)
        found = version(requirement.name)
    except (InvalidRequirement, PackageNotFoundError):
        return None  # an option, a path, or nothing of ours
    if requirement.specifier.contains(found, prereleases=True):
        return None
    return f"{requirement} was asked for, but this image holds {requirement.name} {found}"


problems = [problem for problem in map(unmet, sys.argv[1:]) if problem]
for problem in problems:
    print(problem, file=sys.stderr)
sys.exit(1 if problems else 0)
