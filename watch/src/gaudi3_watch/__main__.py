"""`python -m gaudi3_watch` is `gaudi3-watch`."""

from gaudi3_watch.cli import main

if __name__ == "__main__":
    main()
