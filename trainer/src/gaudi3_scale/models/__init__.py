"""The models: what is built, from which shape or folder, and how its parts are found."""
