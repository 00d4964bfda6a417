# cuDF (packages cudf-cu12 and cudf-cu13). Its import wants a driver: without a GPU its library is loaded instead.


def facts():
    import libcudf

    say("version", version("cudf-cu13", "cudf-cu12"))

    def cuda():
        if not libcudf.load_library():
            raise RuntimeError("libcudf.so is not in its package")
        return runtime()

    attempt("cuda", cuda)


def kernel():
    import cudf

    count = 1000
    keys = [at % 7 for at in range(count)]
    values = [at * 13 % 101 - 50 for at in range(count)]
    sums = cudf.DataFrame({"key": keys, "value": values}).groupby("key").sum().sort_index()
    found = sums["value"].to_arrow().to_pylist()
    right = [sum(value for key, value in zip(keys, values) if key == group) for group in range(7)]
    need(found == right, "sums of the groups are wrong")
    return f"groupby of {count} rows into {len(right)} sums, exact"
