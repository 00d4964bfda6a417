#!/usr/bin/env python3
"""Measures `evidence admit` beside cosign's verification of the same image, in one run, and has a second library verify what envforge wrote.

    cargo build --release && pip install cryptography securesystemslib && python3 tests/bench/evidence.py [--cosign COSIGN]

A registry on loopback, of a few lines, holds an image with one statement of 200 entries (50 GPU models, four driver branches) in both
forms, signed here, and 20 referrers of others: bundles of another key, and SBOMs. `admit` asks for one GPU and driver; cosign is asked
whether the key signed test results. Each is run in turns. Prints a Markdown table: seconds, peak memory, and what the registry sent.
With --saved FILE (of `envforge evidence IMAGE --save`) and --key PUB, securesystemslib verifies the envelopes of the file instead.
"""
import argparse
import base64
import datetime
import hashlib
import http.server
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

ROOT = pathlib.Path(__file__).resolve().parents[2]
KIND = "application/vnd.in-toto+json"
RESULT = "https://in-toto.io/attestation/test-result/v0.1"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
CHECKS = [f"check-{number:02}-of-the-suite" for number in range(60)]


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def b64(data):
    return base64.b64encode(data).decode()


def pae(payload):
    return b"DSSEv1 %d %s %d %s" % (len(KIND), KIND.encode(), len(payload), payload)


def envelope(payload, key, keyid=True):
    signature = {"sig": b64(key.sign(pae(payload), ec.ECDSA(hashes.SHA256())))}
    if keyid:
        signature["keyid"] = ""
    return {"payload": b64(payload), "payloadType": KIND, "signatures": [signature]}


def entry(model, branch, now):
    return {
        "gpu": "NVIDIA H200" if model == 7 else f"NVIDIA Model {model}", "capability": "9.0", "count": 8, "nccl": 8, "driver": f"{branch}.95.05", "level": "full",
        "outcome": "passed", "checked": now, "agent": "a" * 64, "lock": "b" * 64, "engine": "docker 28.0.0",
        "versions": {name: "12.9.1.4" for name in ("torch", "cuda", "cudnn", "nccl", "python", "cublas", "triton", "numpy", "glibc")},
        "passed": CHECKS, "skipped": {"fp8-old": "not-supported", "mig": "no-device"},
        "speeds": {name: {f"gpu{gpu}": "812.4" for gpu in range(8)} for name in ("gemm", "copy", "allreduce")},
    }


class Content:
    """What the registry holds."""

    def __init__(self, count):
        self.key, other = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        self.files, self.sent = {}, 0
        config = self.blob(b'{"architecture":"amd64","os":"linux"}')
        image = {"schemaVersion": 2, "mediaType": MANIFEST, "layers": [], "config": self.described(config, "application/vnd.oci.image.config.v1+json")}
        self.image = json.dumps(image).encode()
        self.name = digest(self.image)
        self.files[f"manifests/{self.name}"] = (MANIFEST, self.image)
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        entries = [entry(number // 4, 550 + 10 * (number % 4), now) for number in range(count)]
        own = self.statement(entries, now)
        envelope_bytes = json.dumps(envelope(own, self.key)).encode()
        layer = {**self.described(self.blob(envelope_bytes), "application/vnd.dsse.envelope.v1+json"),
                 "annotations": {"dev.cosignproject.cosign/signature": "", "predicateType": RESULT}}
        legacy = {"schemaVersion": 2, "mediaType": MANIFEST, "config": image["config"], "layers": [layer]}
        legacy = json.dumps(legacy).encode()
        self.files[f"manifests/{self.name.replace(':', '-')}.att"] = (MANIFEST, legacy)
        listed = [self.bundle(own, self.key, RESULT)]
        listed += [self.bundle(self.statement(entries[:1], now), other, RESULT) for _ in range(10)]
        listed += [self.bundle(json.dumps({"number": number}).encode(), other, "https://spdx.dev/Document") for number in range(10)]
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}
        self.files[f"referrers/{self.name}"] = (INDEX, json.dumps(index).encode())

    def blob(self, data):
        self.files[f"blobs/{digest(data)}"] = ("application/octet-stream", data)
        return data

    def described(self, data, kind):
        return {"mediaType": kind, "size": len(data), "digest": digest(data)}

    def statement(self, entries, now):
        extension = {"schema": 1, "issued": now, "number": 1, "run": "0" * 32, "matrix": "bench", "program": "0", "entries": entries}
        subject = [{"name": "bench", "digest": {"sha256": self.name.split(":")[1]}}]
        predicate = {"result": "PASSED", "configuration": [], "passedTests": CHECKS, "io.envforge.evidence": extension}
        return json.dumps({"_type": "https://in-toto.io/Statement/v0.1", "subject": subject, "predicateType": RESULT, "predicate": predicate}).encode()

    def bundle(self, payload, key, predicate):
        public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        blob = self.blob(json.dumps({
            "mediaType": BUNDLE, "verificationMaterial": {"publicKey": {"hint": b64(hashlib.sha256(public).digest())}},
            "dsseEnvelope": envelope(payload, key, keyid=False)}).encode())
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": BUNDLE, "layers": [self.described(blob, BUNDLE)],
            "config": self.described(self.blob(b"{}"), "application/vnd.oci.empty.v1+json"),
            "annotations": {"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": predicate},
            "subject": self.described(self.image, MANIFEST)}).encode()
        self.files[f"manifests/{digest(manifest)}"] = (MANIFEST, manifest)
        return {**self.described(manifest, MANIFEST), "artifactType": BUNDLE,
                "annotations": {"dev.sigstore.bundle.predicateType": predicate}}


