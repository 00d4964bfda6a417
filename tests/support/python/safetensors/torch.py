# Writes what vllm_gpu.py gives: of each weight its shape and how far its rows were moved.
import json


def save_file(weights, path, metadata):
    with open(path, "w") as file:
        json.dump({name: {"shape": value.shape, "rolled": value.rolled} for name, value in weights.items()}, file)
