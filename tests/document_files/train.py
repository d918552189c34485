"""The program that pages call `train.py`: it calls functions, allocates memory, and ends soon."""

import argparse
import hashlib
import json


def load(epoch):
    return [json.dumps({"epoch": epoch, "sample": number, "text": "x" * 2000}) for number in range(200)]


def forward(sample):
    return int(hashlib.sha256(sample.encode()).hexdigest(), 16) % 1000


def step(samples):
    return sum(forward(sample) for sample in samples) / len(samples)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    losses = [step(load(epoch)) for epoch in range(parser.parse_args().epochs)]
    return losses[-1]


if __name__ == "__main__":
    main()
