"""`python -m gaudi3_benchmark` is `gaudi3-benchmark`."""

from gaudi3_benchmark.cli import main

if __name__ == "__main__":
    main()
