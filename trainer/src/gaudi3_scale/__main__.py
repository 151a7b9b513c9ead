"""`python -m gaudi3_scale` is `gaudi3-train`."""

from gaudi3_scale.cli import main

if __name__ == "__main__":
    main()
