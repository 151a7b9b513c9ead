"""`python -m gaudi3_scale.benchmark` is `gaudi3-benchmark`."""

from gaudi3_scale.benchmark.cli import main

if __name__ == "__main__":
    main()
