"""`python -m gaudi3_scale.launch`."""

from gaudi3_scale.launch.torchrun import main

if __name__ == "__main__":
    main()