def serve(content):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are two writes: with Nagle's algorithm each answer waits for an acknowledgement.
        disable_nagle_algorithm = True

        def do_GET(self):
            path = self.path.split("?")[0].removeprefix("/v2/bench/").replace("%3A", ":")
            kind, data = content.files.get(path, ("application/json", b"{}"))
            is_there = path in content.files or self.path == "/v2/"
            self.send_response(200 if is_there else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            if path.startswith("manifests/"):
                self.send_header("Docker-Content-Digest", digest(data))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)
                content.sent += len(data)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def run(command, environment):
    """Seconds, MiB at most, and the output of a command."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    output = child.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed: {output[-2000:]}")
    return time.monotonic() - start, usage.ru_maxrss / 1024, output


def by_securesystemslib(file, key):
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import SSlibKey

    public = SSlibKey.from_crypto(serialization.load_pem_public_key(pathlib.Path(key).read_bytes()))
    kinds = []
    for found in json.loads(pathlib.Path(file).read_text())["envelopes"]:
        one = found["envelope"]
        for signature in one["signatures"]:
            # It tries a key only on signatures of its id, which cosign leaves empty.
            signature["keyid"] = public.keyid
        Envelope.from_dict(one).verify([public], 1)
        kinds.append(json.loads(base64.b64decode(one["payload"]))["predicateType"])
    print(f"securesystemslib verified {len(kinds)} envelopes: {', '.join(sorted(set(kinds)))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envforge", default=str(ROOT / "target/release/envforge"))
    parser.add_argument("--cosign", help="a cosign to measure beside it")
    parser.add_argument("--entries", type=int, default=200)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--saved", help="a file of `evidence --save`")
    parser.add_argument("--key", help="the public key of --saved")
    args = parser.parse_args()
    if args.saved:
        by_securesystemslib(args.saved, args.key)
        return
    content = Content(args.entries)
    port = serve(content)
    with tempfile.TemporaryDirectory() as folder:
        key = pathlib.Path(folder) / "lab.pub"
        key.write_bytes(content.key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
        image = f"127.0.0.1:{port}/bench@{content.name}"
        environment = {"HOME": folder, "PATH": os.environ["PATH"], "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
        programs = {"evidence admit": [args.envforge, "evidence", "admit", image, "--gpu", "NVIDIA H200", "--driver", "580.95.05", "--key", str(key)]}
        if args.cosign:
            programs["cosign verify-attestation"] = [args.cosign, "verify-attestation", "--key", str(key), "--insecure-ignore-tlog=true", "--type", RESULT, image]
        measured = {name: [] for name in programs}
        for _ in range(args.runs + 1):
            for name, command in programs.items():
                content.sent = 0
                measured[name].append((*run(command, environment)[:2], content.sent / 1e6))
        before = set(os.listdir(folder)) - {"lab.pub"}
        print(f"{args.entries} entries, 20 referrers of others, {args.runs} runs; files left: {sorted(before) or 'none'}\n")
        print("| | median s | most s | peak MiB | MB read |\n|---|---|---|---|---|")
        for name, rows in measured.items():
            seconds, memory, sent = zip(*rows[1:])
            print(f"| {name} | {statistics.median(seconds):.3f} | {max(seconds):.3f} | {max(memory):.0f} | {max(sent):.2f} |")


main()
