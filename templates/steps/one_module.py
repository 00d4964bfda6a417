"""How both builders compile a module: the same source, path and Python give the same bytes, whatever the process did before.

byte_code.py and compile.py begin with this file.

A set of constants (`x in {"a", "b"}`) that two functions of a module use is one object, unless its words were known to the
process before: the interpreter then makes each function a set of its own. Which of both shows in the references of the
stream, so equal sets are made one object again.

Up to Python 3.10 far more shows: the order of a set follows the hash seed, and references follow what else is in memory. A
seed of 0, which the caller sets, and a stream without references (marshal version 2) make these bytes the same each time.
"""
import marshal
import os
import sys
from importlib._bootstrap_external import _code_to_hash_pyc
from importlib.machinery import SourceFileLoader
from importlib.util import source_hash
from types import CodeType

HAS_STEADY_REFERENCES = sys.version_info >= (3, 11)
# Bytes before the code object.
HEADER = 16
# What a source raises that cannot be compiled: templates and modules for other versions, which fail at import too.
NOT_COMPILED = (SyntaxError, ValueError, UnicodeDecodeError, RecursionError, MemoryError)


def sets_of(code):
    """Each set of constants of a code object and those within, equal ones as often as they are used."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from sets_of(constant)
        elif isinstance(constant, frozenset):
            yield marshal.dumps(constant, 2), constant


def with_sets(code, sets):
    """The code object with these sets in place of equal ones."""

    def replaced(constant):
        if isinstance(constant, CodeType):
            return with_sets(constant, sets)
        return sets[marshal.dumps(constant, 2)] if isinstance(constant, frozenset) else constant

    return code.replace(co_consts=tuple(replaced(constant) for constant in code.co_consts))


def with_shared_sets(code):
    all_sets = list(sets_of(code))
    sets = dict(all_sets)
    return code if len(sets) == len(all_sets) else with_sets(code, sets)


def compiled(path, content):
    """Byte code that is never checked against its source (PEP 552, unchecked hash), as py_compile writes it."""
    name = os.fsdecode(path)
    code = SourceFileLoader("<py_compile>", name).source_to_code(content, name)
    if HAS_STEADY_REFERENCES:
        code = with_shared_sets(code)
    whole = bytes(_code_to_hash_pyc(code, source_hash(content), False))
    return whole if HAS_STEADY_REFERENCES else whole[:HEADER] + marshal.dumps(marshal.loads(whole[HEADER:]), 2)
