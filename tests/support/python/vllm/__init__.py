# A vLLM without a GPU: it reads what vllm_gpu.py wrote and gives the tokens that such a model gives. FAKE_VLLM=0.4 has the older
# way to give tokens, 0.3 needs a tokenizer. FAKE_WRONG=generate: the last token of the last prompt is another.
import json
import os
from types import SimpleNamespace

__version__ = os.environ.get("FAKE_VLLM", "0.11")
WRONG = os.environ.get("FAKE_WRONG") == "generate"


class EngineArgs:
    __dataclass_fields__ = {} if __version__ == "0.3" else {"skip_tokenizer_init": bool}


if __version__ == "0.4":
    def SamplingParams(temperature, max_tokens, ignore_eos):
        assert temperature == 0 and ignore_eos
        return max_tokens
else:
    def SamplingParams(temperature, max_tokens, ignore_eos, detokenize):
        assert temperature == 0 and ignore_eos and not detokenize
        return max_tokens


class LLM:
    def __init__(self, model, skip_tokenizer_init, **options):
        with open(os.path.join(model, "config.json")) as file:
            self.config = json.load(file)
        with open(os.path.join(model, "model.safetensors")) as file:
            weights = json.load(file)
        assert os.environ["HF_HUB_OFFLINE"] == "1" and skip_tokenizer_init
        # The head maps a unit vector so many further.
        self.step = weights["lm_head.weight"]["rolled"]
        layers = self.config["num_hidden_layers"]
        assert len(weights) == 3 + 9 * layers and weights["model.embed_tokens.weight"]["rolled"] == 0, sorted(weights)

    def generate(self, prompts=None, sampling_params=None, prompt_token_ids=None):
        prompts = prompt_token_ids or [prompt["prompt_token_ids"] for prompt in prompts]
        size, answers = self.config["vocab_size"], []
        for prompt in prompts:
            tokens = [(prompt[-1] + self.step * (at + 1)) % size for at in range(sampling_params)]
            answers.append(SimpleNamespace(outputs=[SimpleNamespace(token_ids=tokens)]))
        tokens[-1] += WRONG
        print("what vLLM prints", flush=True)
        return answers


if __version__ not in ("0.3", "0.4"):
    def TokensPrompt(prompt_token_ids):
        return {"prompt_token_ids": prompt_token_ids}
