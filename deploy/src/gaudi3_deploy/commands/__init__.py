"""The commands of `gaudi3-deploy`, by what they are for."""
