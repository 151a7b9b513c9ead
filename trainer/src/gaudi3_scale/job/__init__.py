"""One job from a configuration to a trained model; `fit` reads from top to bottom."""
