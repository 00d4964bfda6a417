# cuML (packages cuml-cu12 and cuml-cu13). Its import wants a driver: without a GPU its library is loaded instead.


def facts():
    import libcuml

    say("version", version("cuml-cu13", "cuml-cu12"))

    def cuda():
        if not libcuml.load_library():
            raise RuntimeError("libcuml++.so is not in its package")
        return runtime()

    attempt("cuda", cuda)


def kernel():
    import numpy as np
    from cuml.linear_model import LinearRegression

    # y = 3a - 2b + 5 without noise: the fit has one answer.
    points = [[float(at % 17), float(at * at % 23)] for at in range(400)]
    answers = [3.0 * a - 2.0 * b + 5.0 for a, b in points]
    model = LinearRegression().fit(np.array(points, dtype="float64"), np.array(answers, dtype="float64"))
    found = [float(number) for number in np.asarray(model.coef_).ravel().tolist()] + [float(model.intercept_)]
    error = max(abs(a - b) for a, b in zip(found, [3.0, -2.0, 5.0]))
    need(error < 1e-5, f"the fitted line is wrong by {error:.1e}")
    return f"a linear regression of {len(points)} points, within {error:.1e}"
