# What vLLM must do on a GPU: generate with a small model that is made here, whose next token is known. Run by the agent.
import importlib.util
import inspect
import json
import os
import sys
import tempfile

VOCABULARY, HIDDEN, LAYERS, INNER = 256, 256, 2, 512
# The next token after each: so many further.
STEP = 7
LENGTH = 16


def need(condition, text):
    if not condition:
        raise AssertionError(text)


class SkipCheck(Exception):
    pass


def write_model(folder):
    # A Llama whose embedding of token t is the t-th unit vector and whose head maps the t-th unit vector to token t + STEP.
    # Attention and the inner layers run with small weights, which cannot change the largest of the outputs.
    import torch
    from safetensors.torch import save_file

    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": HIDDEN,
        "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 4,
        "max_position_embeddings": 512, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "hidden_act": "silu", "bos_token_id": 0,
        "eos_token_id": 0, "tie_word_embeddings": False, "torch_dtype": "float16",
    }
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    seed = torch.Generator().manual_seed(3)
    small = lambda *shape: (torch.rand(shape, generator=seed) - 0.5) * 0.02
    weights = {"model.embed_tokens.weight": torch.eye(VOCABULARY, HIDDEN), "model.norm.weight": torch.ones(HIDDEN)}
    weights["lm_head.weight"] = torch.eye(VOCABULARY, HIDDEN).roll(STEP, 0)
    for layer in range(LAYERS):
        name = f"model.layers.{layer}."
        for part in ("q", "k", "v", "o"):
            weights[f"{name}self_attn.{part}_proj.weight"] = small(HIDDEN, HIDDEN)
        weights[name + "mlp.gate_proj.weight"] = small(INNER, HIDDEN)
        weights[name + "mlp.up_proj.weight"] = small(INNER, HIDDEN)
        weights[name + "mlp.down_proj.weight"] = small(HIDDEN, INNER)
        for part in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{name}{part}.weight"] = torch.ones(HIDDEN)
    weights = {name: value.to(torch.float16).contiguous() for name, value in weights.items()}
    save_file(weights, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})


def known(prompt):
    return [(prompt[-1] + STEP * (at + 1)) % VOCABULARY for at in range(LENGTH)]


def generated(llm, prompts, options):
    # The way to give tokens changed with 0.4.
    try:
        from vllm import TokensPrompt
    except ImportError:
        return llm.generate(prompt_token_ids=prompts, sampling_params=options)
    return llm.generate([TokensPrompt(prompt_token_ids=prompt) for prompt in prompts], sampling_params=options)


def generate():
    for module in ("vllm", "safetensors"):
        if importlib.util.find_spec(module) is None:
            raise SkipCheck("not-in-image", f"{module} is not in the image")
    # Nothing is looked up: the model is here.
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", VLLM_NO_USAGE_STATS="1", VLLM_LOGGING_LEVEL="ERROR")
    from vllm import LLM, EngineArgs, SamplingParams, __version__

    if "skip_tokenizer_init" not in getattr(EngineArgs, "__dataclass_fields__", {}):
        raise SkipCheck("not-offered", f"vLLM {__version__} generates only with a tokenizer, and the model of this check has none")
    with tempfile.TemporaryDirectory() as folder:
        write_model(folder)
        llm = LLM(
            model=folder, skip_tokenizer_init=True, enforce_eager=True, dtype="float16", max_model_len=128, gpu_memory_utilization=0.3
        )
        prompts = [[5], [200, 3, 90], list(range(40))]
        # The first releases that need no tokenizer have no such option.
        more = {"detokenize": False} if "detokenize" in inspect.signature(SamplingParams).parameters else {}
        options = SamplingParams(temperature=0.0, max_tokens=LENGTH, ignore_eos=True, **more)
        answers = generated(llm, prompts, options)
    need(len(answers) == len(prompts), f"{len(answers)} answers to {len(prompts)} prompts")
    for prompt, answer in zip(prompts, answers):
        found = list(answer.outputs[0].token_ids)
        need(found == known(prompt), f"after {prompt[-1]}: {found} instead of {known(prompt)}")
    return f"{len(prompts)} prompts together, {LENGTH} tokens each as known, vLLM {__version__}"


def main():
    # The output of vLLM there is not a report.
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    checks = {"framework-generate": generate}
    for name in sys.argv[1:]:
        try:
            outcome, detail = "passed", checks[name]()
        except SkipCheck as skip:
            outcome, detail = f"skipped:{skip.args[0]}", skip.args[1]
        except Exception as error:  # noqa: BLE001: whatever vLLM raises is the finding
            outcome, detail = "failed", f"{type(error).__name__}: {error}"
        print(f"{name}\t{outcome}\t{' '.join(detail.split())}", file=report, flush=True)


if __name__ == "__main__":
    main()
