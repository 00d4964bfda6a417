# What the scripts in products/ share on a GPU. One of them follows this text, then `run(kernel)`. Prints `id<TAB>outcome<TAB>detail`.
import sys


class SkipCheck(Exception):
    pass


def need(condition, text):
    if not condition:
        raise AssertionError(text)


def run(kernel):
    for name in sys.argv[1:]:
        try:
            outcome, detail = "passed", kernel()
        except SkipCheck as skip:
            outcome, detail = f"skipped:{skip.args[0]}", skip.args[1]
        except Exception as error:  # noqa: BLE001: whatever the product raises is the finding
            outcome, detail = "failed", f"{type(error).__name__}: {error}"
        print(f"{name}\t{outcome}\t{' '.join(detail.split())}", flush=True)


